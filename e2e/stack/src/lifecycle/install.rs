//! The steps of a user before a cluster exists: installs the host manager with access to Ironic, and Cluster API with the
//! release, creates a host for each machine, and applies the cluster's manifest.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::env::TestEnv;
use super::fleet::Fleet;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::machines::{NAMESPACE, template};
use crate::products::written::FIRST;
use crate::products::{load, machines};
use crate::wait::Stopwatch;

/// Last element of the image's name in the release.
pub(super) const IMAGE: &str = "capm3";
/// Namespace of the host manager.
pub(super) const HOSTS: &str = "baremetal-operator-system";
/// The default address of Ironic in the manifest.
const DEFAULT_IRONIC_URL: &str = "https://ironic.baremetal-operator-system.svc:6385";
/// Announced by the first running control plane machine.
pub(super) const ENDPOINT: &str = "10.245.0.1";
/// The subnet of endpoints.
pub(super) const ENDPOINTS: &str = "10.245.0.0/24";
pub(super) const PORT: u16 = 6443;
/// A pool that names no Cluster.
pub(super) const SHARED_POOL: &str = "shared";
/// The control plane uses external etcd: managed etcd requires more than the simulator provides.
pub(super) const ETCD: &str = "
    clusterConfiguration:
      etcd:
        external:
          endpoints: ['http://10.244.0.1:2379']
          caFile: /etc/kubernetes/pki/etcd/ca.crt
          certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
          keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key";

/// Installs the host manager and creates hosts: they are inspected during the following steps.
pub(super) fn hosts(env: &TestEnv<'_>) -> Proof {
    let (stack, fleet) = (env.stack, env.fleet);
    let watch = Stopwatch::start();
    first_manager_of_hosts(env)?;
    stack.create_namespace(NAMESPACE)?.keep();
    create(stack, NAMESPACE, &of_machines(fleet)?)?;
    let replicas = load::list(stack, HOSTS, "deployments")?;
    let replicas = replicas.first().context("no Deployment")?["status"]["availableReplicas"].clone();
    Ok(format!("{replicas} replicas, {:.1} s", watch.elapsed().as_secs_f64()))
}

/// Installs the host manager with its credentials of Ironic.
pub(super) fn first_manager_of_hosts(env: &TestEnv<'_>) -> anyhow::Result<()> {
    env.stack.kubectl(&["create", "namespace", HOSTS])?;
    create(env.stack, HOSTS, &ironic_credentials(env.fleet)?)?;
    manager_of_hosts(env, FIRST)
}

/// Installs a version of the host manager, or replaces the installed one.
pub(super) fn manager_of_hosts(env: &TestEnv<'_>, version: &str) -> anyhow::Result<()> {
    let text = hosts_components(env, version)?;
    let args = ["apply", "--server-side", "--filename", "-"];
    env.stack.run("kubectl", &args, Some(&text))?;
    let all = ["rollout", "status", "deployment", "--timeout=120s"];
    env.stack
        .kubectl(&[&["--namespace", HOSTS][..], &all].concat())
        .map(drop)
}

/// The components of hosts, with the address of Ironic.
pub(super) fn hosts_components(env: &TestEnv<'_>, version: &str) -> anyhow::Result<String> {
    let text = machines::tagged(&env.release.join("hosts-components.yaml"), version)?;
    ensure!(
        text.contains(DEFAULT_IRONIC_URL),
        "the release does not contain {DEFAULT_IRONIC_URL}"
    );
    Ok(text.replace(DEFAULT_IRONIC_URL, env.fleet.ironic_url()))
}

pub(super) fn providers(env: &TestEnv<'_>) -> Proof {
    machines::initialized(env.stack, env.release)
}

pub(super) fn create(stack: &Stack, namespace: &str, items: &[Value]) -> anyhow::Result<()> {
    stack.send(&["--namespace", namespace, "create"], items)
}

fn secret(name: &str, values: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values})
}

