//! The claims about what other people do to addresses, and about what is told of it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Proof;
use super::ipam::{LONG, has_address};
use super::load::{claim, grants, list, name, pool};
use super::release::Candidate;
use crate::claims::world::{Room, World};
use crate::wait::until;

const OURS: &str = "ipaddresses.ipam.metal3.io";
const CLUSTER_API: &str = "ipaddresses.ipam.cluster.x-k8s.io";

/// A claim asks for one address that it cannot have, for another, and for the first again.
pub(super) fn refused_twice(world: &World, _: &Candidate) -> Proof {
    let room = world.room("series")?;
    room.apply(&pool("series", "10.64.5.10", "10.64.5.20"))?;
    room.apply(&claim("series", 2))?;
    room.until("ipclaim/series-claim-2", "granted", has_address)?;
    let mut asking = claim("series", 0);
    let (outside, taken) = ("Exhausted IP Pools", "Requested IP not available");
    for (address, refusal) in [("10.99.0.1", outside), ("10.64.5.10", taken), ("10.99.0.1", outside)] {
        asking["metadata"]["annotations"] = json!({ "ipAddress": address });
        room.apply(&asking)?;
        room.until("ipclaim/series-claim-0", refusal, |claim| {
            claim["status"]["errorMessage"]
                .as_str()
                .is_some_and(|said| said.starts_with(refusal))
        })?;
    }
    room.stays();
    Ok(format!("{outside}, {taken}, {outside}"))
}

/// The second telling of the same is written within a minute, into the event of the first.
pub(super) fn told_as_series(world: &World, _: &Candidate) -> Proof {
    until(LONG, "a series of events", || {
        let events = list(world, "series", "events")?;
        let told = |event: &Value| event["count"].as_u64().or_else(|| event["series"]["count"].as_u64());
        let series = events.iter().find(|event| told(event) > Some(1));
        Ok(series.map(|event| format!("{}: {}", event["reason"], event["message"])))
    })
}

/// Somebody forces an address object of each kind away, finalizer and all.
pub(super) fn removed(world: &World, _: &Candidate) -> Proof {
    let room = world.room("removed")?;
    room.apply(&pool("removed", "10.64.6.10", "10.64.6.20"))?;
    for number in 0..2 {
        room.apply(&claim("removed", number))?;
    }
    let count = |room: &Room<'_>| grants(room.world, &room.name);
    let before = until(LONG, "two grants", || {
        Ok(Some(count(&room)?).filter(|held| held.len() == 2))
    })?;
    for kind in [OURS, CLUSTER_API] {
        let list = room.get(kind)?;
        let object = list["items"].get(0).context("no address object")?;
        let uid = object["metadata"]["uid"].clone();
        let address = name(object);
        let bare = json!({"metadata": {"finalizers": []}}).to_string();
        room.kubectl(&["delete", kind, &address, "--wait=false"])?;
        // It may be gone at once: the manager lets go of what somebody else deletes.
        drop(room.kubectl(&["patch", kind, &address, "--type=merge", "--patch", &bare]));
        until(LONG, "another object of that name", || {
            let again = room.get(&format!("{kind}/{address}"))?;
            Ok((again["metadata"]["uid"] != uid && again["metadata"]["deletionTimestamp"].is_null()).then_some(()))
        })?;
    }
    let after = until(LONG, "two grants", || {
        Ok(Some(count(&room)?).filter(|held| held.len() == 2))
    })?;
    ensure!(after == before, "before {before:?}, after {after:?}");
    Ok(format!("{after:?}"))
}

/// Objects of both kinds that name claims nobody made, as after a restore.
pub(super) fn orphans(world: &World, _: &Candidate) -> Proof {
    let room = world.room("orphans")?;
    room.apply(&pool("orphans", "10.64.7.10", "10.64.7.20"))?;
    room.apply(&claim("orphans", 0))?;
    room.until("ipclaim/orphans-claim-0", "granted", has_address)?;
    room.apply(&json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPAddress",
        "metadata": {"name": "orphans-10-64-7-15"},
        "spec": {"address": "10.64.7.15", "claim": {"name": "nobody"}, "pool": {"name": "orphans"}}}))?;
    room.apply(
        &json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
        "metadata": {"name": "orphans-10-64-7-16"},
        "spec": {"address": "10.64.7.16", "prefix": 16, "claimRef": {"name": "nobody"},
            "poolRef": {"apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "orphans"}}}),
    )?;
    let held = room.until("ippool/orphans", "holding two", |pool| {
        held(pool).is_some_and(|message| message.contains('2'))
    })?;
    let message = held_text(&held);
    room.kubectl(&["annotate", "ippool", "orphans", "ipam.metal3.io/release-orphans=2"])?;
    for (kind, left) in [(OURS, 1), (CLUSTER_API, 0)] {
        until(LONG, "the end of the orphans", || {
            let list = room.get(kind)?;
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
