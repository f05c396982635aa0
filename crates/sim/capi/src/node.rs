//! Derives the Node of a machine from its boot data, as cloud-init or Ignition, kubeadm and the kubelet do together.
//!
//! Pure and total. User data is rendered with the metadata, parsed as cloud-init parses it, and searched for the
//! kubeadm configuration that its commands use. Any other disk content gives no Node.

mod ignition;

use serde_json::{Map, Value, json};

/// A machine that boots with Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    /// `host:port` of the API server.
    pub endpoint: String,
    /// How it enters the cluster.
    pub role: Role,
    /// The Node that its kubelet registers.
    pub node: Value,
}

/// How a machine enters its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It initializes the cluster.
    Init,
    /// It joins with this token, `id.secret`.
    Join(String),
}

const JINJA: &str = "## template: jinja";
const CLOUD_CONFIG: &str = "#cloud-config";

/// Interprets the first boot of a machine. Returns `None` when its user data does not run kubeadm.
///
/// # Errors
/// The defect in the user data, and its place.
pub fn first_boot(user_data: &str, meta_data: &Map<String, Value>) -> Result<Option<Boot>, String> {
    let Some(cloud) = files_and_commands(user_data, meta_data)? else {
        return Ok(None);
    };
    let Some((path, begins)) = command(&cloud) else {
        return Ok(None);
    };
    let content = file(&cloud, &path)
        .ok_or_else(|| format!("user data: kubeadm is to read {path}, which no write_files entry writes"))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&content)
        .map_err(|error| format!("user data: {path}: cannot be read as YAML: {error}"))?;
    let find = |kind: &str| {
        documents
            .iter()
            .find(|document| document.get("kind") == Some(&json!(kind)))
    };
    let (document, endpoint, role) = if begins {
        let document = find("InitConfiguration").ok_or_else(|| format!("{path}: has no InitConfiguration"))?;
        let whole = find("ClusterConfiguration").ok_or_else(|| format!("{path}: has no ClusterConfiguration"))?;
        (document, text_at(whole, "/controlPlaneEndpoint"), Role::Init)
    } else {
        let document = find("JoinConfiguration").ok_or_else(|| format!("{path}: has no JoinConfiguration"))?;
        let token = text_at(document, "/discovery/bootstrapToken/token").to_owned();
        (
            document,
            text_at(document, "/discovery/bootstrapToken/apiServerEndpoint"),
            Role::Join(token),
        )
    };
    if endpoint.is_empty() {
        return Err(format!("{path}: names no endpoint of the API server"));
    }
    let is_control_plane = begins || document.get("controlPlane").is_some();
    Ok(Some(Boot {
        endpoint: endpoint.to_owned(),
        role,
        node: node(
            document.get("nodeRegistration").unwrap_or(&Value::Null),
            meta_data,
            is_control_plane,
        )?,
    }))
}

/// The files and commands of either format; `None` for any other content.
fn files_and_commands(user_data: &str, meta_data: &Map<String, Value>) -> Result<Option<Value>, String> {
    if user_data.trim_start().starts_with('{') {
        return ignition::read(user_data, meta_data).map(Some);
    }
    let text = match user_data.strip_prefix(JINJA) {
        Some(rest) => fill(rest.trim_start(), meta_data)?,
        None => user_data.to_owned(),
    };
    let Some(body) = text.trim_start().strip_prefix(CLOUD_CONFIG) else {
        return Ok(None);
    };
    let cloud = serde_saphyr::from_str(body);
    cloud.map_err(|error| format!("user data: cannot be read as YAML: {error}"))
}

/// Renders `{{ ds.meta_data.NAME }}`, the one expression that bootstrap providers write.
fn fill(text: &str, meta_data: &Map<String, Value>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut pieces = text.split("{{");
    filled.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (expression, rest) = piece
            .split_once("}}")
            .ok_or_else(|| "user data: an expression that begins with {{ does not end".to_owned())?;
        filled.push_str(&value_of(expression.trim(), meta_data)?);
        filled.push_str(rest);
    }
    Ok(filled)
}

fn value_of(expression: &str, meta_data: &Map<String, Value>) -> Result<String, String> {
    let path = expression.strip_prefix("ds.meta_data").unwrap_or(expression);
    let path = path.strip_prefix("v1").unwrap_or(path);
    let name = path.trim_matches(['.', '[', ']', '"', '\'']);
    // cloud-init also offers names with dashes under underscores.
    let found = meta_data.get(name).or_else(|| {
        meta_data
            .iter()
            .find(|(key, _)| key.replace('-', "_") == name)
            .map(|(_, value)| value)
    });
    match found {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
        None => Err(format!(
            "user data: {{{{ {expression} }}}} names nothing in the metadata; add it to the Metal3DataTemplate"
        )),
    }
}

/// The configuration file of kubeadm, and whether the command is `init`.
fn command(cloud: &Value) -> Option<(String, bool)> {
    let commands = cloud.get("runcmd")?.as_array()?.iter().filter_map(|line| match line {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    for line in commands {
        let words: Vec<&str> = line.split_whitespace().collect();
        let begins = line.contains("kubeadm init");
        if !begins && !line.contains("kubeadm join") {
            continue;
        }
        let place = words.iter().position(|word| *word == "--config")?;
        return words
            .get(place.saturating_add(1))
            .map(|path| ((*path).to_owned(), begins));
    }
    None
}

fn file(cloud: &Value, path: &str) -> Option<String> {
    let mut files = cloud.get("write_files")?.as_array()?.iter();
    let file = files.find(|file| text_at(file, "/path") == path)?;
    Some(text_at(file, "/content").to_owned())
}

/// The Node of a kubelet with this registration.
fn node(registration: &Value, meta_data: &Map<String, Value>, is_control_plane: bool) -> Result<Value, String> {
    let stated = text_at(registration, "/name");
    let names = ["local-hostname", "local_hostname", "hostname", "name"];
    let own = names.iter().find_map(|name| meta_data.get(*name)?.as_str());
    let name = if stated.is_empty() {
        own.unwrap_or_default()
    } else {
        stated
    };
    if name.is_empty() {
        return Err("the machine has no host name: neither nodeRegistration.name nor the metadata says one".to_owned());
    }
    let argument = |name: &str| argument(registration.get("kubeletExtraArgs")?, name);
    let mut labels: Map<String, Value> = [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into_iter()
        .collect();
    if is_control_plane {
        labels.insert("node-role.kubernetes.io/control-plane".to_owned(), "".into());
    }
    for pair in argument("node-labels")
        .unwrap_or_default()
        .split(',')
        .filter(|pair| !pair.is_empty())
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        labels.insert(key.to_owned(), value.into());
    }
    let mut spec = Map::new();
    if let Some(id) = argument("provider-id").filter(|id| !id.is_empty()) {
        spec.insert("providerID".to_owned(), id.into());
    }
    if let Some(taints) = registration.get("taints").filter(|taints| taints.is_array()) {
        spec.insert("taints".to_owned(), taints.clone());
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }, "spec": spec,
        "status": {
            "addresses": [{ "type": "Hostname", "address": name }],
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "" }],
        },
    }))
}

/// An argument of the kubelet, in either form that kubeadm takes.
fn argument(all: &Value, name: &str) -> Option<String> {
    let value = match all {
        Value::Array(list) => list.iter().find(|one| text_at(one, "/name") == name)?.get("value")?,
        map => map.get(name)?,
    };
    value.as_str().map(str::to_owned)
}

fn text_at<'a>(value: &'a Value, at: &str) -> &'a str {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default()
}
