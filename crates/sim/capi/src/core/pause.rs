//! What is paused gets its condition, and nothing else.

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use serde_json::json;

use crate::kinds::Kind;
use crate::view::{Object, World};
use crate::write::{Conditions, Write, status};

/// Whether the object or its Cluster is paused.
fn is_paused(world: &World, object: &Object) -> bool {
    let cluster = world.cluster_of(object).unwrap_or(object);
    cluster.flag("/spec/paused") || object.annotation(PAUSED_ANNOTATION).is_some()
}

/// The condition of a paused object; nothing where it is not paused.
pub(crate) fn paused(world: &World, kind: &'static Kind, object: &Object) -> Option<Vec<Write>> {
    if !is_paused(world, object) {
        return None;
    }
    let conditions = Conditions::of(object, world.now).say("Paused", "True", "Paused", "");
    let written = status(kind, object, json!({ "conditions": conditions.done() }));
    Some(written.into_iter().collect())
}
