//! The admission plugin `OwnerReferencesPermissionEnforcement`: which changes of owners each user may make.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_sim_cluster::{Access, Cluster, Options};
use serde_json::{Value, json};

/// A user named after the permissions that it has, separated by spaces: `delete:configmaps`.
fn may(access: &Access<'_>) -> bool {
    let wanted = format!("{}:{}", access.verb, access.resource);
    access.user == "admin" || access.user.split(' ').any(|permission| permission == wanted)
}

fn owner(name: &str, blocks: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": format!("uid-{name}"), "blockOwnerDeletion": blocks})
}

fn api(cluster: &Cluster, user: &str) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(user), "default")
}

fn object(owners: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": "owned", "ownerReferences": owners}})).unwrap()
}

/// Changes the owners of an object as a user; the message when it is refused.
async fn change(user: &str, before: &Value, after: &Value) -> Option<String> {
    let cluster = Cluster::start(&Options::seeded(1));
    cluster.enforce_owner_permissions(Arc::new(may));
    let made = object(before);
    api(&cluster, "admin")
        .create(&PostParams::default(), &made)
        .await
        .unwrap();
    let patch = json!({"metadata": {"ownerReferences": after, "labels": {"a": "b"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let patched = api(&cluster, user).patch("owned", &params, &patch).await;
    patched.err().map(|error| error.to_string())
}

#[tokio::test]
async fn owners_are_changed_only_by_a_user_who_may_delete_the_object() {
    let (none, one, two) = (
        json!([]),
        json!([owner("a", Value::Null)]),
        json!([owner("a", Value::Null), owner("b", Value::Null)]),
    );
    for (before, after) in [(&none, &one), (&one, &none), (&two, &one), (&one, &two)] {
        let refused = change("editor", before, after).await.unwrap();
        let expected = "configmaps \"owned\" is forbidden: cannot set an ownerRef on a resource you can't delete";
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(
            change("delete:configmaps", before, after).await,
            None,
            "{before} {after}"
        );
    }
    assert_eq!(
        change("editor", &one, &one).await,
        None,
        "another change needs no permission"
    );
}

#[tokio::test]
async fn owner_is_blocked_only_by_a_user_who_may_update_its_finalizers() {
    let blocking = |blocks: bool| json!([owner("a", json!(blocks))]);
    let (none, free, blocked) = (json!([]), blocking(false), blocking(true));
    for before in [&none, &free] {
        let refused = change("delete:configmaps", before, &blocked).await.unwrap();
        assert!(refused.contains("you can't set finalizers on"), "{refused}");
        for permission in ["update:secrets/finalizers", "update:*/finalizers"] {
            let user = format!("delete:configmaps {permission}");
            assert_eq!(change(&user, before, &blocked).await, None, "{user}");
        }
    }
    assert_eq!(change("delete:configmaps", &blocked, &free).await, None);
    let unknown =
        json!([{"apiVersion": "a.io/v1", "kind": "Rack", "name": "r", "uid": "u", "blockOwnerDeletion": true}]);
    let refused = change("delete:configmaps", &none, &unknown).await.unwrap();
    assert!(refused.contains("APIVersion a.io/v1 Kind Rack"), "{refused}");
}

#[tokio::test]
async fn new_object_gets_any_owner_that_it_does_not_block() {
    let cluster = Cluster::start(&Options::seeded(1));
    let params = PostParams::default();
    let create = async |owners: Value| api(&cluster, "editor").create(&params, &object(&owners)).await.is_ok();
    cluster.enforce_owner_permissions(Arc::new(may));
    assert!(!create(json!([owner("a", json!(true))])).await);
    assert!(create(json!([owner("a", Value::Null)])).await);
}
