//! The examples of `docs/why.md` and `docs/kubectl-metal3.md`: a cluster with a running worker, whose only free host has a
//! wrong password.

use metal3_api::cluster::Cluster;
use metal3_api::meta::Time;
use serde_json::Value;

use crate::object::ObjectId;
use crate::offline::{explain_with_background, report};
use crate::text;
use crate::view::{Filter, View, render};

const OBJECTS: &str = include_str!("example.json");
/// When the commands run.
const NOW: &str = "2026-11-26T08:10:00Z";

/// The objects.
#[must_use]
pub fn objects() -> Vec<Value> {
    serde_json::from_str(OBJECTS).unwrap_or_default()
}

fn now() -> Time {
    serde_json::from_value(Value::from(NOW)).unwrap_or_default()
}

/// What `kubectl metal3 why cluster/edge -n lab` prints for them.
#[must_use]
pub fn output() -> String {
    let explanation = explain_with_background(&ObjectId::of::<Cluster>("edge"), &objects());
    text::render(&explanation, "lab", now())
}

/// The other commands, each with what it prints.
#[must_use]
pub fn outputs() -> Vec<(&'static str, String)> {
    let failed = Filter {
        error: Some(String::new()),
        ..Filter::default()
    };
    [
        ("tree edge", View::Tree("edge".to_owned())),
        ("hosts", View::Hosts(Filter::default())),
        ("hosts --error", View::Hosts(failed)),
        ("pools lan", View::Pools(Some("lan".to_owned()))),
        ("consumers", View::Consumers),
        ("claims", View::Claims),
        ("timeline rack-1-u8", View::Timeline("rack-1-u8".to_owned(), Vec::new())),
        ("top", View::Top),
    ]
    .into_iter()
    .map(|(words, view)| (words, render(&report(&view, &objects(), now()), Some("lab"), now())))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_reaches_the_answer_of_the_bmc() {
        let output = output();
        for part in [
            "Cluster/edge in namespace lab",
            "HTTP 401",
            "Runbook: docs/runbooks/hosts.md#registrationerror",
            "1m0s ago: RegistrationError (3 times)",
        ] {
            assert!(output.contains(part), "{output}");
        }
    }

    #[test]
    fn each_command_has_an_example_that_shows_something() {
        for (words, output) in outputs() {
            assert!(output.lines().count() > 1, "{words}: {output}");
        }
    }
}
