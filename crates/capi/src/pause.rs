//! Whether an object is paused, and whether it is moved to another cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{DELETE_FOR_MOVE_ANNOTATION, PAUSED_ANNOTATION};

/// Whether the object is deleted here because it was moved to another cluster: it is not reconciled at all.
#[must_use]
pub fn is_moved_away(metadata: &ObjectMeta) -> bool {
    has(metadata, DELETE_FOR_MOVE_ANNOTATION)
}

/// Whether the object itself stops its reconcile: it is paused or moved away.
#[must_use]
pub fn is_reconcile_skipped(metadata: &ObjectMeta) -> bool {
    has(metadata, PAUSED_ANNOTATION) || is_moved_away(metadata)
}

/// Whether the Cluster pauses its objects.
#[must_use]
pub fn is_cluster_paused(cluster: Option<&Cluster>) -> bool {
    cluster.is_some_and(|cluster| cluster.spec.paused == Some(true))
}

/// The message of the condition `Paused` of an object of a kind; `None` if it is not paused.
#[must_use]
pub fn why_paused(cluster: Option<&Cluster>, kind: &str, metadata: &ObjectMeta) -> Option<String> {
    let by_cluster = is_cluster_paused(cluster).then(|| "Cluster spec.paused is set to true".to_owned());
    let by_annotation =
        has(metadata, PAUSED_ANNOTATION).then(|| format!("{kind} has the {PAUSED_ANNOTATION} annotation"));
    let causes: Vec<String> = by_cluster.into_iter().chain(by_annotation).collect();
    (!causes.is_empty()).then(|| causes.join(", "))
}

fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(annotation))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn message_of_a_pause_contains_each_cause() {
        let cluster = |paused| Cluster {
            spec: serde_json::from_value(json!({ "paused": paused })).unwrap(),
            ..Cluster::default()
        };
        let plain = ObjectMeta::default();
        let annotated: ObjectMeta =
            serde_json::from_value(json!({ "annotations": { "cluster.x-k8s.io/paused": "" } })).unwrap();
        let by_cluster = "Cluster spec.paused is set to true";
        let by_annotation = "Metal3Machine has the cluster.x-k8s.io/paused annotation";
        let why = |paused, metadata| why_paused(Some(&cluster(paused)), "Metal3Machine", metadata);
        assert_eq!(why(false, &plain), None);
        assert_eq!(why(true, &plain).as_deref(), Some(by_cluster));
        assert_eq!(why(false, &annotated).as_deref(), Some(by_annotation));
        assert_eq!(why(true, &annotated), Some(format!("{by_cluster}, {by_annotation}")));
        assert_eq!(why_paused(None, "Metal3Machine", &plain), None);
    }
}
