//! The example of `docs/why.md`: the objects of a cluster whose only free host has a wrong password.

use metal3_api::cluster::Cluster;
use metal3_api::meta::Time;
use serde_json::Value;

use crate::object::ObjectId;
use crate::offline::explain_objects;
use crate::text;

const OBJECTS: &str = include_str!("example.json");

/// What `kubectl metal3 why cluster/edge -n lab` prints for them.
#[must_use]
pub fn output() -> String {
    let objects: Vec<Value> = serde_json::from_str(OBJECTS).unwrap_or_default();
    let explanation = explain_objects(&ObjectId::of::<Cluster>("edge"), &objects);
    let newest = explanation.chain.iter().filter_map(|link| link.since).max();
    text::render(&explanation, "lab", newest.unwrap_or_else(Time::default))
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
        ] {
            assert!(output.contains(part), "{output}");
        }
    }
}
