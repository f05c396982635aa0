//! `ipam`: pools and claims in, addresses out, through the real controller on a simulated API server.
//!
//! After each step the controller comes to rest. What it logs is not compared, nor what the Go manager's schema has no
//! place for: the conditions of pools and IPClaims.

mod lab;
mod rules;
mod view;

use serde_json::{Value, json};

use super::case::Case;
use super::group::Group;

pub(super) const GROUP: Group = Group {
    name: "ipam",
    answer,
    expectation,
    rules: rules::RULES,
};

fn answer(case: &Case) -> Value {
    let in_full = view::list(&case.expect, "/final/addresses").any(|address| address.get("metadata").is_some());
    match lab::play(&case.input, in_full) {
        Ok(answer) => answer,
        Err(error) => json!({ "error": format!("{error:#}") }),
    }
}

/// The recorded answer without the words of its log.
fn expectation(case: &Case) -> Value {
    let mut expect = case.expect.clone();
    for step in view::list_mut(&mut expect, "/steps") {
        if let Some(step) = step.as_object_mut() {
            step.remove("reconcileErrors");
        }
    }
    if let Some(end) = expect.get_mut("final").and_then(Value::as_object_mut) {
        for member in ["addresses", "pools"] {
            end.entry(member).or_insert_with(|| json!([]));
        }
    }
    expect
}
