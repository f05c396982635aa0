//! The states of machines in the metrics. Each is a function of the object, which also records when it began.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_api::infrastructure::conditions::machine;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::{ConditionStatus, moment};
use metal3_domain::clock::Clock;
use metal3_domain::objectives::{
    MACHINE_DELETING, MACHINE_PENDING, MACHINE_PROVISIONED, MACHINE_PROVISIONING, Subject,
};
use metal3_runtime::cache::{Change, Indexes, Key, SharedCache};
use metal3_runtime::metrics::Metrics;

use super::facts::associated;

/// Reports the states of all machines of the cache to `metrics`. Call it before the cache is filled.
pub(super) fn report<I>(machines: &SharedCache<Metal3Machine, I>, metrics: &Metrics, clock: &Arc<dyn Clock>)
where
    I: Indexes<Metal3Machine> + Send + 'static,
{
    let states = metrics.states(Subject::Machine, Arc::clone(clock));
    machines.subscribe(move |change| match change {
        Change::Applied { new, .. } => {
            let (state, began) = state_of(new);
            let key = Key::of(*new);
            states.set(key.clone(), state, began);
            states.hold(&key, is_paused(new));
        }
        Change::Deleted { key, .. } => states.remove(key),
        // The cached object stays.
        Change::Unreadable { .. } | Change::Synced => {}
    });
}

/// Whether the machine or its Cluster is paused, as the condition says.
fn is_paused(object: &Metal3Machine) -> bool {
    let mut conditions = object.status.conditions.iter();
    conditions.any(|one| one.type_ == machine::PAUSED && one.status == ConditionStatus::True)
}

/// The state, and when it began if the machine records that.
fn state_of(machine: &Metal3Machine) -> (&'static str, Option<DateTime<Utc>>) {
    let meta = &machine.metadata;
    if let Some(deleted) = &meta.deletion_timestamp {
        return (MACHINE_DELETING, moment(deleted));
    }
    let became_true = |condition_type: &str| {
        let mut conditions = machine.status.conditions.iter();
        let found = conditions.find(|one| one.type_ == condition_type && one.status == ConditionStatus::True);
        found.map(|condition| condition.last_transition_time.get())
    };
    let initialization = machine.status.initialization.as_ref();
    if initialization.and_then(|one| one.provisioned) == Some(true) {
        (MACHINE_PROVISIONED, became_true(machine::READY))
    } else if associated(machine).is_some() {
        (MACHINE_PROVISIONING, became_true(machine::ASSOCIATE_HOST))
    } else {
        (MACHINE_PENDING, meta.creation_timestamp.as_ref().and_then(moment))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(metadata: &Value, status: &Value) -> Metal3Machine {
        let mut document = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "metadata": { "name": "m", "namespace": "metal", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "image": { "url": "u", "checksum": "c" } }, "status": status,
        });
        let own = metadata.as_object().unwrap().clone();
        document
            .pointer_mut("/metadata")
            .unwrap()
            .as_object_mut()
            .unwrap()
            .extend(own);
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn each_state_begins_when_the_object_says() {
        let condition = |condition_type: &str, status: &str, at: &str| json!({ "type": condition_type, "status": status, "lastTransitionTime": at, "reason": "R", "message": "" });
        let hosted = json!({ "annotations": { "metal3.io/BareMetalHost": "metal/h" } });
        let deleted = json!({ "deletionTimestamp": "2026-01-01T03:00:00Z", "finalizers": ["x"] });
        let chosen = json!({ "conditions": [condition(machine::ASSOCIATE_HOST, "True", "2026-01-01T01:00:00Z")] });
        let unchosen = json!({ "conditions": [condition(machine::ASSOCIATE_HOST, "False", "2026-01-01T01:00:00Z")] });
        let running = json!({ "initialization": { "provisioned": true },
            "conditions": [condition(machine::READY, "True", "2026-01-01T02:00:00Z")] });
        let rows = [
            (json!({}), json!({}), MACHINE_PENDING, Some("2026-01-01T00:00:00+00:00")),
            (
                json!({}),
                chosen.clone(),
                MACHINE_PENDING,
                Some("2026-01-01T00:00:00+00:00"),
            ),
            (
                hosted.clone(),
                chosen,
                MACHINE_PROVISIONING,
                Some("2026-01-01T01:00:00+00:00"),
            ),
            (hosted.clone(), unchosen, MACHINE_PROVISIONING, None),
            (
                hosted,
                running.clone(),
                MACHINE_PROVISIONED,
                Some("2026-01-01T02:00:00+00:00"),
            ),
            (deleted, running, MACHINE_DELETING, Some("2026-01-01T03:00:00+00:00")),
        ];
        for (metadata, status, state, began) in rows {
            let found = state_of(&machine(&metadata, &status));
            let found = (found.0, found.1.map(|at| at.to_rfc3339()));
            assert_eq!((found.0, found.1.as_deref()), (state, began), "{metadata} {status}");
        }
    }
}
