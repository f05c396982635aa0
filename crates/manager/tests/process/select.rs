//! Which host a machine would choose, as users ask for it.

use kube::api::{Patch, PatchParams};
use metal3_api::catalog;
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_manager::select::{Select, parse};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

fn host(name: &str, domain: &str, change: Value) -> Value {
    let mut host = json!({
        "metadata": { "name": name, "labels": { "rack": "a", "infrastructure.cluster.x-k8s.io/failure-domain": domain } },
        "spec": { "online": false },
    });
    metal3_runtime::patch::apply(&change, &mut host);
    host
}

async fn create_available(world: &TestCluster, document: Value) {
    let made = world.create::<BareMetalHost>(document).await;
    let status = json!({ "status": { "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false,
        "provisioning": { "state": "available", "ID": "", "image": { "url": "" } } } });
    let (name, params) = (made.metadata.name.unwrap(), PatchParams::default());
    world
        .api::<BareMetalHost>()
        .patch_status(&name, &params, &Patch::Merge(status))
        .await
        .unwrap();
}

async fn answer(world: &TestCluster, machine: &str) -> anyhow::Result<Vec<String>> {
    let wanted = Select {
        namespace: NAMESPACE.to_owned(),
        machine: machine.to_owned(),
    };
    let mut lines = Vec::new();
    wanted
        .run(&world.cluster.client("user"), &mut |line| lines.push(line))
        .await?;
    Ok(lines)
}

#[tokio::test(start_paused = true)]
async fn order_of_choice_and_reasons_are_printed_for_a_machine() {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let consumer = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "name": "other", "namespace": NAMESPACE });
    for document in [
        host("near", "north", json!({})),
        host("far", "south", json!({})),
        host("used", "north", json!({ "spec": { "consumerRef": consumer } })),
        host("rack-b", "north", json!({ "metadata": { "labels": { "rack": "b" } } })),
        host(
            "paused",
            "north",
            json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
        ),
    ] {
        create_available(&world, document).await;
    }
    let owner = json!({ "metadata": { "name": "m0" }, "spec": { "clusterName": "edge", "failureDomain": "north",
        "bootstrap": {}, "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "m0" } } });
    let owner = world.create::<Machine>(owner).await;
    let owners = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m0", "uid": owner.metadata.uid }]);
    let spec = json!({ "hostSelector": { "matchLabels": { "rack": "a" } }, "image": { "url": "http://192.0.2.1/i", "checksum": "c", "format": "raw" } });
    world
        .create::<Metal3Machine>(json!({ "metadata": { "name": "m0", "ownerReferences": owners }, "spec": spec }))
        .await;
    assert_eq!(
        answer(&world, "m0").await.unwrap(),
        [
            &format!("Metal3Machine {NAMESPACE}/m0"),
            "can claim 2 of 5 hosts, in this order:",
            "+ near, in its failure domain",
            "+ far",
            "- paused: paused",
            "- rack-b: not matched by spec.hostSelector: label rack is not a",
            "- used: in use by Metal3Machine other",
        ]
    );
    let error = answer(&world, "absent").await.unwrap_err().to_string();
    assert!(error.contains("absent does not exist"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn kept_host_that_two_clusters_may_have_is_refused_as_by_the_controller() {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let kept = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers" } } });
    for document in [host("kept", "north", kept), host("spare", "north", json!({}))] {
        create_available(&world, document).await;
    }
    let of = |name: &str, cluster: &str| {
        let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/deployment-name": "workers" });
        let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
        json!({ "metadata": { "name": name, "labels": labels },
            "spec": { "clusterName": cluster, "bootstrap": {}, "infrastructureRef": reference } })
    };
    let owner = world.create::<Machine>(of("m0", "edge")).await;
    let owners = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m0", "uid": owner.metadata.uid }]);
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
    let spec = json!({ "image": { "url": "http://192.0.2.1/i", "checksum": "c", "format": "raw" } });
    let meta = json!({ "name": "m0", "labels": labels, "ownerReferences": owners });
    world
        .create::<Metal3Machine>(json!({ "metadata": meta, "spec": spec }))
        .await;
    let lines = answer(&world, "m0").await.unwrap();
    assert_eq!(
        lines[1..],
        [
            "can claim 1 of 2 hosts, in this order:",
            "+ kept, kept for its owner",
            "- spare: free, but another is kept for this machine"
        ]
    );
    world.create::<Machine>(of("m1", "other")).await;
    let lines = answer(&world, "m0").await.unwrap();
    assert_eq!(
        lines[1..],
        [
            "can claim 0 of 2 hosts, in this order:",
            "- kept: kept for an owner of this name, but for which Cluster is not stated",
            "- spare: free, but another is kept for this machine",
        ]
    );
}

#[test]
fn arguments_of_select_are_checked() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (wanted, chosen) = parse(words("--machine m0 --namespace=lab --kubeconfig k --context=c")).unwrap();
    let wanted = wanted.in_namespace("default");
    assert_eq!((wanted.machine.as_str(), wanted.namespace.as_str()), ("m0", "lab"));
    // That of the kubeconfig, as kubectl does it.
    let (wanted, _) = parse(words("--machine m0")).unwrap();
    assert_eq!(wanted.in_namespace("context").namespace, "context");
    let named = (chosen.kubeconfig.as_deref(), chosen.context.as_deref());
    assert_eq!(named, (Some("k"), Some("c")));
    for wrong in ["", "--machine", "--host h0"] {
        let error = parse(words(wrong)).unwrap_err().to_string();
        assert!(error.contains("--machine=NAME"), "{error}");
    }
}
