//! The claim about clusterctl, unmodified: Cluster API's own providers and two releases of a provider of the suite.
//!
//! It is one claim and not five: each step stands on the one before.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::workloads::deployment;
use super::world::{PATIENCE, World};
use crate::repository::{self, Kind, Release};
use crate::wait::{Stopwatch, until};

type Proof = anyhow::Result<String>;

const NAMESPACE: &str = "witness-system";
const CLUSTER_API: [&str; 6] = [
    "--core",
    "cluster-api",
    "--bootstrap",
    "kubeadm",
    "--control-plane",
    "kubeadm",
];

pub(super) fn clusterctl_installs_upgrades_describes_and_deletes_providers(world: &World) -> Proof {
    let mut figures = Vec::new();
    let mut timed = |what: &str, step: &dyn Fn() -> anyhow::Result<()>| {
        let watch = Stopwatch::start();
        let done = step().with_context(|| what.to_owned());
        figures.push(format!("{what} {:.1} s", watch.elapsed().as_secs_f64()));
        done
    };
    release(world, "v0.1.0")?;
    timed("init of three providers", &|| init(world, &CLUSTER_API, true))?;
    timed("init of one more", &|| {
        init(world, &["--infrastructure", "witness"], true)
    })?;
    ensure!(image(world)? == "example.org/suite/witness:v0.1.0", "{}", image(world)?);
    describe(world)?;
    release(world, "v0.1.1")?;
    let plan = world.run("clusterctl", &["upgrade", "plan"], None)?;
    ensure!(
        plan.contains("infrastructure-witness") && plan.contains("v0.1.1"),
        "the plan offers no upgrade: {plan}"
    );
    timed("upgrade", &|| {
        world
            .run(
                "clusterctl",
                &["upgrade", "apply", "--contract", "v1beta2", "--wait-providers"],
                None,
            )
            .map(drop)
    })?;
    ensure!(image(world)? == "example.org/suite/witness:v0.1.1", "{}", image(world)?);
    if let Some(upstream) = &world.upstream {
        third_parties(world, upstream)?;
        figures.push("third parties' manifests are installed, their Pods say `no binary for image`".to_owned());
    }
    let watch = Stopwatch::start();
    delete(world)?;
    figures.push(format!("delete {:.1} s", watch.elapsed().as_secs_f64()));
    Ok(figures.join(", "))
}

fn init(world: &World, providers: &[&str], wait: bool) -> anyhow::Result<()> {
    // Its last test of cert-manager takes some seconds to go, and the next one would meet it.
    world.kubectl(&["wait", "--for=delete", "namespace/cert-manager-test", "--timeout=120s"])?;
    let mut words = vec!["init"];
    words.extend(providers);
    if wait {
        words.push("--wait-providers");
    }
    world.run("clusterctl", &words, None).map(drop)
}

/// A Cluster with the suite's own infrastructure; clusterctl shows it and what it refers to.
fn describe(world: &World) -> anyhow::Result<()> {
    let room = world.room("clusters")?;
    let infrastructure = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "WitnessCluster", "metadata": {"name": "one"}});
    room.apply(&infrastructure)?;
    room.apply(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "one"},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "WitnessCluster", "name": "one"}}}))?;
    room.until("witnesscluster/one", "owned by its Cluster", |object| {
        object["metadata"]["ownerReferences"][0]["kind"] == "Cluster"
    })?;
    let tree = world.run(
        "clusterctl",
        &["describe", "cluster", "one", "--namespace", "clusters"],
        None,
    )?;
    ensure!(
        tree.contains("Cluster clusters/one") && tree.contains("WitnessCluster clusters/one"),
        "{tree}"
    );
    room.kubectl(&["delete", "cluster", "one", "--timeout=60s"]).map(drop)
}

/// One provider at a time with its kinds: what clusterctl knows of kinds grows old while it deletes them, and it stops
/// half-way. Cluster API's own kinds stay.
fn delete(world: &World) -> anyhow::Result<()> {
    world.run(
        "clusterctl",
        &["delete", "--infrastructure", "witness", "--include-crd"],
        None,
    )?;
    world.run("clusterctl", &["delete", "--all"], None)?;
    until(PATIENCE, "the end of all managers", || {
        let left = world.kubectl(&[
            "get",
            "deployments",
            "--all-namespaces",
            "--selector",
            "cluster.x-k8s.io/provider",
            "--output=name",
        ])?;
        Ok(left.trim().is_empty().then_some(()))
    })
}

fn image(world: &World) -> anyhow::Result<String> {
    let path = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    world.kubectl(&["get", "deployment", "witness-manager", "--namespace", NAMESPACE, path])
}

