//! Events of an object.

use std::sync::Arc;

use crate::order;
use crate::values::text;
use metal3_api::meta::Time;
use metal3_domain::uri::public_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventLine {
    /// When it happened last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Whether it is a warning.
    pub warning: bool,
    /// Its reason.
    pub reason: String,
    /// Its message, without logins.
    pub message: String,
    /// The component that reported it.
    pub source: String,
    /// How often it happened.
    pub count: i64,
}

/// What is read of an Event of the core API.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    #[serde(rename = "type")]
    type_: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    count: Option<i64>,
    first_timestamp: Option<Time>,
    last_timestamp: Option<Time>,
    event_time: Option<Time>,
    reporting_component: Option<String>,
    source: Source,
    series: Option<Series>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    component: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    count: Option<i64>,
    last_observed_time: Option<Time>,
}

/// The Events of an object that can be decoded, the oldest first. Those of a former object of its name have another UID; without a UID
/// all are kept.
pub(crate) fn lines(events: &[Arc<Value>], uid: Option<&str>) -> Vec<EventLine> {
    let is_of_another = |event: &&Arc<Value>| {
        let of = text(event, "/involvedObject/uid");
        !of.is_empty() && uid.is_some_and(|uid| uid != of)
    };
    let decoded = events
        .iter()
        .filter(|event| !is_of_another(event))
        .filter_map(|event| Event::deserialize(event.as_ref()).ok());
    let mut lines: Vec<EventLine> = decoded.map(line).collect();
    sort(&mut lines);
    lines
}

/// The oldest first.
pub(crate) fn sort(lines: &mut [EventLine]) {
    order::sort_by(lines, |a, b| {
        (a.time, &a.reason, &a.message).cmp(&(b.time, &b.reason, &b.message))
    });
}

fn line(event: Event) -> EventLine {
    let series = event.series.unwrap_or_default();
    let reporter = event.reporting_component.filter(|name| !name.is_empty());
    EventLine {
        time: series
            .last_observed_time
            .or(event.last_timestamp)
            .or(event.event_time)
            .or(event.first_timestamp),
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.unwrap_or_default(),
        message: public_text(&event.message.unwrap_or_default()),
        source: reporter.or(event.source.component).unwrap_or_default(),
        count: series.count.or(event.count).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_of_a_former_object_of_the_name_are_not_shown() {
        let event = |uid: Option<&str>, reason: &str| {
            let of = json!({ "kind": "BareMetalHost", "name": "h0", "uid": uid });
            Arc::new(json!({ "kind": "Event", "reason": reason, "involvedObject": of }))
        };
        let events = [
            event(Some("new"), "Now"),
            event(Some("old"), "Before"),
            event(None, "Whose"),
        ];
        let table: [(Option<&str>, &[&str]); 2] =
            [(Some("new"), &["Now", "Whose"]), (None, &["Before", "Now", "Whose"])];
        for (uid, expected) in table {
            let reasons: Vec<String> = lines(&events, uid).into_iter().map(|line| line.reason).collect();
            assert_eq!(reasons, expected, "{uid:?}");
        }
    }
}
