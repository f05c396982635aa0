//! `render` and `naming`: the data of machines, through the controllers of the product.
//!
//! What a server takes is played on a simulated one, with address management beside. What it refuses (the recordings
//! hold calls into the code that no manifest can make) is put to the decisions, again and again until nothing is to be
//! done. Of an error only that there is one is compared, and of a wait only that it waits; the words are ours.

pub(super) mod lab;
mod names;
mod nodes;
mod pools;
mod render;
mod rules;
mod shown;
mod world;

use serde_json::Value;

use super::case::Case;
use super::group::Group;

/// Every group about the data of machines.
pub(super) const GROUPS: [Group; 4] = [render::GROUP, names::DATA, names::CLAIMS, nodes::GROUP];

/// The recorded answer with errors and waits reduced to that there is one.
fn expectation(case: &Case) -> Value {
    let mut expect = case.expect.clone();
    if let Value::Object(members) = &mut expect {
        members.remove("notAdmissible");
        if members.contains_key("error") {
            members.insert("error".into(), true.into());
        }
        if members.remove("requeueAfterSeconds").is_some() {
            members.insert("waits".into(), true.into());
        }
    }
    expect
}
