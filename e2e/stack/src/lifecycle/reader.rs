//! Accounts that may only read.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::claims::stack::Stack;
use crate::pki::ADMIN;
use crate::products::machines::NAMESPACE;

/// The only verbs of these accounts.
pub(crate) const READS: [&str; 3] = ["get", "list", "watch"];

/// The kubeconfig of an account of this name with these rules.
pub(crate) fn kubeconfig(stack: &Stack, name: &str, rules: &Value) -> anyhow::Result<PathBuf> {
    let subject = json!({ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": NAMESPACE } }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "subjects": [subject], "roleRef": role }),
    ];
    stack.send(&["apply"], &objects)?;
    let token = stack.kubectl(&["--namespace", NAMESPACE, "create", "token", name, "--duration=1h"])?;
    let text = fs::read_to_string(stack.places.kubeconfig(ADMIN)).context("there is no kubeconfig")?;
    let mut config: Value = serde_saphyr::from_str(&text).context("the kubeconfig is no YAML")?;
    config["users"][0]["user"] = json!({ "token": token.trim() });
    let file = stack.places.state().join(format!("{name}.kubeconfig"));
    fs::write(&file, config.to_string()).context("the kubeconfig cannot be written")?;
    Ok(file)
}
