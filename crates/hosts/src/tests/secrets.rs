//! What the marks of a Secret are.

use serde_json::{Value, json};

use super::fixture::{Fixture, OTHER_UID, UID};
use crate::action::Action;

/// The patch of the Secret of a registering host, whose Secret has this metadata.
fn marking(change: impl FnOnce(&mut Value)) -> Value {
    let mut fixture = Fixture::new("registering");
    let stored = fixture.credentials.as_mut().unwrap().as_mut().unwrap();
    let mut metadata = json!({ "name": "bmc", "namespace": "metal", "resourceVersion": "40",
        "labels": { "environment.metal3.io": "baremetal" } });
    change(&mut metadata);
    stored.metadata = serde_json::from_value(metadata).unwrap();
    patch(&fixture)
}

fn patch(fixture: &Fixture) -> Value {
    let plan = fixture.plan();
    let mut patches = plan.actions.into_iter().filter_map(|action| match action {
        Action::PatchSecret { patch, .. } => Some(patch.into_document()),
        _ => None,
    });
    patches.next().unwrap_or_default()
}

#[test]
fn marked_secret_gets_the_label_for_moves_and_no_owner() {
    let patch = marking(|_| {});
    assert_eq!(
        patch["metadata"]["labels"],
        json!({ "clusterctl.cluster.x-k8s.io/move": "" }),
        "{patch}"
    );
    assert_eq!(
        patch["metadata"]["finalizers"],
        json!(["baremetalhost.metal3.io/secret"]),
        "{patch}"
    );
    assert_eq!(patch["metadata"].get("ownerReferences"), None, "{patch}");
}

#[test]
fn owners_of_a_secret_are_not_changed() {
    let owner = |uid: &str| json!([{ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": uid, "controller": true }]);
    let own = marking(|metadata| metadata["ownerReferences"] = owner(UID));
    // clusterctl moves it with its owner.
    assert_eq!(own["metadata"].get("labels"), None, "{own}");
    assert_eq!(own["metadata"].get("ownerReferences"), None, "{own}");
    let others = marking(|metadata| metadata["ownerReferences"] = owner(OTHER_UID));
    assert_eq!(
        others["metadata"]["labels"],
        json!({ "clusterctl.cluster.x-k8s.io/move": "" }),
        "{others}"
    );
    assert_eq!(others["metadata"].get("ownerReferences"), None, "{others}");
}
