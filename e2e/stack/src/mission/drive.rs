//! A config-drive as the machine reads it that boots beside it: cloud-init's rendering, the files, and kubeadm's order.
//!
//! Pure and total. What cannot be read is an error that names the part; nothing is assumed that is not on the drive. Only
//! what Cluster API's bootstrap provider writes is understood: this is no cloud-init.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// Where kubeadm keeps keys and certificates.
const PKI: &str = "/etc/kubernetes/pki/";

/// What a machine becomes.
#[derive(Debug, PartialEq)]
pub(crate) struct Boot {
    /// Name of its Node.
    pub(crate) name: String,
    /// Labels that its kubelet gives the Node.
    pub(crate) labels: BTreeMap<String, String>,
    /// The ID that its kubelet gives the Node.
    pub(crate) provider_id: Option<String>,
    /// Taints that its kubelet gives the Node; none: what kubeadm gives of itself.
    pub(crate) taints: Option<Vec<Value>>,
    /// Files of kubeadm's folder of keys, by their name in it.
    pub(crate) pki: BTreeMap<String, String>,
    pub(crate) role: Role,
}

/// What kubeadm is told to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Role {
    /// The first machine of a cluster, by its `ClusterConfiguration`.
    First(Value),
    /// One that joins, by a token, as a worker or as one more of the control plane.
    Joins {
        endpoint: String,
        token: String,
        controls: bool,
    },
}

impl Boot {
    /// Where its cluster's API server is, or is to be.
    pub(crate) fn endpoint(&self) -> &str {
        match &self.role {
            Role::First(cluster) => cluster["controlPlaneEndpoint"].as_str().unwrap_or_default(),
            Role::Joins { endpoint, .. } => endpoint,
        }
    }

    /// Whether it is a machine of the control plane.
    pub(crate) fn controls(&self) -> bool {
        match &self.role {
            Role::First(_) => true,
            Role::Joins { controls, .. } => *controls,
        }
    }
}

/// Reads what `user_data` and `meta_data.json` say.
pub(crate) fn read(user_data: &str, meta_data: &Value) -> anyhow::Result<Boot> {
    let text = match user_data.strip_prefix("## template: jinja\n") {
        Some(template) => render(template, meta_data)?,
        None => user_data.to_owned(),
    };
    ensure!(text.starts_with("#cloud-config\n"), "user_data is no cloud-config");
    let config: Value = serde_saphyr::from_str(&text).context("user_data is no YAML")?;
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
            (join, joins(join)?)
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

fn string(document: &Value, member: &str) -> anyhow::Result<String> {
    let found = document[member].as_str().filter(|text| !text.is_empty());
    Ok(found.with_context(|| format!("{member} is no text"))?.to_owned())
}

/// What kubeadm is told, or else the name of the machine.
fn name(node: &Value, meta_data: &Value) -> anyhow::Result<String> {
    let own = ["local-hostname", "local_hostname"].map(|key| &meta_data[key]);
    let all = std::iter::once(&node["name"]).chain(own);
    let found = all.filter_map(Value::as_str).find(|name| !name.is_empty());
    Ok(found
        .context("neither nodeRegistration nor the metadata has a name")?
        .to_owned())
}

/// An argument of the kubelet, in either form that versions of kubeadm take.
fn argument(node: &Value, name: &str) -> Option<String> {
    let all = &node["kubeletExtraArgs"];
    let listed = all.as_array().into_iter().flatten();
    let listed = listed
        .filter(|argument| argument["name"] == name)
        .map(|argument| &argument["value"]);
    let found = listed.chain([&all[name]]).find_map(Value::as_str)?;
    (!found.is_empty()).then(|| found.to_owned())
}

/// `{{ ds.meta_data.KEY }}` and `{{ .KEY }}` become the value of the key; another expression is an error, as is a key that
/// is not there.
fn render(template: &str, meta_data: &Value) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (expression, after) = after.split_once("}}").context("an expression without end")?;
        let expression = expression.trim();
        // The second is how the agents on hosts that are brought along say it.
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

/// `init` or `join`, and the file that says how.
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

fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let parts = text.split("---\n").filter(|part| !part.trim().is_empty());
    parts.map(|part| Ok(serde_saphyr::from_str(part)?)).collect()
}

fn joins(join: &Value) -> anyhow::Result<Role> {
    let by = &join["discovery"]["bootstrapToken"];
    let pins = by["caCertHashes"].as_array().map_or(0, Vec::len);
    ensure!(pins > 0, "a machine that joins is told no caCertHashes");
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
    fn first_machine_is_named_and_labelled_by_its_meta_data() {
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
    fn machine_that_joins_takes_endpoint_token_and_taints() {
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
    fn machine_that_joins_the_control_plane_is_told_so() {
        let joins = JOINS.replace(
            "      discovery:",
            "      controlPlane: {localAPIEndpoint: {}}\n      discovery:",
        );
        assert!(read(&joins, &Value::Null).unwrap().controls());
        assert!(!read(JOINS, &Value::Null).unwrap().controls());
    }

    #[test]
    fn older_kubeadm_takes_a_map_and_a_machine_without_a_name_has_its_own() {
        let (from, to) = (
            "name: two",
            "kubeletExtraArgs: {provider-id: \"metal3://{{ .KEY }}\", node-labels: a=b}",
        );
        let joins = format!("## template: jinja\n{}", JOINS.replace(from, to));
        let boot = read(&joins, &json!({"local-hostname": "three", "KEY": "k"})).unwrap();
        assert_eq!(boot.name, "three");
        assert_eq!(boot.provider_id.as_deref(), Some("metal3://k"));
        assert_eq!(boot.labels, BTreeMap::from([("a".into(), "b".into())]));
        let nobody = read(&joins, &json!({"KEY": "k"})).unwrap_err();
        assert!(format!("{nobody:#}").contains("has a name"), "{nobody:#}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let nameless = read(FIRST, &json!({"uuid": "u"})).unwrap_err();
        assert!(format!("{nameless:#}").contains("ds.meta_data.name"), "{nameless:#}");
        let unpinned = JOINS.replace("['sha256:00']", "[]");
        let told = format!("{:#}", read(&unpinned, &Value::Null).unwrap_err());
        assert!(told.contains("caCertHashes"), "{told}");
        for (from, to, part) in [
            ("#cloud-config", "#!/bin/sh", "no cloud-config"),
            ("kubeadm join", "kubeadm reset", "no kubeadm"),
            ("write_files", "other", "write_files"),
        ] {
            let told = format!("{:#}", read(&JOINS.replace(from, to), &Value::Null).unwrap_err());
            assert!(told.contains(part), "{told}");
        }
    }
}