pub(super) fn ironic_credentials(fleet: &Fleet) -> anyhow::Result<Vec<Value>> {
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

/// The host of a machine and the login of its BMC.
pub(super) fn of_machine(fleet: &Fleet, machine: &Value) -> anyhow::Result<[Value; 2]> {
    let [_, (username, password)] = fleet.logins();
    let number = &machine["number"];
    let root = machine["redfish_address"].as_str().context("a machine without a BMC")?;
    let root = root.replacen("https://", "redfish-virtualmedia://", 1);
    let system = machine["redfish_system_id"].as_str().unwrap_or_default();
    let login = format!("bmc-{number}");
    // The certificate is self-signed.
    let bmc = json!({"address": format!("{}{system}", root.trim_end_matches('/')), "credentialsName": login,
        "disableCertificateVerification": true});
    let mut login = secret(&login, json!({"username": username, "password": password}));
    login["metadata"]["labels"] = json!({"environment.metal3.io": "baremetal"});
    Ok([
        login,
        json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": host(number)},
            "spec": {"online": true, "bootMACAddress": machine["macs"][0], "bmc": bmc}}),
    ])
}

pub(super) fn host(number: &Value) -> String {
    format!("host-{number}")
}

pub(super) fn machine(host: &str) -> anyhow::Result<u64> {
    let number = host.strip_prefix("host-").and_then(|number| number.parse().ok());
    number.with_context(|| format!("{host} is not a host of this fleet"))
}

/// Applies the cluster of the release's template.
pub(super) fn cluster(env: &TestEnv<'_>) -> anyhow::Result<()> {
    cluster_with(env, |_| Ok(()))
}

/// Gives each worker a second address, from a pool that names no Cluster.
fn use_shared_pool(objects: &mut [Value]) -> anyhow::Result<()> {
    let name = format!("{}-workers-template", template::CLUSTER);
    let mut templates = objects
        .iter_mut()
        .filter(|object| object["kind"] == "Metal3DataTemplate");
    let template = templates.find(|object| object["metadata"]["name"] == *name);
    let template = template.context("the workers' data template does not exist")?;
    let entries = template.pointer_mut("/spec/metaData/ipAddressesFromPool");
    let entries = entries.and_then(Value::as_array_mut).context("it has no addresses")?;
    entries.push(json!({
        "key": "shared", "apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": SHARED_POOL,
    }));
    Ok(())
}

/// Applies the cluster with changed objects, and its etcd credentials.
pub(super) fn cluster_with(
    env: &TestEnv<'_>,
    change: impl FnOnce(&mut Vec<Value>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stack = env.stack;
    // New CRDs make the API server rebuild its OpenAPI documents. kubectl reads them before each apply, and times out on a
    // busy machine.
    stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
    // clusterctl moves only objects that belong to a Cluster, and those whose kind has a label for it.
    let mut addresses = load::pool("workers", "10.66.0.10", "10.66.0.40");
    addresses["spec"]["clusterName"] = template::CLUSTER.into();
    let [authority, login] = etcd_of(stack, template::CLUSTER)?;
    let shared = load::pool(SHARED_POOL, "10.67.0.10", "10.67.0.40");
    apply(stack, NAMESPACE, &[authority, login, addresses, shared])?;
    let image = env.fleet.image_url()?;
    let manifest = template::generate(
        stack,
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
    use_shared_pool(&mut objects)?;
    change(&mut objects)?;
    apply(stack, NAMESPACE, &objects)
}

/// The etcd credentials of a cluster's control plane.
pub(super) fn etcd_of(stack: &Stack, cluster: &str) -> anyhow::Result<[Value; 2]> {
    let of_etcd = |name: &str, values: Value| {
        let mut secret = secret(&format!("{cluster}-{name}"), values);
        secret["type"] = "cluster.x-k8s.io/secret".into();
        secret["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": cluster});
        secret
    };
    // The stack's etcd does not authenticate clients: the credentials are installed and never used.
    let pem = |path| fs::read_to_string(path);
    let authority = pem(stack.places.certificate(crate::pki::AUTHORITY))?;
    let (certificate, key) = (
        pem(stack.places.certificate(crate::pki::ADMIN))?,
        pem(stack.places.key(crate::pki::ADMIN))?,
    );
    Ok([
        of_etcd("etcd", json!({"tls.crt": authority})),
        of_etcd("apiserver-etcd-client", json!({"tls.crt": certificate, "tls.key": key})),
    ])
}

/// Applies objects, also when those of the previous cluster still exist.
pub(super) fn apply(stack: &Stack, namespace: &str, items: &[Value]) -> anyhow::Result<()> {
    stack.send(&["--namespace", namespace, "apply"], items)
}
