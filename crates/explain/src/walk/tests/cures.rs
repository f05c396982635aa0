//! What cures say, and the commands in them.

use super::*;

/// The cure of the last link.
fn cure(objects: &[Value], start: &str) -> String {
    let explanation = explained(objects, start, None);
    explanation.chain.last().unwrap().cure.clone()
}

#[test]
fn command_of_a_cure_runs_as_it_is_printed() {
    let annotated = |key: &str| host("h0", json!({ "metadata": { "annotations": { key: "" } } }));
    for key in [
        "baremetalhost.metal3.io/paused",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
    ] {
        let cure = cure(&[annotated(key)], "bmh/h0");
        assert!(
            cure.ends_with(&format!(": kubectl annotate bmh h0 -n lab {key}-")),
            "{cure}"
        );
    }
    let configured = json!({ "spec": { "bootstrap": { "dataSecretName": null, "configRef":
        { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m0" } } } });
    let config = object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "m0", json!({}));
    let objects = [cluster(json!({})), machine("m0", configured), config];
    let foreign = cure(&objects, "machine/m0");
    assert!(
        foreign.ends_with(": kubectl describe KubeadmConfig m0 -n lab"),
        "{foreign}"
    );
}

/// clusterctl sets the mark when the copy exists: without it, two clusters would manage one machine.
#[test]
fn mark_of_a_move_is_only_removed_when_no_other_cluster_has_the_host() {
    let marked = json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
    let cure = cure(&[host("h0", marked)], "bmh/h0");
    assert!(
        cure.contains("repeat the move") && cure.contains("no other cluster"),
        "{cure}"
    );
}
