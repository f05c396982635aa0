//! Workers that boot with Ignition, next to those of the class that boot with cloud-init.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::checks;
use super::super::cluster::settled;
use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::super::install;
use super::class::VERSIONS;
use super::upgrades::ALL;
use crate::claim::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::template::CLUSTER;
use crate::wait::Stopwatch;

const GROUP: &str = "edge-ignition";
const MOTD: &str = "a line with \"quotes\", a tab\tand an umlaut: \u{fc}\n";

pub(in super::super) fn written(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let watch = Stopwatch::start();
    env.while_simulated(|| {
        install::apply(stack, NAMESPACE, &objects(env)?)?;
        running(stack, ALL + 1)?;
        settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    // Both formats, byte for byte.
    let (taken, free) = checks::hosts(env)?;
    let nodes = checks::nodes(env)?;
    ensure!(
        (taken, free, nodes) == (ALL + 1, MACHINES - ALL - 1, ALL + 1),
        "{taken} hosts taken, {free} free, {nodes} Nodes"
    );
    let [mut ignition, mut cloud] = [0, 0];
    for host in list(stack, NAMESPACE, "baremetalhosts")? {
        if host["spec"]["consumerRef"].is_null() {
            continue;
        }
        let (format, data) = user_data(env, &host)?;
        if format == "ignition" {
            is_ignition(&data)?;
            ignition += data.len();
        } else {
            let is_cloud = data.starts_with("## template: jinja\n#cloud-config\n");
            ensure!(is_cloud, "{} has other user data than cloud-init's", name(&host));
            cloud += data.len();
        }
    }
    ensure!(
        ignition > 0 && cloud > 0,
        "{ignition} bytes of Ignition, {cloud} of cloud-init"
    );
    env.while_simulated(|| {
        let kinds = "machinedeployments,kubeadmconfigtemplates,metal3machinetemplates";
        stack.kubectl(&["--namespace", NAMESPACE, "delete", kinds, GROUP])?;
        running(stack, ALL)?;
        freed(stack, MACHINES - ALL)
    })?;
    Ok(format!(
        "joined after {took:.1} s, user data of {ignition} bytes for Ignition and {cloud} for cloud-init are those of their Secrets"
    ))
}

/// The format of a host's bootstrap Secret, and the user data on its config-drive.
fn user_data(env: &TestEnv<'_>, host: &Value) -> anyhow::Result<(String, String)> {
    let own = name(host);
    let secret = host["spec"]["userData"]["name"].as_str().context("no user data")?;
    let template = "--template={{index .data \"format\" | base64decode}}";
    let format = env
        .stack
        .kubectl(&["--namespace", NAMESPACE, "get", "secret", secret, template])?;
    let data = env.fleet.drive(env.stack, install::machine(&own)?, "user_data")?;
    let data = String::from_utf8(data.with_context(|| format!("{own} has no config-drive"))?)?;
    Ok((format, data))
}

fn is_ignition(data: &str) -> anyhow::Result<()> {
    let config: Value = serde_json::from_str(data).context("user data of Ignition")?;
    ensure!(config["ignition"]["version"].is_string(), "no version of Ignition");
    let files = config["storage"]["files"].as_array().context("no files")?;
    let motd = files.iter().find(|file| file["path"] == "/etc/motd");
    let source = motd.context("no /etc/motd")?["contents"]["source"]
        .as_str()
        .unwrap_or_default();
    ensure!(source.ends_with("umlaut%3A%20%C3%BC%0A"), "/etc/motd: {source}");
    Ok(())
}

/// A worker whose command before kubeadm exports the metadata of the config-drive.
fn objects(env: &TestEnv<'_>) -> anyhow::Result<Vec<Value>> {
    let [.., version] = VERSIONS;
    let image = env.fleet.image_url()?;
    let meta = json!({"name": GROUP});
    let reference =
        |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": GROUP});
    let spec = json!({
        "clusterName": CLUSTER, "version": version,
        "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfigTemplate")},
        "infrastructureRef": reference("infrastructure", "Metal3MachineTemplate"),
    });
    let export = "set -a; . /run/metadata.env; set +a; envsubst < /etc/kubeadm.yml > /run/kubeadm.yml && cp /run/kubeadm.yml /etc";
    let bootstrap = json!({
        "format": "ignition",
        "files": [{"path": "/etc/motd", "permissions": "0644", "content": MOTD}],
        "preKubeadmCommands": [export],
        "joinConfiguration": {"nodeRegistration": {
            "name": "${METADATA_LOCAL_HOSTNAME}",
            "kubeletExtraArgs": [{"name": "node-labels", "value": "metal3.io/uuid=${METADATA_UUID}"}],
        }},
    });
    let machine = json!({
        "automatedCleaningMode": "metadata",
        "image": {"url": image, "checksum": format!("{image}.sha256"), "checksumType": "sha256", "diskFormat": "raw"},
    });
    let template = |api: &str, kind: &str, spec: Value| {
        json!({"apiVersion": format!("{api}.cluster.x-k8s.io/v1beta2"), "kind": kind, "metadata": meta,
            "spec": {"template": {"spec": spec}}})
    };
    Ok(vec![
        template("bootstrap", "KubeadmConfigTemplate", bootstrap),
        template("infrastructure", "Metal3MachineTemplate", machine),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": meta,
            "spec": {"clusterName": CLUSTER, "replicas": 1, "selector": {}, "template": {"spec": spec}}}),
    ])
}
