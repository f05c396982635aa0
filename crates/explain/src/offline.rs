//! Explanations from a set of objects that is complete: one that is not among them does not exist.

use serde_json::Value;

use crate::chain::Explanation;
use crate::object::ObjectId;
use crate::snapshot::{Read, Snapshot};
use crate::walk::explain;

/// Explains an object of a namespace that has these objects and no others.
#[must_use]
pub fn explain_objects(object: &ObjectId, objects: &[Value]) -> Explanation {
    let mut snapshot = Snapshot::default();
    loop {
        match explain(object, &snapshot) {
            Ok(explanation) => return explanation,
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
    let (id, cluster, is_list) = match read {
        Read::Object(id) => (id, None, false),
        Read::List { kind, cluster } => (kind, cluster.as_deref(), true),
    };
    let found = objects.iter().filter(|object| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let group = text("/apiVersion")
            .and_then(|version| version.split_once('/'))
            .map_or("", |(group, _)| group);
        let is_name = is_list || text("/metadata/name") == Some(&id.name);
        let label = text("/metadata/labels/cluster.x-k8s.io~1cluster-name");
        group == id.group && text("/kind") == Some(&id.kind) && is_name && (cluster.is_none() || label == cluster)
    });
    found.cloned().collect()
}
