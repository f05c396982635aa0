//! What a user does before there is a cluster: the manager of hosts with its way to Ironic, Cluster API with the release,
//! a host for each machine, and the cluster's manifest.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::Scene;
use super::fleet::Fleet;
use crate::claims::world::World;
use crate::products::machines::{NAMESPACE, scene};
use crate::products::release::FIRST;
use crate::products::{Proof, load, machines};
use crate::wait::Stopwatch;

/// Last element of the image's name in the release.
pub(super) const IMAGE: &str = "capm3";
/// Namespace of the manager of hosts.
pub(super) const HOSTS: &str = "baremetal-operator-system";
/// Where the manifest looks for Ironic unless somebody edits it.
const ELSEWHERE: &str = "https://ironic.baremetal-operator-system.svc:6385";
/// Announced by the first machine while it is on.
pub(super) const ENDPOINT: &str = "10.245.0.1";
/// Where endpoints are.
pub(super) const ENDPOINTS: &str = "10.245.0.0/24";
pub(super) const PORT: u16 = 6443;
/// The control plane is given etcd from outside: the real manager asks managed etcd more than a stand-in could answer.
pub(super) const ETCD: &str = "
    clusterConfiguration:
      etcd:
        external:
          endpoints: ['http://10.244.0.1:2379']
          caFile: /etc/kubernetes/pki/etcd/ca.crt
          certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
          keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key";

/// The manager of hosts, and hosts: they are inspected while the rest is installed.
pub(super) fn hosts(scene: &Scene<'_>) -> Proof {
    let (world, fleet) = (scene.world, scene.fleet);
    let watch = Stopwatch::start();
    first_manager_of_hosts(scene)?;
    world.room(NAMESPACE)?.stays();
    create(world, NAMESPACE, &of_machines(fleet)?)?;
    let replicas = load::list(world, HOSTS, "deployments")?;
    let replicas = replicas.first().context("no Deployment")?["status"]["availableReplicas"].clone();
    Ok(format!("{replicas} replicas, {:.1} s", watch.elapsed().as_secs_f64()))
}

/// The manager of hosts, with its way to Ironic, where there was none.
pub(super) fn first_manager_of_hosts(scene: &Scene<'_>) -> anyhow::Result<()> {
    scene.world.kubectl(&["create", "namespace", HOSTS])?;
    create(scene.world, HOSTS, &way_to_ironic(scene.fleet)?)?;
    manager_of_hosts(scene, FIRST)
}

/// The manager of hosts in a version: installed, or put in the place of another version.
pub(super) fn manager_of_hosts(scene: &Scene<'_>, version: &str) -> anyhow::Result<()> {
    let text = machines::tagged(&scene.release.join("hosts-components.yaml"), version)?;
    ensure!(
        text.contains(ELSEWHERE),
        "the release names no {ELSEWHERE} to be edited"
    );
    let text = text.replace(ELSEWHERE, scene.fleet.ironic_url());
    let words = ["apply", "--server-side", "--filename", "-"];
    scene.world.run("kubectl", &words, Some(&text))?;
    let all = ["rollout", "status", "deployment", "--timeout=120s"];
    scene
        .world
        .kubectl(&[&["--namespace", HOSTS][..], &all].concat())
        .map(drop)
}

pub(super) fn providers(scene: &Scene<'_>) -> Proof {
    machines::initialized(scene.world, scene.release)
}

pub(super) fn create(world: &World, namespace: &str, items: &[Value]) -> anyhow::Result<()> {
    let all = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let words = ["--namespace", namespace, "create", "--filename", "-"];
    world.run("kubectl", &words, Some(&all)).map(drop)
}

fn secret(name: &str, values: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values})
}

fn way_to_ironic(fleet: &Fleet) -> anyhow::Result<Vec<Value>> {
    let [(username, password), _] = fleet.logins();
    Ok(vec![
        secret(
            "ironic-credentials",
            json!({"username": username, "password": password}),
        ),
        secret(
            "ironic-cacert",
            json!({"tls.crt": fs::read_to_string(&fleet.authority)?}),
        ),
    ])
}

fn of_machines(fleet: &Fleet) -> anyhow::Result<Vec<Value>> {
    let mut items = Vec::new();
    for machine in &fleet.machines {
        items.extend(of_machine(fleet, machine)?);
    }
    Ok(items)
}

