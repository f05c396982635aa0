//! The Events of a plan: conditions that start, and the end of provisioning.

use metal3_api::infrastructure::conditions::machine as conditions;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3MachineStatus};
use metal3_runtime::plan::PlannedEvent;

use crate::controller::events::{EventRule, events_between};
use crate::reasons::machine::PROVISIONED;

/// Events of a machine that had no host before.
const CLAIM_EVENTS: &[EventRule] = &[
    EventRule::normal(
        conditions::ASSOCIATE_HOST,
        conditions::REASON_HOST_ASSOCIATED,
        "claimed a host",
    ),
    EventRule::normal(
        conditions::ASSOCIATE_HOST,
        conditions::REASON_HOST_REUSED,
        "claimed the host kept for node reuse",
    ),
];

/// Events whenever the condition starts.
const STATUS_EVENTS: &[EventRule] = &[
    EventRule::normal(
        conditions::DATA_READY,
        conditions::REASON_SECRETS_READY,
        "metadata and network data are rendered",
    ),
    EventRule::warning(conditions::ASSOCIATE_HOST, conditions::REASON_HOST_FAILED),
    EventRule::warning(conditions::ASSOCIATE_HOST, conditions::REASON_AMBIGUOUS_CLUSTER),
    EventRule::warning(conditions::ASSOCIATE_HOST, conditions::REASON_NOT_OF_CLUSTER),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_META_DATA_FAILED),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_UPDATE_ERROR),
    EventRule::warning(
        conditions::ASSOCIATE_META_DATA,
        conditions::REASON_META_DATA_RELEASE_FAILED,
    ),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_DELETION_FAILED),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_REUSE_UNDECIDED),
    EventRule::warning(conditions::PAUSED, conditions::REASON_PAUSE_SET_FAILED),
    EventRule::warning(conditions::PAUSED, conditions::REASON_PAUSE_REMOVE_FAILED),
];

/// The Events for the new status of a machine, which `after` contains with its other changes.
pub(super) fn events_of(before: &Metal3Machine, after: &Metal3Machine) -> Vec<PlannedEvent> {
    let (old, new) = (&before.status.conditions, &after.status.conditions);
    // A machine with a data condition already has its host: a pause or read error ended, and no host was claimed.
    let had_host = old.iter().any(|condition| condition.type_ == conditions::DATA_READY);
    let mut events = events_between(STATUS_EVENTS, old, new);
    if !had_host {
        events.extend(events_between(CLAIM_EVENTS, old, new));
    }
    let is_provisioned = |status: &Metal3MachineStatus| {
        let progress = status.initialization.as_ref();
        progress.is_some_and(|progress| progress.provisioned == Some(true))
    };
    if is_provisioned(&after.status) && !is_provisioned(&before.status) {
        let id = after.spec.provider_id.as_deref().unwrap_or_default();
        let note = format!("the host is provisioned and its Node is known: {id}");
        events.push(PlannedEvent::normal(PROVISIONED, note));
    }
    events
}

#[cfg(test)]
mod tests {
    use metal3_api::infrastructure::conditions::shared;
    use metal3_domain::reason::Reason;
    use serde_json::{Value, json};

    use super::*;

    fn machine(conditions: &[(&str, Reason)]) -> Metal3Machine {
        let stated = |(kind, reason): &(&str, Reason)| {
            json!({
                "type": kind, "status": "True", "reason": reason.as_str(), "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let stated: Vec<Value> = conditions.iter().map(stated).collect();
        serde_json::from_value(json!({ "metadata": { "name": "m0" }, "status": { "conditions": stated } })).unwrap()
    }

    #[test]
    fn end_of_a_pause_records_no_second_claim_event() {
        let (host, taken) = (conditions::ASSOCIATE_HOST, conditions::REASON_HOST_ASSOCIATED);
        let rendered = (conditions::DATA_READY, conditions::REASON_SECRETS_READY);
        let after = machine(&[(host, taken), rendered]);
        assert_eq!(
            events_of(&machine(&[(host, shared::REASON_PAUSED), rendered]), &after),
            []
        );
        let first = events_of(&machine(&[(host, shared::REASON_PAUSED)]), &after);
        let notes: Vec<&str> = first.iter().map(|event| event.message.as_str()).collect();
        assert_eq!(notes, ["metadata and network data are rendered", "claimed a host"]);
    }
}
