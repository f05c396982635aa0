//! The API server that the flags name.

use std::fmt;

use kube::{Client, Config};
use metal3_runtime::client::Connector;
use metal3_runtime::guard::Guard;
use metal3_runtime::lease::Leadership;

use crate::session::Door;

/// How it is reached. It shows its host and nothing else: the rest of a configuration is credentials.
pub struct Cluster {
    requests: Connector,
    config: Config,
}

impl Cluster {
    /// A cluster that is asked through clients of this connector.
    #[must_use]
    pub const fn new(requests: Connector, config: Config) -> Self {
        Self { requests, config }
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
        let shown = format!("{:?}", Cluster::new(requests, config));
        assert!(shown.contains("kubernetes.example.org"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
