//! `ipam`: allocation by the real controller on a simulated API server.
//!
//! The controller settles after each step. Its log is not compared, nor are conditions that the schema of the Go
//! manager lacks.

mod predicted;
mod rules;
mod run;
mod view;

use serde_json::{Value, json};

use super::case::Case;
use super::group::Group;
use crate::values::list;

pub(super) const GROUP: Group = Group {
    name: "ipam",
    answer,
    expectation,
    rules: rules::RULES,
};

fn answer(case: &Case) -> Value {
    let in_full = list(&case.expect, "/final/addresses").any(|address| address.get("metadata").is_some());
    match run::run_case(&case.input, in_full) {
        Ok(answer) => answer,
        Err(error) => json!({ "error": format!("{error:#}") }),
    }
}

/// The recorded answer without log messages.
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
