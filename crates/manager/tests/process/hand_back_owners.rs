//! The way back to a Go manager that has `v1beta1` only, which would keep objects whose owners are of another version.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use metal3_api::catalog;
use metal3_api::infrastructure::names::GROUP;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_manager::hand_back::HandBack;
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

fn owner(api_version: &str, kind: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": "m0", "uid": "u0", "controller": kind != "Machine" })
}

/// A machine's data as this program writes it, with the Secrets and claims of it.
async fn world() -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    let newer = format!("{GROUP}/v1beta2");
    let owners = |kind: &str| json!([owner(&newer, kind), owner("cluster.x-k8s.io/v1beta2", "Machine")]);
    let named = |kind: &str| json!({ "name": "m0", "ownerReferences": owners(kind) });
    let spec = json!({ "template": { "name": "t" } });
    let claim = json!({ "metadata": named("Metal3Machine"), "spec": spec });
    world.create::<Metal3DataClaim>(claim).await;
    let data = json!({ "metadata": named("Metal3DataClaim"),
        "spec": { "index": 0, "template": { "name": "t" }, "claim": { "name": "m0" } } });
    world.create::<Metal3Data>(data).await;
    world
        .create::<Secret>(json!({ "metadata": named("Metal3Data"), "data": { "kept": "eA==" } }))
        .await;
    let address = json!({ "metadata": named("Metal3Data"), "spec": { "pool": { "name": "p" } } });
    world.create::<IPClaim>(address).await;
    world
}

/// Stores machines as `v1beta1` only, as the way back to an older release begins.
async fn store_as_older(client: &Client) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    for definition in definitions.list(&kube::api::ListParams::default()).await.unwrap() {
        if definition.data.pointer("/spec/group") != Some(&json!(GROUP)) {
            continue;
        }
        let name = definition.metadata.name.unwrap();
        let mut versions = definition.data.pointer("/spec/versions").unwrap().clone();
        for version in versions.as_array_mut().unwrap() {
            version["storage"] = json!(version["name"] == "v1beta1");
        }
        let (params, spec) = (PatchParams::default(), json!({ "spec": { "versions": versions } }));
        definitions.patch(&name, &params, &Patch::Merge(spec)).await.unwrap();
        let status = json!({ "status": { "storedVersions": ["v1beta1"] } });
        definitions
            .patch_status(&name, &params, &Patch::Merge(status))
            .await
            .unwrap();
    }
}

/// The versions of the owners of each object, and the content of the Secret.
async fn versions(world: &TestCluster) -> Value {
    fn of(object: &impl ResourceExt) -> Value {
        let owners = object.owner_references().iter();
        owners
            .map(|owner| json!([owner.api_version, owner.kind, owner.controller]))
            .collect()
    }
    let secret = world.api::<Secret>().get("m0").await.unwrap();
    json!({
        "claim": of(&world.api::<Metal3DataClaim>().get("m0").await.unwrap()),
        "data": of(&world.api::<Metal3Data>().get("m0").await.unwrap()),
        "address": of(&world.api::<IPClaim>().get("m0").await.unwrap()),
        "secret": of(&secret),
        "content": secret.data.unwrap().remove("kept"),
    })
}

async fn run(client: &Client, dry_run: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let wanted = HandBack {
        dry_run,
        ..HandBack::default()
    };
    wanted.run(client, &mut |line| lines.push(line)).await.unwrap();
    lines
}

#[tokio::test(start_paused = true)]
async fn owners_get_the_version_that_an_older_release_serves() {
    let world = world().await;
    let client = world.cluster.client("admin");
    store_as_older(&client).await;
    let before = versions(&world).await;
    let mut lines = run(&client, true).await;
    assert_eq!(versions(&world).await, before, "a dry run writes nothing");
    assert_eq!(run(&client, false).await, lines);
    lines.sort();
    let kinds = ["IPClaim", "Metal3Data", "Metal3DataClaim", "Secret"];
    assert_eq!(lines, kinds.map(|kind| format!("{kind} {NAMESPACE}/m0")));
    let text = before.to_string();
    let wanted = text.replace(&format!("{GROUP}/v1beta2"), &format!("{GROUP}/v1beta1"));
    assert_ne!(text, wanted);
    assert_eq!(versions(&world).await.to_string(), wanted, "all else is as it was");
    assert_eq!(run(&client, false).await, [""; 0], "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn owners_stay_where_the_newer_version_is_stored() {
    let world = world().await;
    let before = versions(&world).await;
    assert_eq!(run(&world.cluster.client("admin"), false).await, [""; 0]);
    assert_eq!(versions(&world).await, before);
}
