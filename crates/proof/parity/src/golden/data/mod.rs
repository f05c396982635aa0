//! `render` and `naming`: the data of machines, by the controllers of the product.
//!
//! Valid manifests run on a simulated server with address management. For recordings of calls that no manifest can
//! cause, the decision functions are called until nothing is due. Errors and waits are compared without their texts.

pub(super) mod controllers;
mod names;
mod nodes;
mod objects;
mod pools;
mod render;
mod rules;
mod shown;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::case::Case;
use super::group::Group;
use crate::values::text;

/// All groups about data of machines.
pub(super) const GROUPS: [Group; 4] = [render::GROUP, names::DATA, names::CLAIMS, nodes::GROUP];

/// The recorded answer with errors and waits reduced to flags.
fn expectation(case: &Case) -> Value {
    let mut expect = case.expect.clone();
    if let Value::Object(members) = &mut expect {
        if let Some(refused) = members.get("notAdmissible").and_then(Value::as_array) {
            let fields: BTreeSet<&str> = refused.iter().map(|error| text(error, "/field")).collect();
            let fields = json!(fields);
            members.insert("notAdmissible".into(), fields);
        }
        if members.contains_key("error") {
            members.insert("error".into(), true.into());
        }
        if members.remove("requeueAfterSeconds").is_some() {
            members.insert("waits".into(), true.into());
        }
    }
    expect
}
