//! What the API server stored of the host, and since when.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// The versions of one object, each with the time from which it was current. `Value::Null`: deleted.
#[derive(Debug, Default)]
pub(super) struct History(Vec<(Instant, Value)>);

impl History {
    pub(super) fn record(&mut self, object: Value) {
        self.0.push((Instant::now(), object));
    }

    pub(super) fn newest(&self) -> &Value {
        self.0.last().map_or(&Value::Null, |(_, object)| object)
    }

    /// The versions that were current at some time within `span` until now.
    fn within(&self, span: Duration) -> impl Iterator<Item = &Value> {
        let from = Instant::now().checked_sub(span);
        let ends = self.0.iter().skip(1).map(|(end, _)| Some(*end)).chain([None]);
        self.0.iter().zip(ends).filter_map(move |((_, object), end)| {
            let is_over = matches!((end, from), (Some(end), Some(from)) if end < from);
            (!is_over).then_some(object)
        })
    }

    /// Whether all versions within `span` satisfy the predicate. `false` while the object is younger than that.
    pub(super) fn always(&self, span: Duration, holds: impl Fn(&Value) -> bool) -> bool {
        let is_old = self.0.first().is_some_and(|(since, _)| since.elapsed() >= span);
        is_old && self.within(span).all(holds)
    }

    /// Since when the predicate holds without interruption. `None`: it does not hold now.
    pub(super) fn since(&self, holds: impl Fn(&Value) -> bool) -> Option<Instant> {
        let held = self.0.iter().rev().take_while(|(_, object)| holds(object));
        held.last().map(|(since, _)| *since)
    }

    /// Whether some version within `span` satisfies the predicate.
    pub(super) fn ever(&self, span: Duration, holds: impl Fn(&Value) -> bool) -> bool {
        self.within(span).any(holds)
    }
}

/// Questions about a stored host.
pub(super) fn annotation<'a>(host: &'a Value, name: &str) -> Option<&'a str> {
    host["metadata"]["annotations"].get(name)?.as_str()
}

pub(super) fn is_paused(host: &Value) -> bool {
    annotation(host, "baremetalhost.metal3.io/paused").is_some()
}

pub(super) fn is_deleting(host: &Value) -> bool {
    host["metadata"].get("deletionTimestamp").is_some()
}

pub(super) fn is_detach_requested(host: &Value) -> bool {
    annotation(host, "baremetalhost.metal3.io/detached").is_some()
}

fn reboots(host: &Value) -> impl Iterator<Item = &Value> {
    let annotations = host["metadata"]["annotations"].as_object();
    let all = annotations.into_iter().flatten();
    all.filter_map(|(name, value)| {
        (name == "reboot.metal3.io" || name.starts_with("reboot.metal3.io/")).then_some(value)
    })
}

pub(super) fn is_reboot_requested(host: &Value) -> bool {
    reboots(host).next().is_some()
}

pub(super) fn is_hard_reboot_requested(host: &Value) -> bool {
    reboots(host).any(|value| value.as_str().is_some_and(|text| text.contains("hard")))
}

pub(super) fn has_power_error(host: &Value) -> bool {
    host["status"]["errorType"] == "power management error"
}

pub(super) fn is_external(host: &Value) -> bool {
    host["spec"]["externallyProvisioned"] == true
}

pub(super) fn image(host: &Value) -> &str {
    host["spec"]["image"]["url"].as_str().unwrap_or_default()
}

/// Whether the image is booted from a virtual drive.
pub(super) fn is_live(host: &Value) -> bool {
    host["spec"]["image"]["format"] == "live-iso"
}

/// The deploy step that the host asks for; empty without one.
pub(super) fn method(host: &Value) -> &str {
    host["spec"]["customDeploy"]["method"].as_str().unwrap_or_default()
}

/// What is on a disk: the image, and after a deploy step its name.
pub(super) fn by(image: &str, step: &str) -> String {
    match step {
        "" => image.to_owned(),
        step => format!("{image} by {step}"),
    }
}

pub(super) fn state(host: &Value) -> &str {
    host["status"]["provisioning"]["state"].as_str().unwrap_or_default()
}
