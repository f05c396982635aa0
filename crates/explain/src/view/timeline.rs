//! What happened to a host, from its history, conditions and Events, and the history of its node in Ironic if it is given.

use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationHistory};
use metal3_domain::uri::public_text;
use serde::Serialize;

use crate::chain::State;
use crate::events::EventLine;
use crate::object::ObjectId;
use crate::order;
use crate::read::Read;
use crate::table::{Area, reason_of_error};
use crate::walk::conditions::since;
use crate::walk::{End, Walk};

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// When it began.
    pub time: Time,
    /// How long it took, in seconds; absent for a moment, and for what is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// Whether it is a step that is not over.
    #[serde(skip_serializing_if = "is_false")]
    pub running: bool,
    /// The step of the host's life, the aspect of a condition, or the reason of an Event.
    pub step: String,
    /// What it became.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Who acted, or has to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor: String,
    /// Why, in the words of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

pub(super) fn moments(walk: &mut Walk<'_>, name: &str, history: &[EventLine]) -> (State, Vec<Moment>) {
    let id = ObjectId::of::<BareMetalHost>(name);
    let events = walk.answer(Read::Events(id));
    let host: BareMetalHost = match walk.find(name) {
        Ok(Some(host)) => host,
        Ok(None) => return (State::Absent, Vec::new()),
        Err(End::Done | End::Wanted | End::Unread | End::Absent) => return (State::Unknown, Vec::new()),
    };
    let mut moments = operations(&host.status.operation_history);
    let created = host
        .metadata
        .creation_timestamp
        .as_ref()
        .and_then(|time| parsed(&time.0.to_string()));
    let deleted = host
        .metadata
        .deletion_timestamp
        .as_ref()
        .and_then(|time| parsed(&time.0.to_string()));
    moments.extend(created.map(|time| of_object(time, "created")));
    moments.extend(deleted.map(|time| of_object(time, "deletion requested")));
    moments.extend(host.status.conditions.iter().filter_map(of_condition));
    moments.extend(host.status.last_updated.and_then(|time| of_error(time, &host)));
    let events = crate::events::lines(&events.unwrap_or_default(), host.metadata.uid.as_deref());
    moments.extend(events.into_iter().map(of_event));
    moments.extend(history.iter().cloned().map(of_history));
    order::sort(&mut moments);
    (State::Ready, moments)
}

fn parsed(time: &str) -> Option<Time> {
    serde_json::from_value(serde_json::Value::String(time.to_owned())).ok()
}

fn of_object(time: Time, state: &str) -> Moment {
    Moment {
        time,
        seconds: None,
        running: false,
        step: "object".to_owned(),
        state: state.to_owned(),
        actor: "user".to_owned(),
        cause: String::new(),
    }
}

fn operations(history: &OperationHistory) -> Vec<Moment> {
    let steps = [
        ("register", &history.register),
        ("inspect", &history.inspect),
        ("provision", &history.provision),
        ("deprovision", &history.deprovision),
    ];
    let moments = steps.into_iter().filter_map(|(step, one)| {
        let time = one.start?;
        // An end before the start is of the time before.
        let end = one.end.filter(|end| *end >= time);
        Some(Moment {
            time,
            seconds: end.map(|end| (end.get() - time.get()).num_seconds()),
            running: end.is_none(),
            step: step.to_owned(),
            state: if end.is_some() { "done" } else { "running" }.to_owned(),
            actor: "system".to_owned(),
            cause: String::new(),
        })
    });
    moments.collect()
}

fn of_condition(condition: &Condition) -> Option<Moment> {
    let status = match condition.status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    Some(Moment {
        time: since(condition)?,
        seconds: None,
        running: false,
        step: condition.type_.clone(),
        state: format!("{status} ({})", condition.reason),
        actor: actor(&condition.reason),
        cause: public_text(&condition.message),
    })
}

/// The error in the status, which Events of an hour ago no longer show.
fn of_error(time: Time, host: &BareMetalHost) -> Option<Moment> {
    let status = &host.status;
    let error = status.error_type.filter(|_| !status.error_message.is_empty())?;
    let reason = reason_of_error(error);
    Some(Moment {
        time,
        seconds: None,
        running: false,
        step: reason.to_owned(),
        state: format!("failed {} times", status.error_count),
        actor: actor(reason),
        cause: public_text(&status.error_message),
    })
}

fn of_event(event: EventLine) -> Moment {
    let state = if event.count > 1 {
        format!("event, {} times", event.count)
    } else {
        "event".to_owned()
    };
    Moment {
        time: event.time.unwrap_or_default(),
        seconds: None,
        running: false,
        step: event.reason,
        state,
        actor: event.source,
        cause: event.message,
    }
}

/// An entry of the history of the node.
fn of_history(entry: EventLine) -> Moment {
    let state = if entry.warning { "failed in Ironic" } else { "in Ironic" };
    Moment {
        state: state.to_owned(),
        ..of_event(entry)
    }
}

/// Who has to act on a reason of a host.
fn actor(reason: &str) -> String {
    let entry = Area::Hosts.find(reason);
    entry
        .map(|entry| entry.row.actor.as_str().to_owned())
        .unwrap_or_default()
}
