//! Features of the simulator only: in-process conversion and a concurrent garbage collector.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource as _};
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};

async fn install(client: &Client) {
    let version = |name: &str, stored: bool, field: &str| {
        json!({
            "name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"}}}},
            }},
        })
    };
    let definition = json!({
        "metadata": {"name": "wheels.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"kind": "Wheel", "plural": "wheels"},
            "versions": [version("v1", false, "inches"), version("v2", true, "size")],
        },
    });
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(definition).unwrap())
        .await
        .unwrap();
}

/// The field is `inches` in v1 and `size` in v2.
fn rename(object: &Value, version: &str) -> Result<Value, String> {
    let (from, to) = if version == "v1" {
        ("size", "inches")
    } else {
        ("inches", "size")
    };
    let mut converted = object.clone();
    let spec = converted
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .ok_or("no spec")?;
    if let Some(value) = spec.remove(from) {
        spec.insert(to.to_owned(), value);
    }
    Ok(converted)
}

fn wheels(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.org".to_owned(),
        version: version.to_owned(),
        api_version: format!("example.org/{version}"),
        kind: "Wheel".to_owned(),
        plural: "wheels".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn wheel(version: &str, spec: Value) -> DynamicObject {
    let object = json!({
        "apiVersion": format!("example.org/{version}"), "kind": "Wheel", "metadata": {"name": "a"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_converted_in_every_request_and_response() {
    let cluster = Cluster::start(&Options::seeded(4));
    cluster.convert("example.org", "Wheel", Arc::new(rename));
    let client = cluster.client("tester");
    install(&client).await;
    let (old, new) = (wheels(&client, "v1"), wheels(&client, "v2"));
    let made = old
        .create(&PostParams::default(), &wheel("v1", json!({"inches": 20})))
        .await;
    assert_eq!(made.unwrap().data["spec"], json!({"inches": 20}));
    let read = new.get("a").await.unwrap();
    assert_eq!(read.data["spec"], json!({"size": 20}));
    let patch = Patch::Merge(json!({"spec": {"size": 26}}));
    new.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let listed = old.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].data["spec"], json!({"inches": 26}));
    assert_eq!(listed.items[0].metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn failed_conversion_is_an_internal_error() {
    let cluster = Cluster::start(&Options::seeded(4));
    cluster.convert("example.org", "Wheel", Arc::new(rename));
    let client = cluster.client("tester");
    install(&client).await;
    let without_spec: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "example.org/v1", "kind": "Wheel", "metadata": {"name": "a"},
    }))
    .unwrap();
    let refused = wheels(&client, "v1")
        .create(&PostParams::default(), &without_spec)
        .await;
    let kube::Error::Api(status) = refused.unwrap_err() else {
        panic!("an API error was expected");
    };
    assert_eq!(status.code, 500);
    assert!(status.message.contains("no spec"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn kinds_of_the_provider_convert_and_others_are_rejected_without_a_function() {
    let cluster = Cluster::start(&Options::seeded(4));
    cluster.install(&metal3_api::catalog::definitions()).unwrap();
    let mut definition: Value = metal3_api::catalog::definitions()
        .iter()
        .find(|definition| definition.kind == "Metal3Cluster")
        .unwrap()
        .manifest();
    let rename = |definition: &mut Value, at: &str, name: &str| *definition.pointer_mut(at).unwrap() = name.into();
    rename(&mut definition, "/spec/group", "example.org");
    rename(&mut definition, "/metadata/name", "metal3clusters.example.org");
    let client = cluster.client("tester");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(definition).unwrap())
        .await
        .unwrap();
    for (group, converts) in [("infrastructure.cluster.x-k8s.io", true), ("example.org", false)] {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v1beta1".to_owned(),
            api_version: format!("{group}/v1beta1"),
            kind: "Metal3Cluster".to_owned(),
            plural: "metal3clusters".to_owned(),
        };
        let object = json!({
            "apiVersion": resource.api_version, "kind": "Metal3Cluster", "metadata": {"name": "a"},
            "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
        });
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
        let made = api
            .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
            .await;
        match made {
            Ok(_) => assert!(converts),
            Err(kube::Error::Api(status)) => assert_eq!((status.code, converts), (501, false), "{}", status.message),
            Err(other) => panic!("an API error was expected: {other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_collector_empties_and_removes_a_namespace() {
    let cluster = Cluster::start(&Options::seeded(4));
    let client = cluster.client("tester");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let named = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces
        .create(&PostParams::default(), &named("going"))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "going");
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.org/hold"]}});
    let held: ConfigMap = serde_json::from_value(held).unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    let scenario = async {
        // Let the collector start first.
        tokio::task::yield_now().await;
        namespaces.delete("going", &DeleteParams::default()).await.unwrap();
        let mut turns = 0;
        while maps.get("held").await.unwrap().meta().deletion_timestamp.is_none() {
            turns += 1;
            assert!(turns < 100, "the collector deletes objects with finalizers");
            tokio::task::yield_now().await;
        }
        assert!(namespaces.get_opt("going").await.unwrap().is_some());
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        maps.patch("held", &PatchParams::default(), &release).await.unwrap();
        while namespaces.get_opt("going").await.unwrap().is_some() {
            turns += 1;
            assert!(turns < 200, "the collector removes an empty namespace");
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = cluster.run_collector() => panic!("the collector runs for ever"),
        () = scenario => {}
    }
}

#[tokio::test]
async fn foreground_deletion_removes_dependents_before_and_orphaning_keeps_them() {
    let cluster = Cluster::start(&Options::seeded(1));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("tester"), "default");
    for (policy, dependents) in [(DeleteParams::foreground(), 0), (DeleteParams::orphan(), 1)] {
        let owner: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "owner"}})).unwrap();
        let owner = api.create(&PostParams::default(), &owner).await.unwrap();
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid, "blockOwnerDeletion": true,
        });
        let finalizers: &[&str] = if dependents == 0 { &["example.org/hold"] } else { &[] };
        let dependent = json!({"metadata": {
            "name": "dependent", "ownerReferences": [reference], "finalizers": finalizers,
        }});
        let dependent: ConfigMap = serde_json::from_value(dependent).unwrap();
        api.create(&PostParams::default(), &dependent).await.unwrap();
        let marked = api.delete("owner", &policy).await.unwrap();
        assert!(marked.is_left(), "the owner stays until the collector is done");
        while cluster.collect_garbage() > 0 {}
        let is_held = api.get_opt("owner").await.unwrap().is_some();
        assert_eq!(
            is_held,
            dependents == 0,
            "the owner waits for a dependent that is deleted before it"
        );
        if is_held {
            let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            api.patch("dependent", &PatchParams::default(), &release).await.unwrap();
            while cluster.collect_garbage() > 0 {}
        }
        assert!(api.get_opt("owner").await.unwrap().is_none());
        let left = api.get_opt("dependent").await.unwrap();
        assert_eq!(left.iter().count(), dependents);
        assert!(left.is_none_or(|left| left.metadata.owner_references.is_none()));
    }
}

