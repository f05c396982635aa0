//! Reads a config-drive like the booting machine: cloud-init's templates or Ignition, the files, and kubeadm's configuration.
//!
//! Pure. Unsupported content is an error that names the part; there are no defaults. It supports only the output of
//! Cluster API's bootstrap provider.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::ignition;
use crate::yaml::documents;

/// kubeadm's directory of keys and certificates.
const PKI: &str = "/etc/kubernetes/pki/";

/// The boot configuration of a machine.
#[derive(Debug, PartialEq)]
pub(crate) struct Boot {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) provider_id: Option<String>,
    /// Taints of the Node; `None` for kubeadm's default.
    pub(crate) taints: Option<Vec<Value>>,
    /// Files of kubeadm's key directory by relative path.
    pub(crate) pki: BTreeMap<String, String>,
    pub(crate) role: Role,
}

/// The command of kubeadm.
#[derive(Debug, PartialEq)]
pub(crate) enum Role {
    /// `kubeadm init`, with its `ClusterConfiguration`.
    First(Value),
    /// `kubeadm join` with a token, as a worker or an additional control plane machine.
    Joins {
        endpoint: String,
        token: String,
        controls: bool,
    },
}

impl Boot {
    pub(crate) fn endpoint(&self) -> &str {
        match &self.role {
            Role::First(cluster) => cluster["controlPlaneEndpoint"].as_str().unwrap_or_default(),
            Role::Joins { endpoint, .. } => endpoint,
        }
    }

    pub(crate) fn controls(&self) -> bool {
        match &self.role {
            Role::First(_) => true,
            Role::Joins { controls, .. } => *controls,
        }
    }
}

/// Reads `user_data` and `meta_data.json`.
pub(crate) fn read(user_data: &str, meta_data: &Value) -> anyhow::Result<Boot> {
    let config = if user_data.starts_with('{') {
        ignition::read(user_data, meta_data)?
    } else {
        cloud_config(user_data, meta_data)?
    };
    let files = files(&config)?;
    let (order, path) = order(&config)?;
    let documents = documents(files.get(&path).with_context(|| format!("there is no {path}"))?)?;
    let document = |kind: &str| {
        let found = documents.iter().find(|document| document["kind"] == kind);
        found.with_context(|| format!("{path} holds no {kind}"))
    };
    let (node, role) = match order {
        "init" => {
            let cluster = document("ClusterConfiguration")?.clone();
            (document("InitConfiguration")?, Role::First(cluster))
        }
        _ => {
            let join = document("JoinConfiguration")?;
            (join, join_role(join)?)
        }
    };
    let node = &node["nodeRegistration"];
    let pki = files.into_iter();
    Ok(Boot {
        name: name(node, meta_data)?,
        labels: labels(node)?,
        provider_id: argument(node, "provider-id"),
        taints: node["taints"].as_array().cloned(),
        pki: pki
            .filter_map(|(path, text)| Some((path.strip_prefix(PKI)?.to_owned(), text)))
            .collect(),
        role,
    })
}

fn cloud_config(user_data: &str, meta_data: &Value) -> anyhow::Result<Value> {
    let text = match user_data.strip_prefix("## template: jinja\n") {
        Some(template) => render(template, meta_data)?,
        None => user_data.to_owned(),
    };
    ensure!(text.starts_with("#cloud-config\n"), "user_data is no cloud-config");
    serde_saphyr::from_str(&text).context("user_data is no YAML")
}

fn string(document: &Value, member: &str) -> anyhow::Result<String> {
    let found = document[member].as_str().filter(|text| !text.is_empty());
    Ok(found.with_context(|| format!("{member} is no text"))?.to_owned())
}

/// The name in kubeadm's configuration, or else the host name in the metadata.
fn name(node: &Value, meta_data: &Value) -> anyhow::Result<String> {
    let own = ["local-hostname", "local_hostname"].map(|key| &meta_data[key]);
    let all = std::iter::once(&node["name"]).chain(own);
    let found = all.filter_map(Value::as_str).find(|name| !name.is_empty());
    Ok(found
        .context("neither nodeRegistration nor the metadata has a name")?
        .to_owned())
}

/// An argument of the kubelet, in the list or map form of kubeadm's API versions.
fn argument(node: &Value, name: &str) -> Option<String> {
    let all = &node["kubeletExtraArgs"];
    let listed = all.as_array().into_iter().flatten();
    let listed = listed
        .filter(|argument| argument["name"] == name)
        .map(|argument| &argument["value"]);
    let found = listed.chain([&all[name]]).find_map(Value::as_str)?;
    (!found.is_empty()).then(|| found.to_owned())
}

