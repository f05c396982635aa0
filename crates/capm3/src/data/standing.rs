//! Whether an object is left alone: because somebody paused it, or because it only goes from here to live on elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};

/// Annotation of `clusterctl move` on what it deletes. All other annotations are gone by then, so nothing else tells.
const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

/// Whether an object rests by what it says itself.
#[must_use]
pub fn rests(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION) || all.contains_key(DELETE_FOR_MOVE_ANNOTATION))
}

/// Whether a Cluster rests, and with it all that belongs to it.
#[must_use]
pub fn is_paused(cluster: &Cluster) -> bool {
    cluster.spec.paused == Some(true)
}

/// The Cluster that an object says it belongs to.
#[must_use]
pub fn cluster_of(metadata: &ObjectMeta) -> Option<&str> {
    let label = metadata.labels.as_ref()?.get(CLUSTER_NAME_LABEL);
    label.map(String::as_str).filter(|name| !name.is_empty())
}
