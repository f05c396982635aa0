//! The claim about unmodified clusterctl: Cluster API's providers and two releases of a test provider.
//!
//! It is one claim because each step depends on the previous ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::stack::{Stack, TIMEOUT};
use super::workloads::deployment;
use crate::claim::Proof;
use crate::repository::{self, Kind, Release};
use crate::wait::{Stopwatch, until};

const NAMESPACE: &str = "test-server-system";
pub(crate) const CLUSTER_API: [&str; 6] = [
    "--core",
    "cluster-api",
    "--bootstrap",
    "kubeadm",
    "--control-plane",
    "kubeadm",
];

pub(super) fn clusterctl_installs_upgrades_describes_and_deletes_providers(stack: &Stack) -> Proof {
    let mut figures = Vec::new();
    let mut timed = |what: &str, step: &dyn Fn() -> anyhow::Result<()>| {
        let watch = Stopwatch::start();
        let done = step().with_context(|| what.to_owned());
        figures.push(format!("{what} {:.1} s", watch.elapsed().as_secs_f64()));
        done
    };
    release(stack, "v0.1.0")?;
    timed("init of three providers", &|| init(stack, &CLUSTER_API, true))?;
    timed("init of one more", &|| {
        init(stack, &["--infrastructure", "test-server"], true)
    })?;
    ensure!(
        image(stack)? == "example.org/suite/test-server:v0.1.0",
        "{}",
        image(stack)?
    );
    describe(stack)?;
    release(stack, "v0.1.1")?;
    let plan = stack.run("clusterctl", &["upgrade", "plan"], None)?;
    ensure!(
        plan.contains("infrastructure-test-server") && plan.contains("v0.1.1"),
        "the plan offers no upgrade: {plan}"
    );
    timed("upgrade", &|| {
        stack
            .run(
                "clusterctl",
                &["upgrade", "apply", "--contract", "v1beta2", "--wait-providers"],
                None,
            )
            .map(drop)
    })?;
    ensure!(
        image(stack)? == "example.org/suite/test-server:v0.1.1",
        "{}",
        image(stack)?
    );
    if let Some(upstream) = &stack.upstream {
        third_parties(stack, upstream)?;
        figures.push("third-party manifests are installed, their Pods report `no binary for image`".to_owned());
    }
    let watch = Stopwatch::start();
    delete(stack)?;
    figures.push(format!("delete {:.1} s", watch.elapsed().as_secs_f64()));
    Ok(figures.join(", "))
}

fn init(stack: &Stack, providers: &[&str], wait: bool) -> anyhow::Result<()> {
    // clusterctl deletes the namespace of its cert-manager check asynchronously; the next check would collide.
    stack.kubectl(&["wait", "--for=delete", "namespace/cert-manager-test", "--timeout=120s"])?;
    let mut args = vec!["init"];
    args.extend(providers);
    if wait {
        args.push("--wait-providers");
    }
    stack.run("clusterctl", &args, None).map(drop)
}

/// Creates a Cluster with the test provider's infrastructure; clusterctl shows both.
fn describe(stack: &Stack) -> anyhow::Result<()> {
    let namespace = stack.create_namespace("clusters")?;
    let infrastructure = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "TestCluster", "metadata": {"name": "one"}});
    namespace.apply(&infrastructure)?;
    namespace.apply(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "one"},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestCluster", "name": "one"}}}))?;
    namespace.until("testcluster/one", "owned by its Cluster", |object| {
        object["metadata"]["ownerReferences"][0]["kind"] == "Cluster"
    })?;
    let tree = stack.run(
        "clusterctl",
        &["describe", "cluster", "one", "--namespace", "clusters"],
        None,
    )?;
    ensure!(
        tree.contains("Cluster clusters/one") && tree.contains("TestCluster clusters/one"),
        "{tree}"
    );
    namespace
        .kubectl(&["delete", "cluster", "one", "--timeout=60s"])
        .map(drop)
}