/// Two owners release the same object, which neither deletion may take.
#[tokio::test]
async fn object_that_two_owners_orphan_stays_and_one_with_another_owner_blocks_no_deletion() {
    let cluster = Cluster::start(&Options::seeded(1));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("tester"), "default");
    let make = async |meta: Value| -> ConfigMap {
        let object = serde_json::from_value(json!({ "metadata": meta })).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    };
    for (first, second) in [
        (DeleteParams::orphan(), Some(DeleteParams::orphan())),
        (DeleteParams::foreground(), None),
    ] {
        let owners = [make(json!({"name": "a"})).await, make(json!({"name": "b"})).await];
        let references = owners.map(|owner| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid,
                "blockOwnerDeletion": true})
        });
        make(json!({"name": "dependent", "ownerReferences": references})).await;
        api.delete("a", &first).await.unwrap();
        if let Some(second) = &second {
            api.delete("b", second).await.unwrap();
        }
        while cluster.collect_garbage() > 0 {}
        assert!(api.get_opt("a").await.unwrap().is_none());
        let left = api.get("dependent").await.unwrap().metadata.owner_references;
        assert_eq!(left.map_or(0, |left| left.len()), usize::from(second.is_none()));
        for name in ["b", "dependent"] {
            if api.get_opt(name).await.unwrap().is_some() {
                api.delete(name, &DeleteParams::default()).await.unwrap();
            }
        }
        while cluster.collect_garbage() > 0 {}
    }
}
