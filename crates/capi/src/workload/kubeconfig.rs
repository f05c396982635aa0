//! The kubeconfig of a workload cluster, from the Secret of its control plane provider.
//!
//! A user who may write that Secret is no administrator of this program: a kubeconfig that runs a command, names a
//! local file or a proxy, is rejected.

use k8s_openapi::api::core::v1::Secret;
use kube::config::{AuthInfo, Kubeconfig};

/// The suffix of the Secret's name after the Cluster's.
pub const SUFFIX: &str = "-kubeconfig";
/// The key in the Secret.
const MEMBER: &str = "value";

/// Reads the kubeconfig in a Secret.
///
/// # Errors
/// What is wrong with it, and how to correct it, without its content.
pub fn read(secret: &Secret) -> Result<Kubeconfig, String> {
    let data = secret.data.as_ref().and_then(|data| data.get(MEMBER));
    let text =
        data.ok_or_else(|| format!("it has no member {MEMBER:?}; the provider of the control plane writes it"))?;
    let text = std::str::from_utf8(&text.0).map_err(|_| "it is no text; write a kubeconfig".to_owned())?;
    let config = Kubeconfig::from_yaml(text).map_err(|_| "it cannot be read as a kubeconfig; write one".to_owned())?;
    let users = config.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    if users
        .clone()
        .any(|user| user.exec.is_some() || user.auth_provider.is_some())
    {
        return Err("it would run a command; use a token or a certificate".to_owned());
    }
    let names_file =
        |user: &AuthInfo| user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some();
    let clusters = config.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    if users.clone().any(names_file) || clusters.clone().any(|cluster| cluster.certificate_authority.is_some()) {
        return Err("it names files; write their content into it".to_owned());
    }
    if clusters.clone().any(|cluster| cluster.proxy_url.is_some()) {
        return Err(
            "it names a proxy, which could connect to any address; write the address of the API server".to_owned(),
        );
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_text(text: &str) -> Result<Kubeconfig, String> {
        read(
            &serde_json::from_value(json!({ "data": { "value": k8s_openapi::ByteString(text.as_bytes().to_vec()) } }))
                .unwrap(),
        )
    }

    fn config(user: &str, cluster: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: 'https://192.0.2.1:6443'{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[test]
    fn kubeconfig_with_a_token_is_accepted() {
        assert_eq!(
            read_text(&config("token: t", "")).unwrap().current_context.as_deref(),
            Some("c")
        );
    }

    #[test]
    fn kubeconfig_that_runs_a_command_or_names_a_file_or_proxy_is_rejected_without_its_content() {
        for (user, cluster) in [
            (
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2}",
                "",
            ),
            ("tokenFile: /hunter2", ""),
            ("client-certificate: /hunter2", ""),
            ("client-key: /hunter2", ""),
            ("auth-provider: {name: hunter2, config: {cmd-path: hunter2}}", ""),
            ("token: t", ", certificate-authority: /hunter2"),
            ("token: t", ", proxy-url: 'http://hunter2:3128'"),
        ] {
            let why = read_text(&config(user, cluster)).unwrap_err();
            assert!(!why.contains("hunter2") && why.contains("; "), "{why}");
        }
        assert!(read_text("hunter2: [").unwrap_err().contains("kubeconfig"));
        assert!(read(&Secret::default()).unwrap_err().contains("value"));
    }
}