/// Deletes one provider at a time with its CRDs: clusterctl's discovery cache becomes stale while it deletes them, and it
/// stops half-way. Cluster API's CRDs stay.
fn delete(stack: &Stack) -> anyhow::Result<()> {
    clusterctl_delete(stack, &["--infrastructure", "test-server", "--include-crd"])?;
    clusterctl_delete(stack, &["--all"])?;
    until(TIMEOUT, "the end of all managers", || {
        let left = stack.kubectl(&[
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

/// clusterctl lists the objects of every kind in discovery and fails on a kind whose CRD is gone. Discovery is behind the
/// deletion of CRDs for a moment: the next deletion waits for it.
fn clusterctl_delete(stack: &Stack, providers: &[&str]) -> anyhow::Result<()> {
    until(TIMEOUT, "discovery without the kinds of deleted CRDs", || {
        let served = stack.kubectl(&["api-resources", "--cached=false", "--output=name"])?;
        let defined = stack.kubectl(&["get", "customresourcedefinitions", CRDS_NOT_BEING_DELETED])?;
        Ok(kinds_without_crd(&served, &defined).is_empty().then_some(()))
    })?;
    stack
        .run("clusterctl", &[&["delete"], providers].concat(), None)
        .map(drop)
}

/// The names of the CRDs, one a line. A CRD has the name that `kubectl api-resources --output=name` prints for its kind.
const CRDS_NOT_BEING_DELETED: &str = r#"--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}"#;

/// The kinds of providers that discovery lists although no CRD defines them.
fn kinds_without_crd<'a>(served: &'a str, defined: &str) -> Vec<&'a str> {
    let defined: BTreeSet<&str> = defined.lines().collect();
    served
        .lines()
        .filter(|name| name.ends_with(".x-k8s.io") || name.ends_with(".metal3.io"))
        .filter(|name| !defined.contains(name))
        .collect()
}

fn image(stack: &Stack) -> anyhow::Result<String> {
    let path = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    stack.kubectl(&[
        "get",
        "deployment",
        "test-server-manager",
        "--namespace",
        NAMESPACE,
        path,
    ])
}

/// Adds a release of the test provider to the repository.
fn release(stack: &Stack, version: &str) -> anyhow::Result<()> {
    let folder = stack.places.state_file("suite").join(version);
    fs::create_dir_all(&folder)?;
    let (components, metadata) = (folder.join("components.yaml"), folder.join("metadata.yaml"));
    let documents: Vec<String> = objects(version).iter().map(Value::to_string).collect();
    fs::write(&components, documents.join("\n---\n"))?;
    fs::write(&metadata, self::metadata(0, 1))?;
    add(
        stack,
        Kind::Infrastructure,
        "test-server",
        version,
        (components, metadata),
    )
}

fn add(stack: &Stack, kind: Kind, provider: &str, version: &str, files: (PathBuf, PathBuf)) -> anyhow::Result<()> {
    let (components, metadata) = files;
    let release = Release {
        kind,
        provider: provider.to_owned(),
        version: version.to_owned(),
        components,
        metadata,
        templates: Vec::new(),
    };
    repository::put(&stack.places, &release)
}

fn metadata(major: u32, minor: u32) -> String {
    format!(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {{major: {major}, minor: {minor}, contract: v1beta2}}\n"
    )
}

/// An infrastructure kind by Cluster API's contract, `TestCluster`, with the role for Cluster API.
pub(crate) fn infrastructure() -> [Value; 2] {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    [
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "testclusters.infrastructure.cluster.x-k8s.io", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
            "spec": {"group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
                "names": {"kind": "TestCluster", "listKind": "TestClusterList", "plural": "testclusters", "singular": "testcluster"},
                "versions": [{"name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "test-server-aggregated", "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}},
            "rules": [{"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["testclusters", "testclusters/status"],
                "verbs": ["*"]}]}),
    ]
}

/// A minimal provider: one kind, one manager.
fn objects(version: &str) -> Vec<Value> {
    let mut manager = deployment("test-server-manager", 1, &json!(["--lease=test-server"]));
    manager["metadata"]["namespace"] = json!(NAMESPACE);
    let container = &mut manager["spec"]["template"]["spec"]["containers"][0];
    container["name"] = json!("manager");
    container["image"] = json!(format!("example.org/suite/test-server:{version}"));
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

/// Unmodified manifests of other providers: CAPM3 and IPAM through clusterctl, the host operator through kubectl.
fn third_parties(stack: &Stack, folder: &Path) -> anyhow::Result<()> {
    let suite = stack.places.state_file("suite");
    let ipam_metadata = suite.join("ipam-metadata.yaml");
    fs::write(&ipam_metadata, metadata(1, 14))?;
    let file = |name: &str| folder.join(name);
    let capm3 = (file("capm3-components.yaml"), file("capm3-metadata.yaml"));
    add(stack, Kind::Infrastructure, "metal3", "v1.14.0", capm3)?;
    add(
        stack,
        Kind::Ipam,
        "metal3",
        "v1.14.0",
        (file("ipam-components.yaml"), ipam_metadata),
    )?;
    init(stack, &["--infrastructure", "metal3", "--ipam", "metal3"], false)?;
    let operator = file("baremetal-operator-components.yaml");
    let operator = operator.to_str().context("the folder's name is not text")?;
    // None of its manifests contains the namespace.
    stack.kubectl(&["create", "namespace", "baremetal-operator-system"])?;
    stack.kubectl(&["apply", "--server-side", "--filename", operator])?;
    for namespace in ["capm3-system", "metal3-ipam-system", "baremetal-operator-system"] {
        without_binary(stack, namespace).with_context(|| namespace.to_owned())?;
    }
    for provider in ["--infrastructure", "--ipam"] {
        clusterctl_delete(stack, &[provider, "metal3", "--include-crd"])?;
    }
    stack
        .kubectl(&["delete", "--filename", operator, "--ignore-not-found", "--wait=false"])
        .map(drop)
}

fn without_binary(stack: &Stack, namespace: &str) -> anyhow::Result<()> {
    until(TIMEOUT, "the Pod's status", || {
        let list = stack.kubectl(&["get", "pods", "--namespace", namespace, "--output=json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let waiting = &list["items"][0]["status"]["containerStatuses"][0]["state"]["waiting"];
        match waiting["reason"].as_str() {
            Some("NoBinaryForImage") => Ok(Some(())),
            Some(other) => bail!("{other}: {}", waiting["message"]),
            None => Ok(None),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::kinds_without_crd;

    #[test]
    fn kind_in_discovery_whose_crd_is_gone_is_found() {
        let served = "pods\ndeployments.apps\ntestclusters.infrastructure.cluster.x-k8s.io\nclusters.cluster.x-k8s.io\nippools.ipam.metal3.io\n";
        let defined = "clusters.cluster.x-k8s.io\nippools.ipam.metal3.io\n";
        assert_eq!(
            kinds_without_crd(served, defined),
            ["testclusters.infrastructure.cluster.x-k8s.io"]
        );
        assert!(kinds_without_crd(defined, defined).is_empty());
    }
}