/// Replaces `{{ ds.meta_data.KEY }}` and `{{ .KEY }}` by the value of the key; another expression or an unknown key is an
/// error.
fn render(template: &str, meta_data: &Value) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) = after.split_once("}}").context("an expression without end")?;
        let expression = expression.trim();
        // The second form is that of BYOH agents.
        let key = expression
            .strip_prefix("ds.meta_data.")
            .or(expression.strip_prefix('.'));
        let key = key.unwrap_or_default();
        let value = meta_data[key].as_str();
        text.push_str(before);
        text.push_str(value.with_context(|| format!("meta_data.json has nothing for {expression:?}"))?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn files(config: &Value) -> anyhow::Result<BTreeMap<String, String>> {
    let listed = config["write_files"].as_array().context("write_files is no list")?;
    let file = |file: &Value| {
        ensure!(file["encoding"].is_null(), "a file with an encoding");
        Ok((
            string(file, "path")?,
            file["content"].as_str().unwrap_or_default().to_owned(),
        ))
    };
    listed.iter().map(file).collect()
}

/// `init` or `join`, and its configuration file.
fn order(config: &Value) -> anyhow::Result<(&'static str, String)> {
    let commands = config["runcmd"].as_array().context("runcmd is no list")?;
    for command in commands.iter().filter_map(Value::as_str) {
        for order in ["init", "join"] {
            let Some(rest) = command.trim().strip_prefix(&format!("kubeadm {order} --config ")) else {
                continue;
            };
            let path = rest.split_whitespace().next().context("kubeadm without a file")?;
            return Ok((order, path.to_owned()));
        }
    }
    bail!("runcmd calls no kubeadm")
}

fn join_role(join: &Value) -> anyhow::Result<Role> {
    let by = &join["discovery"]["bootstrapToken"];
    let pins = by["caCertHashes"].as_array().map_or(0, Vec::len);
    ensure!(pins > 0, "a joining machine has no caCertHashes");
    Ok(Role::Joins {
        endpoint: string(by, "apiServerEndpoint")?,
        token: string(by, "token")?,
        controls: join["controlPlane"].is_object(),
    })
}

fn labels(node: &Value) -> anyhow::Result<BTreeMap<String, String>> {
    let all = argument(node, "node-labels").unwrap_or_default();
    let each = all.split(',').filter(|label| !label.is_empty()).map(|label| {
        let (key, value) = label
            .split_once('=')
            .with_context(|| format!("{label:?} is no label"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIRST: &str = "## template: jinja
#cloud-config

write_files:
-   path: /etc/kubernetes/pki/etcd/ca.crt
    owner: root:root
    content: |
      PEM
-   path: /run/kubeadm/kubeadm.yaml
    content: |
      ---
      kind: ClusterConfiguration
      clusterName: edge
      
      ---
      kind: InitConfiguration
      nodeRegistration:
        kubeletExtraArgs:
        - name: node-labels
          value: metal3.io/uuid={{ ds.meta_data.uuid }},b=c
        name: '{{ ds.meta_data.name }}'
        taints: null
runcmd:
  - 'kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/done'
";
    const JOINS: &str = "#cloud-config
write_files:
-   path: /run/kubeadm/join.yaml
    content: |
      kind: JoinConfiguration
      discovery:
        bootstrapToken:
          apiServerEndpoint: 192.0.2.1:6443
          caCertHashes: ['sha256:00']
          token: abcdef.0123456789abcdef
      nodeRegistration:
        name: two
        taints:
        - {effect: NoSchedule, key: new}
runcmd:
  - kubeadm join --config /run/kubeadm/join.yaml
";

    #[test]
    fn first_machine_has_name_and_labels_of_its_meta_data() {
        let boot = read(FIRST, &json!({"uuid": "u", "name": "one"})).unwrap();
        assert_eq!(boot.name, "one");
        assert_eq!(
            boot.labels,
            [("b", "c"), ("metal3.io/uuid", "u")]
                .map(|(k, v)| (k.into(), v.into()))
                .into()
        );
        assert_eq!(boot.pki, BTreeMap::from([("etcd/ca.crt".into(), "PEM\n".into())]));
        assert_eq!(boot.taints, None);
        assert!(matches!(boot.role, Role::First(cluster) if cluster["clusterName"] == "edge"));
    }

    #[test]
    fn joining_machine_has_endpoint_token_and_taints() {
        let boot = read(JOINS, &Value::Null).unwrap();
        let (endpoint, token) = ("192.0.2.1:6443".into(), "abcdef.0123456789abcdef".into());
        let controls = false;
        assert_eq!(boot.endpoint(), "192.0.2.1:6443");
        assert_eq!(
            boot.role,
            Role::Joins {
                endpoint,
                token,
                controls
            }
        );
        assert_eq!(boot.taints, Some(vec![json!({"effect": "NoSchedule", "key": "new"})]));
    }

    #[test]
    fn joining_control_plane_machine_is_recognized() {
        let join_role = JOINS.replace(
            "      discovery:",
            "      controlPlane: {localAPIEndpoint: {}}\n      discovery:",
        );
        assert!(read(&join_role, &Value::Null).unwrap().controls());
        assert!(!read(JOINS, &Value::Null).unwrap().controls());
    }

    #[test]
    fn older_kubeadm_uses_a_map_and_the_default_name_is_the_host_name() {
        let (from, to) = (
            "name: two",
            "kubeletExtraArgs: {provider-id: \"metal3://{{ .KEY }}\", node-labels: a=b}",
        );
        let join_role = format!("## template: jinja\n{}", JOINS.replace(from, to));
        let boot = read(&join_role, &json!({"local-hostname": "three", "KEY": "k"})).unwrap();
        assert_eq!(boot.name, "three");
        assert_eq!(boot.provider_id.as_deref(), Some("metal3://k"));
        assert_eq!(boot.labels, BTreeMap::from([("a".into(), "b".into())]));
        let error = read(&join_role, &json!({"KEY": "k"})).unwrap_err();
        assert!(format!("{error:#}").contains("has a name"), "{error:#}");
    }

    #[test]
    fn errors_name_the_unsupported_part() {
        let error = read(FIRST, &json!({"uuid": "u"})).unwrap_err();
        assert!(format!("{error:#}").contains("ds.meta_data.name"), "{error:#}");
        let unpinned = JOINS.replace("['sha256:00']", "[]");
        let error = format!("{:#}", read(&unpinned, &Value::Null).unwrap_err());
        assert!(error.contains("caCertHashes"), "{error}");
        for (from, to, part) in [
            ("#cloud-config", "#!/bin/sh", "no cloud-config"),
            ("kubeadm join", "kubeadm reset", "no kubeadm"),
            ("write_files", "other", "write_files"),
        ] {
            let error = format!("{:#}", read(&JOINS.replace(from, to), &Value::Null).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
