//! The claims about changes of addresses by other clients, and their events.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::load::{claim, grants, has_address, list, name, pool};
use super::manager::LONG;
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::{Stack, TestNamespace};
use crate::wait::until;

const METAL3: &str = "ipaddresses.ipam.metal3.io";
const CLUSTER_API: &str = "ipaddresses.ipam.cluster.x-k8s.io";

/// A claim requests an unavailable address, another one, and the first again.
pub(super) fn refused_twice(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("series")?;
    namespace.apply(&pool("series", "10.64.5.10", "10.64.5.20"))?;
    namespace.apply(&claim("series", 2))?;
    namespace.until("ipclaim/series-claim-2", "granted", has_address)?;
    let mut requesting = claim("series", 0);
    let (outside, taken) = ("Exhausted IP Pools", "Requested IP not available");
    for (address, refusal) in [("10.99.0.1", outside), ("10.64.5.10", taken), ("10.99.0.1", outside)] {
        requesting["metadata"]["annotations"] = json!({ "ipAddress": address });
        namespace.apply(&requesting)?;
        namespace.until("ipclaim/series-claim-0", refusal, |claim| {
            claim["status"]["errorMessage"]
                .as_str()
                .is_some_and(|output| output.starts_with(refusal))
        })?;
    }
    namespace.keep();
    Ok(format!("{outside}, {taken}, {outside}"))
}

/// The second occurrence of an event is written into the first event within a minute.
pub(super) fn event_series(stack: &Stack, _: &Candidate) -> Proof {
    until(LONG, "a series of events", || {
        let events = list(stack, "series", "events")?;
        let count = |event: &Value| event["count"].as_u64().or_else(|| event["series"]["count"].as_u64());
        let series = events.iter().find(|event| count(event) > Some(1));
        Ok(series.map(|event| format!("{}: {}", event["reason"], event["message"])))
    })
}

/// Force-deletes an address object of each kind.
pub(super) fn removed(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("removed")?;
    namespace.apply(&pool("removed", "10.64.6.10", "10.64.6.20"))?;
    for number in 0..2 {
        namespace.apply(&claim("removed", number))?;
    }
    let count = |namespace: &TestNamespace<'_>| grants(namespace.stack, &namespace.name);
    let before = until(LONG, "two grants", || {
        Ok(Some(count(&namespace)?).filter(|held| held.len() == 2))
    })?;
    for kind in [METAL3, CLUSTER_API] {
        let list = namespace.get(kind)?;
        let object = list["items"].get(0).context("no address object")?;
        let uid = object["metadata"]["uid"].clone();
        let address = name(object);
        let bare = json!({"metadata": {"finalizers": []}}).to_string();
        namespace.kubectl(&["delete", kind, &address, "--wait=false"])?;
        // It may be deleted already: the manager removes its finalizer.
        drop(namespace.kubectl(&["patch", kind, &address, "--type=merge", "--patch", &bare]));
        until(LONG, "another object of that name", || {
            let again = namespace.get(&format!("{kind}/{address}"))?;
            Ok((again["metadata"]["uid"] != uid && again["metadata"]["deletionTimestamp"].is_null()).then_some(()))
        })?;
    }
    let after = until(LONG, "two grants", || {
        Ok(Some(count(&namespace)?).filter(|held| held.len() == 2))
    })?;
    ensure!(after == before, "before {before:?}, after {after:?}");
    Ok(format!("{after:?}"))
}

/// Objects of both kinds whose claims do not exist, as after a restore.
pub(super) fn orphans(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("orphans")?;
    namespace.apply(&pool("orphans", "10.64.7.10", "10.64.7.20"))?;
    namespace.apply(&claim("orphans", 0))?;
    namespace.until("ipclaim/orphans-claim-0", "granted", has_address)?;
    namespace.apply(&json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPAddress",
        "metadata": {"name": "orphans-10-64-7-15"},
        "spec": {"address": "10.64.7.15", "claim": {"name": "missing"}, "pool": {"name": "orphans"}}}))?;
    namespace.apply(
        &json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
        "metadata": {"name": "orphans-10-64-7-16"},
        "spec": {"address": "10.64.7.16", "prefix": 16, "claimRef": {"name": "missing"},
            "poolRef": {"apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "orphans"}}}),
    )?;
    let held = namespace.until("ippool/orphans", "holding two", |pool| {
        held(pool).is_some_and(|message| message.contains('2'))
    })?;
    let message = held_text(&held);
    namespace.kubectl(&["annotate", "ippool", "orphans", "ipam.metal3.io/release-orphans=2"])?;
    for (kind, left) in [(METAL3, 1), (CLUSTER_API, 0)] {
        until(LONG, "the end of the orphans", || {
            let list = namespace.get(kind)?;
            Ok((list["items"].as_array().map(Vec::len) == Some(left)).then_some(()))
        })?;
    }
    Ok(message)
}

fn held(pool: &Value) -> Option<&str> {
    let conditions = pool["status"]["conditions"].as_array()?;
    let held = conditions.iter().find(|condition| condition["type"] == "OrphansHeld")?;
    (held["status"] == "True").then(|| held["message"].as_str()).flatten()
}

fn held_text(pool: &Value) -> String {
    held(pool).unwrap_or_default().to_owned()
}
