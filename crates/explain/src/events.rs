//! Events of an object.

use std::sync::Arc;

use crate::order;
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

/// The Events that can be decoded, the oldest first.
pub(crate) fn lines(events: &[Arc<Value>]) -> Vec<EventLine> {
    let decoded = events
        .iter()
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
