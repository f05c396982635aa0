//! The Cluster of the flavour `topology`, with the class of the release as it is, and changes to its topology.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::env::TestEnv;
use super::super::install::{self, ENDPOINT, PORT};
use crate::claims::stack::Stack;
use crate::products::load;
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;
use crate::yaml::documents;

/// The class of the release.
pub(super) const CLASS: &str = "metal3";
/// The label that says in which failure domain a host is.
pub(super) const DOMAIN: &str = "infrastructure.cluster.x-k8s.io/failure-domain";
/// The version at the begin, and those that follow it.
pub(super) const VERSIONS: [&str; 4] = ["v1.33.9", "v1.34.9", "v1.35.6", "v1.36.3"];
/// The group of workers of the flavour.
pub(super) const GROUP: &str = "nodepool-0";

/// A failure domain and the first two numbers of the addresses of its pool.
pub(super) struct Zone {
    pub(super) name: &'static str,
    pub(super) network: &'static str,
}

const fn zone(name: &'static str, network: &'static str) -> Zone {
    Zone { name, network }
}

/// Names that YAML reads as a number and as a boolean where they are not quoted.
pub(super) const ZONES: [Zone; 3] = [zone("1", "10.71"), zone("no", "10.72"), zone("c", "10.73")];

impl Zone {
    /// The name of its pool and of its data template.
    pub(super) fn network_name(&self) -> String {
        format!("{CLUSTER}-{}", self.name)
    }

    fn objects(&self) -> [Value; 2] {
        let (own, network) = (self.network_name(), self.network);
        let mut pool = load::pool(&own, &format!("{network}.0.10"), &format!("{network}.0.40"));
        pool["spec"]["clusterName"] = CLUSTER.into();
        let object = |key: &str| json!({"key": key, "object": "machine"});
        let address = json!({"key": "address", "apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": own});
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataTemplate", "metadata": {"name": own},
            "spec": {"clusterName": CLUSTER, "metaData": {
                "objectNames": [object("name"), object("local-hostname")], "ipAddressesFromPool": [address],
            }},
        });
        [pool, template]
    }
}

/// The zone of a host.
pub(super) fn zone_of(host: &Value) -> anyhow::Result<&'static Zone> {
    let found = ZONES
        .iter()
        .find(|zone| host["metadata"]["labels"][DOMAIN] == zone.name);
    found.with_context(|| format!("{} is in no zone", load::name(host)))
}

/// Puts each host into a zone: the first three into one each, the others into the first two.
pub(super) fn place_hosts(env: &TestEnv<'_>) -> anyhow::Result<()> {
    for (machine, zone) in env.fleet.machines.iter().zip(ZONES.iter().cycle()) {
        place(env.stack, &install::host(&machine["number"]), zone)?;
    }
    Ok(())
}

pub(super) fn place(stack: &Stack, host: &str, zone: &Zone) -> anyhow::Result<()> {
    let label = format!("{DOMAIN}={}", zone.name);
    let args = ["--namespace", NAMESPACE, "label", "baremetalhost", host, &label];
    stack.kubectl(&args).map(drop)
}

/// Applies class and Cluster as clusterctl prints them. Only variables and failure domain of the Cluster are edited.
pub(super) fn apply(env: &TestEnv<'_>) -> anyhow::Result<()> {
    let stack = env.stack;
    stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
    // Nothing owns the templates of a former cluster of this name, and they cannot be changed.
    for of in ["controlplane", "workers"] {
        let former = format!("metal3datatemplate/{CLUSTER}-{of}-template");
        let delete = ["--namespace", NAMESPACE, "delete", &former];
        let args = [delete.as_slice(), &["--ignore-not-found", "--timeout=60s"]].concat();
        stack.kubectl(&args)?;
    }
    let mut networks: Vec<Value> = ZONES.iter().flat_map(Zone::objects).collect();
    networks.extend(install::etcd_of(stack, CLUSTER)?);
    install::apply(stack, NAMESPACE, &networks)?;
    let mut objects = generated(env)?;
    let classes = objects.iter().filter(|one| one["kind"] == "ClusterClass").count();
    ensure!(classes == 1, "clusterctl printed {classes} classes");
    let cluster = objects.iter_mut().find(|one| one["kind"] == "Cluster");
    edit(cluster.context("clusterctl printed no Cluster")?)?;
    install::apply(stack, NAMESPACE, &objects)
}

