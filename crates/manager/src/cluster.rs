//! Clients of the management cluster and of workload clusters.

use std::fmt;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use metal3_capi::workload::ConnectFn;
use metal3_runtime::client::{ClientFactory, ConnectError};
use metal3_runtime::guard::Guard;
use metal3_runtime::lease::Leadership;

use crate::session::ClusterClients;

/// Connection settings. `Debug` prints the host only, because the rest of a configuration is credentials.
pub struct Cluster {
    requests: ClientFactory,
    /// For workload clusters, which have their own rate limit.
    workload_clients: ClientFactory,
    config: Config,
}

impl Cluster {
    /// Uses clients of `requests` for the management cluster and of `workload_clients` for workload clusters.
    #[must_use]
    pub const fn new(requests: ClientFactory, workload_clients: ClientFactory, config: Config) -> Self {
        Self {
            requests,
            workload_clients,
            config,
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("host", &self.config.cluster_url.host())
            .finish_non_exhaustive()
    }
}

impl ClusterClients for Cluster {
    fn writing_for(&self, leadership: Leadership, guard: Guard) -> kube::Result<Client> {
        self.requests
            .writing_for(leadership, guard)
            .connect(self.config.clone())
    }

    fn workloads(&self, leadership: Leadership, guard: Guard) -> ConnectFn {
        let connector = self.workload_clients.writing_for(leadership, guard);
        Box::new(move |kubeconfig| {
            let connector = connector.clone();
            Box::pin(async move { open(&connector, kubeconfig).await })
        })
    }
}

/// A client from a kubeconfig. Errors do not include the library's message, which may quote credentials.
async fn open(connector: &ClientFactory, kubeconfig: Kubeconfig) -> Result<Client, String> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config =
        config.map_err(|_| "its kubeconfig has no usable context, cluster and user; write one".to_owned())?;
    // differs: `workload-proxy`. The library takes a proxy from this program's environment, which is for other destinations. A kubeconfig with one of its own
    // was refused.
    config.proxy_url = None;
    connector.connect_allowed(config).map_err(|error| match error {
        ConnectError::NotAllowed => {
            "its address is not in --allowed-workload-endpoints; ask the administrator of this program to add it"
                .to_owned()
        }
        ConnectError::Setup(_) => {
            "the certificates or the token of its kubeconfig cannot be used; write others".to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use metal3_runtime::client::Settings;
    use metal3_runtime::clock::TimerClock;
    use metal3_runtime::metrics::Metrics;
    use serde_json::json;

    use super::*;

    #[test]
    fn debug_of_a_cluster_prints_its_host_and_no_credential() {
        let Ok(url) = "https://user:hunter2@kubernetes.example.org:6443/".parse() else {
            unreachable!("it is an address");
        };
        let mut config = Config::new(url);
        config.proxy_url = "http://user:hunter2@proxy.example.org/".parse().ok();
        config.auth_info.username = Some("hunter2".to_owned());
        let login = json!({ "command": "login", "args": ["--password=hunter2"] });
        config.auth_info.exec = serde_json::from_value(login).ok();
        assert!(config.auth_info.exec.is_some() && config.proxy_url.is_some());
        let shown = format!("{:?}", Cluster::new(connector(), connector(), config));
        assert!(shown.contains("kubernetes.example.org"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    fn connector() -> ClientFactory {
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        ClientFactory::new(Settings::new("test", "0"), clock, Metrics::new().requests())
    }

    /// The environment of a process is the same for all its tests, so this one runs in a process of its own.
    #[tokio::test]
    async fn proxy_of_the_environment_is_not_used_for_workload_clusters() {
        const PROXY: &str = "HTTPS_PROXY";
        if std::env::var_os(PROXY).is_none() {
            let program = std::env::current_exe().unwrap_or_default();
            let name = "proxy_of_the_environment_is_not_used_for_workload_clusters";
            let mut child = std::process::Command::new(program);
            let output = child.arg(name).env(PROXY, "http://192.0.2.9:3128").output();
            let output = output.map(|output| {
                (
                    output.status.success(),
                    String::from_utf8_lossy(&output.stdout).into_owned(),
                )
            });
            assert!(
                matches!(&output, Ok((true, text)) if text.contains("1 passed")),
                "{output:?}"
            );
            return;
        }
        drop(rustls::crypto::ring::default_provider().install_default());
        let document = json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": { "server": "https://192.0.2.1:6443" } }],
            "users": [{ "name": "u", "user": { "token": "t" } }],
        });
        let opened = open(&connector(), serde_json::from_value(document).unwrap_or_default()).await;
        assert!(opened.is_ok(), "{:?}", opened.err());
    }

    #[tokio::test]
    async fn errors_about_a_kubeconfig_do_not_quote_it() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let config = |user: serde_json::Value, context: &str| -> Kubeconfig {
            let document = json!({
                "current-context": context,
                "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
                "clusters": [{ "name": "k", "cluster": { "server": "https://192.0.2.1:6443" } }],
                "users": [{ "name": "u", "user": user }],
            });
            serde_json::from_value(document).unwrap_or_default()
        };
        assert!(open(&connector(), config(json!({ "token": "t" }), "c")).await.is_ok());
        for (user, context) in [
            (json!({ "token": "t" }), "hunter2"),
            (
                json!({ "client-certificate-data": "hunter2", "client-key-data": "hunter2" }),
                "c",
            ),
        ] {
            let why = open(&connector(), config(user, context))
                .await
                .err()
                .unwrap_or_default();
            assert!(why.contains("; write") && !why.contains("hunter2"), "{why}");
        }
    }
}
