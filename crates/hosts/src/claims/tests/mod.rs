//! Tables of decisions about claims.

mod bind;
mod bond;
mod copies;
mod ended;
mod findings;
mod holes;
mod metadata;
mod policy;
mod release;
mod serve;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, HostDeployPolicy};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use serde_json::{Value, json};

use super::copies::{Copy, Pair, Pairs, Source, Use};
use super::facts::{Facts, Fresh, Read};
use super::plan::{Action, Report, Step, plan};
use super::policy::Rules;

pub(super) fn key(namespace: &str, name: &str) -> Key {
    Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn now() -> DateTime<Utc> {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(super) fn merged(mut document: Value, change: &Value) -> Value {
    metal3_runtime::patch::apply(change, &mut document);
    document
}

/// An available host `metal/h` with a change.
pub(super) fn host(change: &Value) -> BareMetalHost {
    let document = json!({
        "metadata": { "namespace": "metal", "name": "h", "uid": "host-uid", "resourceVersion": "5" },
        "spec": { "online": false, "bmc": { "address": "redfish://192.0.2.7", "credentialsName": "bmc" } },
        "status": { "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false,
            "provisioning": { "state": "available", "ID": "n", "image": { "url": "" } } },
    });
    serde_json::from_value(merged(document, change)).unwrap()
}

/// The identifier of a bond, and another one.
pub(super) const ID: &str = "0123456789abcdef0123456789abcdef01234567";
pub(super) const OTHER_ID: &str = "fedcba9876543210fedcba9876543210fedcba98";

pub(super) fn record(cleaning: &str) -> String {
    json!({ "claim": "tenant/c", "id": ID, "uid": "claim-uid", "cleaning": cleaning, "at": "2026-01-01T00:00:00Z" })
        .to_string()
}

/// The change that makes a host name the claim by a user who may not read it, and does not know its UID.
pub(super) fn strange() -> Value {
    let record = json!({ "claim": "tenant/c", "id": OTHER_ID, "uid": "guessed", "cleaning": "metadata",
        "at": "2026-01-01T00:00:00Z" });
    merged(
        bound(),
        &json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": record.to_string() } } }),
    )
}

/// The change that binds a host to the claim.
pub(super) fn bound() -> Value {
    json!({
        "metadata": { "annotations": { "hostclaim.metal3.io/bond": record("metadata") } },
        "spec": { "consumerRef": consumer("c") },
    })
}

pub(super) fn consumer(name: &str) -> Value {
    json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": name, "namespace": "tenant" })
}

/// The claim `tenant/c` with a change.
pub(super) fn claim(change: &Value) -> HostClaim {
    let document = json!({
        "metadata": { "namespace": "tenant", "name": "c", "uid": "claim-uid", "resourceVersion": "9",
            "finalizers": ["metal3.io/hostclaim"] },
        "spec": { "poweredOn": true },
        "status": { "conditions": [{ "type": "Associated", "status": "False", "reason": "NoBareMetalHost", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
    });
    serde_json::from_value(merged(document, change)).unwrap()
}

/// The trace of a bond with a host, as an annotation.
pub(super) fn trace(host: &str) -> Value {
    let text = json!({ "claim": "tenant/c", "host": host, "id": ID, "uid": "claim-uid" }).to_string();
    json!({ "hostclaim.metal3.io/host": text })
}

/// The claim `tenant/c` with a trace that names `metal/h`, and a change.
pub(super) fn own(change: &Value) -> HostClaim {
    let traced = json!({ "metadata": { "annotations": trace("metal/h") } });
    claim(&merged(traced, change))
}

/// A policy in its compiled form.
pub(super) fn rules(policy: HostDeployPolicy) -> Arc<Rules> {
    Arc::new(Rules::new(Arc::new(policy)))
}

pub(super) fn policy(accepted: &Value) -> HostDeployPolicy {
    let spec = json!({ "hostClaimNamespaces": accepted });
    serde_json::from_value(json!({ "metadata": { "namespace": "metal", "name": "p" }, "spec": spec })).unwrap()
}

/// What is known, with a policy that permits the claim a host.
pub(super) fn facts(claim: HostClaim, hosts: Vec<BareMetalHost>) -> Facts {
    let hosts = hosts.into_iter().map(|host| (Key::of(&host), Arc::new(host)));
    Facts {
        key: key("tenant", "c"),
        claim: Arc::new(claim),
        deleted_for: Duration::from_secs(10),
        policies: BTreeMap::from([(key("metal", "p"), rules(policy(&json!({}))))]),
        knows_policies: true,
        watches_namespaces: true,
        namespace: Observed::Present(BTreeMap::new()),
        hosts: hosts.collect(),
        hidden: BTreeSet::new(),
        refused: BTreeSet::new(),
        is_hardware_refused: false,
        is_beyond: false,
        abandoned: 0,
        hardware: BTreeMap::new(),
        copies: BTreeMap::new(),
        fresh: Fresh::default(),
        now: now(),
    }
}

/// No Secret is named, and no copy exists.
pub(super) fn no_copies() -> Pairs {
    let none = Pair {
        source: Source::None,
        copy: Copy::Absent,
    };
    Use::ALL.map(|which| (which, none.clone())).into()
}

/// Performs reads, which show what the facts have, and the write of a status that names the host, until another step is planned. Returns
/// the number of live reads.
pub(super) fn after_reads(facts: &mut Facts) -> (Step, usize) {
    let mut live = 0;
    for _ in 0..20 {
        match plan(facts) {
            Step::Do(Action::Status(report)) => wrote(facts, &report),
            Step::Read(Read::Copies(host)) => drop(facts.copies.insert(host, no_copies())),
            Step::Read(read) => {
                live += 1;
                match read {
                    Read::Claim => facts.fresh.claim = true,
                    Read::Namespace => facts.fresh.namespace = true,
                    Read::Policy(key) => drop(facts.fresh.policies.insert(key)),
                    Read::Host(key) => drop(facts.fresh.hosts.insert(key)),
                    Read::Copies(_) => {}
                }
            }
            step => return (step, live),
        }
    }
    unreachable!("reads without end")
}

/// The claim gets this report as its status.
pub(super) fn wrote(facts: &mut Facts, report: &Report) {
    let status = report.status(&facts.claim, metal3_api::meta::Time::new(facts.now));
    let named = HostClaim {
        status,
        ..HostClaim::clone(&facts.claim)
    };
    facts.wrote_status(named);
}

/// The host that is written, and why.
pub(super) fn written(step: &Step) -> (&BareMetalHost, &str) {
    match step {
        Step::Do(Action::Host(host, what)) => (host, what),
        other => unreachable!("{other:?}"),
    }
}

/// Reason and message of a condition at the end; `None`: it is true, or there is no report.
pub(super) fn condition(facts: &Facts, step: &Step, name: &str) -> Option<(String, String)> {
    let Step::End(end) = step else { unreachable!("{step:?}") };
    let status = end
        .report
        .as_ref()?
        .status(&facts.claim, metal3_api::meta::Time::new(facts.now));
    let found = status.conditions.into_iter().find(|one| one.type_ == name).unwrap();
    let is_true = found.status == metal3_api::meta::ConditionStatus::True;
    (!is_true).then_some((found.reason, found.message))
}