/// Puts a release of the suite's provider into the repository, as the project's own releases are put there.
fn release(world: &World, version: &str) -> anyhow::Result<()> {
    let folder = world.places.state_file("suite").join(version);
    fs::create_dir_all(&folder)?;
    let (components, metadata) = (folder.join("components.yaml"), folder.join("metadata.yaml"));
    let documents: Vec<String> = objects(version).iter().map(Value::to_string).collect();
    fs::write(&components, documents.join("\n---\n"))?;
    fs::write(&metadata, self::metadata(0, 1))?;
    add(world, Kind::Infrastructure, "witness", version, (components, metadata))
}

fn add(world: &World, kind: Kind, provider: &str, version: &str, files: (PathBuf, PathBuf)) -> anyhow::Result<()> {
    let (components, metadata) = files;
    let release = Release {
        kind,
        provider: provider.to_owned(),
        version: version.to_owned(),
        components,
        metadata,
        templates: Vec::new(),
    };
    repository::put(&world.places, &release)
}

fn metadata(major: u32, minor: u32) -> String {
    format!(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {{major: {major}, minor: {minor}, contract: v1beta2}}\n"
    )
}

/// A kind of infrastructure by Cluster API's contract, `WitnessCluster`, and what lets Cluster API at it.
pub(crate) fn infrastructure() -> [Value; 2] {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    [
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "witnessclusters.infrastructure.cluster.x-k8s.io", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
            "spec": {"group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
                "names": {"kind": "WitnessCluster", "listKind": "WitnessClusterList", "plural": "witnessclusters", "singular": "witnesscluster"},
                "versions": [{"name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "witness-aggregated", "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}},
            "rules": [{"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["witnessclusters", "witnessclusters/status"],
                "verbs": ["*"]}]}),
    ]
}

/// A provider in its smallest form: one kind, one manager.
fn objects(version: &str) -> Vec<Value> {
    let mut manager = deployment("witness-manager", 1, &json!(["--lease=witness"]));
    manager["metadata"]["namespace"] = json!(NAMESPACE);
    let container = &mut manager["spec"]["template"]["spec"]["containers"][0];
    container["name"] = json!("manager");
    container["image"] = json!(format!("example.org/suite/witness:{version}"));
    let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let [kind, role] = infrastructure();
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        kind,
        role,
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata("elect"),
            "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata("elect"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elect"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}]}),
        manager,
    ]
}

/// Manifests of other providers as they are: CAPM3 and IPAM through clusterctl, the host operator through kubectl.
fn third_parties(world: &World, folder: &Path) -> anyhow::Result<()> {
    let suite = world.places.state_file("suite");
    let ipam_metadata = suite.join("ipam-metadata.yaml");
    fs::write(&ipam_metadata, metadata(1, 14))?;
    let file = |name: &str| folder.join(name);
    let capm3 = (file("capm3-components.yaml"), file("capm3-metadata.yaml"));
    add(world, Kind::Infrastructure, "metal3", "v1.14.0", capm3)?;
    add(
        world,
        Kind::Ipam,
        "metal3",
        "v1.14.0",
        (file("ipam-components.yaml"), ipam_metadata),
    )?;
    init(world, &["--infrastructure", "metal3", "--ipam", "metal3"], false)?;
    let operator = file("baremetal-operator-components.yaml");
    let operator = operator.to_str().context("the folder's name is not text")?;
    // Its namespace is in none of its manifests.
    world.kubectl(&["create", "namespace", "baremetal-operator-system"])?;
    world.kubectl(&["apply", "--server-side", "--filename", operator])?;
    for namespace in ["capm3-system", "metal3-ipam-system", "baremetal-operator-system"] {
        without_binary(world, namespace).with_context(|| namespace.to_owned())?;
    }
    for provider in ["--infrastructure", "--ipam"] {
        world.run("clusterctl", &["delete", provider, "metal3", "--include-crd"], None)?;
    }
    world
        .kubectl(&["delete", "--filename", operator, "--ignore-not-found", "--wait=false"])
        .map(drop)
}

fn without_binary(world: &World, namespace: &str) -> anyhow::Result<()> {
    until(PATIENCE, "the Pod's word", || {
        let list = world.kubectl(&["get", "pods", "--namespace", namespace, "--output=json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let waiting = &list["items"][0]["status"]["containerStatuses"][0]["state"]["waiting"];
        match waiting["reason"].as_str() {
            Some("NoBinaryForImage") => Ok(Some(())),
            Some(other) => bail!("{other}: {}", waiting["message"]),
            None => Ok(None),
        }
    })
}
