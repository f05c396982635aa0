//! The core of Cluster API: clusters, machines, and the controllers that keep their number. A paused object gets its
//! condition, and no other write.

mod clone;
pub(crate) mod cluster;
pub(crate) mod deployment;
pub(crate) mod machine;
pub(crate) mod machine_set;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use serde_json::json;

pub(crate) use clone::{MachineSource, machines};

use crate::kinds::Kind;
use crate::view::{Object, Snapshot};
use crate::write::{Conditions, Write, status};

/// Whether the object or its Cluster is paused.
fn is_paused(snapshot: &Snapshot, object: &Object) -> bool {
    let cluster = snapshot.cluster_of(object).unwrap_or(object);
    cluster.flag("/spec/paused") || object.annotation(PAUSED_ANNOTATION).is_some()
}

/// The condition of a paused object. Returns `None` when it is not paused.
pub(crate) fn paused(snapshot: &Snapshot, kind: &'static Kind, object: &Object) -> Option<Vec<Write>> {
    if !is_paused(snapshot, object) {
        return None;
    }
    let conditions = Conditions::of(object, snapshot.now).set("Paused", "True", "Paused", "");
    let written = status(kind, object, json!({ "conditions": conditions.into_value() }));
    Some(written.into_iter().collect())
}
