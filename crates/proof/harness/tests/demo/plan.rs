//! Decisions of the demo for a claim: pure, and one step at a time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::{ObjectReference, Time};
use metal3_runtime::condition::{ConditionBuilder, set_condition};
use metal3_runtime::patch::{MergePatch, add_finalizer, remove_finalizer};
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Fault, Next};

pub(crate) const FINALIZER: &str = "demo.example.com/child";
const MADE: Reason = Reason::new("ChildMade");

/// Input of a decision.
pub(crate) struct Facts {
    pub(crate) claim: Arc<IPClaim>,
    pub(crate) child: Option<Arc<ConfigMap>>,
}

/// One write, with everything it needs.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Before a child exists.
    Protect(MergePatch),
    /// Its response contains the UID for the status, so it ends a plan.
    Make(Box<ConfigMap>),
    Remove(Arc<ConfigMap>),
    /// After the deletion of the child.
    Release(MergePatch),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) action: Option<Action>,
    /// The claim with the desired status.
    pub(crate) after: Option<IPClaim>,
    pub(crate) next: Next,
}

/// Pure, total, deterministic: one step at a time.
pub(crate) fn plan(facts: &Facts, now: Time) -> Result<Plan, Fault> {
    let claim = &facts.claim;
    let step = |action| Plan {
        action: Some(action),
        after: None,
        next: Next::Requeue,
    };
    let version = claim.resource_version().unwrap_or_default();
    let version = ResourceVersion::parse(&version).map_err(|error| Fault::bug(error.to_string()))?;
    let going = claim.metadata.deletion_timestamp.is_some();
    let finalizers = claim.finalizers();
    let uid = claim.uid().unwrap_or_default();
    Ok(match &facts.child {
        Some(child) if going || !is_of(child, &uid) => step(Action::Remove(Arc::clone(child))),
        Some(child) => status(claim, child, now),
        None if going => match remove_finalizer(finalizers, FINALIZER, &version) {
            Some(patch) => step(Action::Release(patch)),
            None => settled(),
        },
        None => match add_finalizer(finalizers, FINALIZER, &version) {
            Some(patch) => step(Action::Protect(patch)),
            None => step(Action::Make(Box::new(child_of(claim)))),
        },
    })
}

fn settled() -> Plan {
    Plan {
        action: None,
        after: None,
        next: Next::Done,
    }
}

fn status(claim: &IPClaim, child: &ConfigMap, now: Time) -> Plan {
    let mut after = claim.clone();
    after.status.address = Some(ObjectReference {
        name: child.metadata.name.clone(),
        uid: child.uid(),
        ..ObjectReference::default()
    });
    set_condition(
        &mut after.status.conditions,
        ConditionBuilder::mark_true("Ready", MADE).standard(claim.metadata.generation, now),
    );
    Plan {
        after: Some(after),
        ..settled()
    }
}

pub(crate) fn child_of(claim: &IPClaim) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: claim.namespace(),
            name: claim.metadata.name.clone(),
            owner_references: Some(vec![OwnerReference {
                api_version: IPClaim::api_version(&()).into_owned(),
                kind: IPClaim::kind(&()).into_owned(),
                name: claim.name_any(),
                uid: claim.uid().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

pub(crate) fn is_of(child: &ConfigMap, uid: &str) -> bool {
    child.owner_references().iter().any(|owner| owner.uid == uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(going: bool, protected: bool) -> IPClaim {
        let mut claim = IPClaim::default();
        claim.metadata.name = Some("c".to_owned());
        claim.metadata.uid = Some("u".to_owned());
        claim.metadata.resource_version = Some("7".to_owned());
        claim.metadata.finalizers = protected.then(|| vec![FINALIZER.to_owned()]);
        claim.metadata.deletion_timestamp = going.then(|| serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap());
        claim
    }

    #[test]
    fn each_state_of_claim_and_child_has_one_next_step() {
        let stranger = ConfigMap::default();
        // going, protected, child, step
        let table: [(bool, bool, Option<ConfigMap>, &str); 7] = [
            (false, false, None, "Protect"),
            (false, true, None, "Make"),
            (false, true, Some(child_of(&claim(false, true))), "status"),
            (false, true, Some(stranger), "Remove"),
            (true, true, Some(child_of(&claim(true, true))), "Remove"),
            (true, true, None, "Release"),
            (true, false, None, "nothing"),
        ];
        for (going, protected, child, step) in table {
            let facts = Facts {
                claim: Arc::new(claim(going, protected)),
                child: child.map(Arc::new),
            };
            let plan = plan(&facts, Time::default()).unwrap();
            let found = match (&plan.action, &plan.after) {
                (Some(Action::Protect(_)), _) => "Protect",
                (Some(Action::Make(_)), _) => "Make",
                (Some(Action::Remove(_)), _) => "Remove",
                (Some(Action::Release(_)), _) => "Release",
                (None, Some(_)) => "status",
                (None, None) => "nothing",
            };
            assert_eq!(found, step, "going {going}, protected {protected}");
        }
    }
}