/// The host of a machine, and the login of its BMC.
pub(super) fn of_machine(fleet: &Fleet, machine: &Value) -> anyhow::Result<[Value; 2]> {
    let [_, (username, password)] = fleet.logins();
    let number = &machine["number"];
    let root = machine["redfish_address"].as_str().context("a machine without a BMC")?;
    let root = root.replacen("https://", "redfish-virtualmedia://", 1);
    let system = machine["redfish_system_id"].as_str().unwrap_or_default();
    let login = format!("bmc-{number}");
    // Its certificate is its own.
    let bmc = json!({"address": format!("{}{system}", root.trim_end_matches('/')), "credentialsName": login,
        "disableCertificateVerification": true});
    Ok([
        secret(&login, json!({"username": username, "password": password})),
        json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": host(number)},
            "spec": {"online": true, "bootMACAddress": machine["macs"][0], "bmc": bmc}}),
    ])
}

/// Name of a machine's host.
pub(super) fn host(number: &Value) -> String {
    format!("host-{number}")
}

/// The number of a host's machine.
pub(super) fn machine(host: &str) -> anyhow::Result<u64> {
    let number = host.strip_prefix("host-").and_then(|number| number.parse().ok());
    number.with_context(|| format!("{host} is no host of this lab"))
}

/// The cluster that the release's template describes.
pub(super) fn cluster(scene: &Scene<'_>) -> anyhow::Result<()> {
    cluster_with(scene, |_| Ok(()))
}

/// The same with a change of its objects, and what its etcd is reached with.
pub(super) fn cluster_with(
    scene: &Scene<'_>,
    change: impl FnOnce(&mut Vec<Value>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let world = scene.world;
    // After so many new kinds the API server makes the documents of all of them anew. kubectl reads them before it sends
    // anything, and on a busy machine loses patience.
    world.kubectl(&["get", "--raw", "/openapi/v2"])?;
    // What belongs to no Cluster moves with none.
    let mut addresses = load::pool("workers", "10.66.0.10", "10.66.0.40");
    addresses["spec"]["clusterName"] = scene::CLUSTER.into();
    let [authority, login] = etcd_of(world, scene::CLUSTER)?;
    apply(world, NAMESPACE, &[authority, login, addresses])?;
    let image = scene.fleet.image_url()?;
    let manifest = scene::generate(
        world,
        &[
            format!("CLUSTER_APIENDPOINT_HOST={ENDPOINT}"),
            format!("CLUSTER_APIENDPOINT_PORT={PORT}"),
            format!("IMAGE_URL={image}"),
            format!("IMAGE_CHECKSUM={image}.sha256"),
            "IMAGE_CHECKSUM_TYPE=sha256".to_owned(),
            "IMAGE_FORMAT=raw".to_owned(),
            format!("CTLPLANE_KUBEADM_EXTRA_CONFIG={ETCD}"),
        ],
    )?;
    let documents = manifest.split("---\n").filter(|document| !document.trim().is_empty());
    let mut objects = documents
        .map(|document| Ok(serde_saphyr::from_str(document)?))
        .collect::<anyhow::Result<Vec<Value>>>()?;
    change(&mut objects)?;
    apply(world, NAMESPACE, &objects)
}

/// What the control plane of a cluster reaches its etcd with.
pub(super) fn etcd_of(world: &World, cluster: &str) -> anyhow::Result<[Value; 2]> {
    let of_etcd = |name: &str, values: Value| {
        let mut secret = secret(&format!("{cluster}-{name}"), values);
        secret["type"] = "cluster.x-k8s.io/secret".into();
        secret["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": cluster});
        secret
    };
    // The stack's etcd asks nobody who they are: these are installed, and shown to nobody.
    let pem = |path| fs::read_to_string(path);
    let authority = pem(world.places.certificate(crate::pki::AUTHORITY))?;
    let (certificate, key) = (
        pem(world.places.certificate(crate::pki::ADMIN))?,
        pem(world.places.key(crate::pki::ADMIN))?,
    );
    Ok([
        of_etcd("etcd", json!({"tls.crt": authority})),
        of_etcd("apiserver-etcd-client", json!({"tls.crt": certificate, "tls.key": key})),
    ])
}

/// Objects of a namespace; those of the last cluster may be there still.
pub(super) fn apply(world: &World, namespace: &str, items: &[Value]) -> anyhow::Result<()> {
    let all = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let words = ["--namespace", namespace, "apply", "--filename", "-"];
    world.run("kubectl", &words, Some(&all)).map(drop)
}
