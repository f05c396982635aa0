//! Explanations from a set of objects that is complete: one that is not among them does not exist.

use std::collections::BTreeSet;

use metal3_api::meta::Time;
use serde_json::Value;

use crate::chain::Explanation;
use crate::labels;
use crate::object::ObjectId;
use crate::read::Read;
use crate::snapshot::Snapshot;
use crate::values::{name_of, text};
use crate::view::{Report, View};
use crate::walk::{explain, with_background};

/// Explains an object of a namespace that has these objects and no others.
#[must_use]
pub fn explain_objects(object: &ObjectId, objects: &[Value]) -> Explanation {
    answered(objects, |snapshot| explain(object, snapshot))
}

/// The same with the Events of the last object, and how long its step usually takes.
#[must_use]
pub fn explain_with_background(object: &ObjectId, objects: &[Value]) -> Explanation {
    answered(objects, |snapshot| {
        with_background(explain(object, snapshot)?, snapshot)
    })
}

/// The report about these objects and no others.
#[must_use]
pub fn report(view: &View, objects: &[Value], now: Time) -> Report {
    answered(objects, |snapshot| view.report(snapshot, now))
}

/// Asks until all that is wanted is answered.
fn answered<T>(objects: &[Value], ask: impl Fn(&Snapshot) -> Result<T, BTreeSet<Read>>) -> T {
    let mut snapshot = Snapshot::default();
    loop {
        match ask(&snapshot) {
            Ok(answer) => return answer,
            Err(wanted) => {
                for read in wanted {
                    let found = answer(objects, &read);
                    snapshot.insert(read, Ok(found));
                }
            }
        }
    }
}

/// The objects that a read finds.
#[must_use]
pub fn answer(objects: &[Value], read: &Read) -> Vec<Value> {
    let found = objects.iter().filter(|object| match read {
        Read::Object(id) => is_of_kind(object, id) && name_of(object) == id.name,
        Read::List { kind, labels } => {
            is_of_kind(object, kind) && (labels.is_empty() || labels::selects(labels, object))
        }
        Read::Events(id) => {
            let is_about =
                text(object, "/involvedObject/kind") == id.kind && text(object, "/involvedObject/name") == id.name;
            text(object, "/kind") == "Event" && (id.name.is_empty() || is_about)
        }
    });
    found.cloned().collect()
}

fn is_of_kind(object: &Value, id: &ObjectId) -> bool {
    let group = text(object, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    group == id.group && text(object, "/kind") == id.kind
}
