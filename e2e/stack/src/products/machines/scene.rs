//! What users put there: hosts, a pool of addresses, and the manifest of a cluster.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::claims::world::World;
use crate::products::load::pool;

pub(crate) const CLUSTER: &str = "edge";
pub(super) const HOSTS: usize = 6;

/// Hosts with their credentials, and the way into the workload cluster.
pub(super) fn set(world: &World) -> anyhow::Result<()> {
    world.room(NAMESPACE)?.stays();
    let mut items = Vec::new();
    for number in 0..HOSTS {
        let login = format!("host-{number}-bmc");
        items.push(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": login},
            "stringData": {"username": "admin", "password": "hunter2"}}),
        );
        let address = format!("redfish://192.0.2.1/redfish/v1/Systems/{number}");
        items.push(json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": format!("host-{number}")},
            "spec": {"online": false, "bootMACAddress": format!("52:54:00:00:00:0{number}"),
                "bmc": {"address": address, "credentialsName": login}}}));
    }
    items.push(pool("workers", "10.66.0.10", "10.66.0.40"));
    let kubeconfig = world.kubectl(&["config", "view", "--raw", "--flatten"])?;
    items.push(
        json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{CLUSTER}-kubeconfig"), "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER}},
        "stringData": {"value": kubeconfig}}),
    );
    let all = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let words = ["--namespace", NAMESPACE, "create", "--filename", "-"];
    world.run("kubectl", &words, Some(&all)).map(drop)
}

/// The cluster as clusterctl generates it, with an address for each worker.
pub(super) fn manifest(world: &World) -> anyhow::Result<String> {
    let server = world.kubectl(&[
        "config",
        "view",
        "--minify",
        "--output=jsonpath={.clusters[0].cluster.server}",
    ])?;
    let (host, port) = server
        .strip_prefix("https://")
        .and_then(|address| address.rsplit_once(':'))
        .with_context(|| format!("{server} is no address"))?;
    generate(
        world,
        &[
            format!("CLUSTER_APIENDPOINT_HOST={host}"),
            format!("CLUSTER_APIENDPOINT_PORT={port}"),
            "IMAGE_URL=http://192.0.2.9/os.raw".to_owned(),
            "IMAGE_CHECKSUM=http://192.0.2.9/os.raw.sha256".to_owned(),
            "IMAGE_CHECKSUM_TYPE=sha256".to_owned(),
            "IMAGE_FORMAT=raw".to_owned(),
        ],
    )
}

/// One control plane machine and two workers, as clusterctl generates them of these variables, with an address for each
/// worker.
pub(crate) fn generate(world: &World, variables: &[String]) -> anyhow::Result<String> {
    let mut words: Vec<&str> = variables.iter().map(String::as_str).collect();
    words.extend([
        "clusterctl",
        "generate",
        "cluster",
        CLUSTER,
        "--infrastructure",
        "metal3",
    ]);
    words.extend(["--target-namespace", NAMESPACE, "--kubernetes-version", "v1.36.3"]);
    words.extend(["--control-plane-machine-count", "1", "--worker-machine-count", "2"]);
    let text = world.run("env", &words, None)?;
    with_addresses(&text)
}

/// The last list of the workers' data template, and one more member after it.
fn with_addresses(text: &str) -> anyhow::Result<String> {
    let addressed = "\n  metaData:\n    ipAddressesFromPool:\n    - key: address\n      apiGroup: ipam.metal3.io\n      kind: IPPool\n      name: workers\n";
    let at = format!("name: {CLUSTER}-workers-template\n");
    let mut documents: Vec<String> = text.split("---\n").map(str::to_owned).collect();
    let template = documents
        .iter_mut()
        .find(|document| document.contains("\nkind: Metal3DataTemplate\n") && document.contains(&at));
    let template = template.context("the template of the workers' data is not there")?;
    ensure!(template.contains("\n  metaData:\n"), "{template}");
    *template = template.replace("\n  metaData:\n", addressed);
    Ok(documents.join("---\n"))
}

/// Objects of a kind, by what is true of them.
pub(crate) fn count(objects: &[Value], is: impl Fn(&Value) -> bool) -> usize {
    objects.iter().filter(|object| is(object)).count()
}
