//! The API server that the flags name, and those of workload clusters.

use std::fmt;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use metal3_capi::workload::Open;
use metal3_runtime::client::Connector;
use metal3_runtime::guard::Guard;
use metal3_runtime::lease::Leadership;

use crate::session::Door;

/// How it is reached. It shows its host and nothing else: the rest of a configuration is credentials.
pub struct Cluster {
    requests: Connector,
    /// For workload clusters: they have a pace of their own.
    abroad: Connector,
    config: Config,
}

impl Cluster {
    /// A cluster that is asked through clients of `requests`, and workload clusters through those of `abroad`.
    #[must_use]
    pub const fn new(requests: Connector, abroad: Connector, config: Config) -> Self {
        Self {
            requests,
            abroad,
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

impl Door for Cluster {
    fn writing_for(&self, leadership: Leadership, guard: Guard) -> kube::Result<Client> {
        self.requests
            .writing_for(leadership, guard)
            .connect(self.config.clone())
    }

    fn workloads(&self, leadership: Leadership, guard: Guard) -> Open {
        let connector = self.abroad.writing_for(leadership, guard);
        Box::new(move |kubeconfig| {
            let connector = connector.clone();
            Box::pin(async move { open(&connector, kubeconfig).await })
        })
    }
}

/// A client by a kubeconfig. What it holds is not repeated: the library's errors may quote it.
async fn open(connector: &Connector, kubeconfig: Kubeconfig) -> Result<Client, String> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|_| "its kubeconfig has no usable context, cluster and user; write one".to_owned())?;
    let client = connector.connect(config);
    client.map_err(|_| "the certificates or the token of its kubeconfig cannot be used; write others".to_owned())
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
    fn a_cluster_shows_its_host_and_no_credential() {
        let Ok(url) = "https://user:hunter2@kubernetes.example.org:6443/".parse() else {
            unreachable!("it is an address");
        };
        let mut config = Config::new(url);
        config.proxy_url = "http://user:hunter2@proxy.example.org/".parse().ok();
        config.auth_info.username = Some("hunter2".to_owned());
        let login = json!({ "command": "login", "args": ["--password=hunter2"] });
        config.auth_info.exec = serde_json::from_value(login).ok();
        assert!(config.auth_info.exec.is_some() && config.proxy_url.is_some());
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let requests = Connector::new(Settings::new("test", "0"), clock, Metrics::new().requests());
        let shown = format!("{:?}", Cluster::new(requests.clone(), requests, config));
        assert!(shown.contains("kubernetes.example.org"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    fn connector() -> Connector {
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        Connector::new(Settings::new("test", "0"), clock, Metrics::new().requests())
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named_without_repeating_it() {
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