/// What `clusterctl generate cluster --flavor topology` prints.
fn generated(env: &TestEnv<'_>) -> anyhow::Result<Vec<Value>> {
    let image = env.fleet.image_url()?;
    let [version, ..] = VERSIONS;
    let variables = [
        format!("CLUSTER_APIENDPOINT_HOST={ENDPOINT}"),
        format!("CLUSTER_APIENDPOINT_PORT={PORT}"),
        format!("IMAGE_URL={image}"),
        format!("IMAGE_CHECKSUM={image}.sha256"),
        "IMAGE_CHECKSUM_TYPE=sha256".to_owned(),
        "IMAGE_FORMAT=raw".to_owned(),
    ];
    let mut args: Vec<&str> = variables.iter().map(String::as_str).collect();
    args.extend(["clusterctl", "generate", "cluster", CLUSTER, "--flavor", "topology"]);
    args.extend(["--infrastructure", "metal3", "--target-namespace", NAMESPACE]);
    args.extend(["--kubernetes-version", version]);
    args.extend(["--control-plane-machine-count", "3", "--worker-machine-count", "1"]);
    documents(&env.stack.run("env", &args, None)?)
}

/// The zones give machines their data templates, and the workers are in the first zone.
fn edit(cluster: &mut Value) -> anyhow::Result<()> {
    let topology = &mut cluster["spec"]["topology"];
    let [first, ..] = ZONES;
    let group = topology.pointer_mut("/workers/machineDeployments/0");
    group.context("the Cluster has no workers")?["failureDomain"] = first.name.into();
    let variables = topology["variables"].as_array_mut().context("no variables")?;
    variables.retain(|one| {
        !["controlPlaneDataTemplate", "workerDataTemplate"]
            .map(Value::from)
            .contains(&one["name"])
    });
    let zones: Vec<Value> = ZONES
        .iter()
        .map(|zone| json!({"name": zone.name, "dataTemplate": zone.network_name()}))
        .collect();
    variables.extend([
        json!({"name": "zones", "value": zones}),
        json!({"name": "zonePolicy", "value": "Required"}),
        json!({"name": "externalEtcd", "value": {"endpoints": ["http://10.244.0.1:2379"]}}),
    ]);
    Ok(())
}

/// The topology of the Cluster.
pub(super) fn topology(stack: &Stack) -> anyhow::Result<Value> {
    let cluster = format!("cluster/{CLUSTER}");
    let text = stack.kubectl(&["--namespace", NAMESPACE, "get", &cluster, "--output=json"])?;
    let mut cluster: Value = serde_json::from_str(&text)?;
    Ok(cluster["spec"]["topology"].take())
}

/// Changes the topology by a merge patch.
pub(super) fn patch(stack: &Stack, topology: &Value) -> anyhow::Result<()> {
    let patch = json!({"spec": {"topology": topology}}).to_string();
    let args = [
        "--namespace",
        NAMESPACE,
        "patch",
        "cluster",
        CLUSTER,
        "--type=merge",
        "--patch",
    ];
    stack.kubectl(&[&args[..], &[&patch]].concat()).map(drop)
}

/// The variables of a topology with these values.
pub(super) fn with_variables(topology: &Value, values: &[(&str, Value)]) -> Value {
    let mut variables = topology["variables"].as_array().cloned().unwrap_or_default();
    variables.retain(|one| values.iter().all(|(name, _)| one["name"] != *name));
    variables.extend(values.iter().map(|(name, value)| json!({"name": name, "value": value})));
    json!({"variables": variables})
}

/// Sets variables of the Cluster.
pub(super) fn set_variables(stack: &Stack, values: &[(&str, Value)]) -> anyhow::Result<()> {
    patch(stack, &with_variables(&topology(stack)?, values))
}
