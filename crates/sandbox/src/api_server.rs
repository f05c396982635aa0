//! The API server of the sandbox alone: all kinds and webhooks, without controllers.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options};
use tokio::task::JoinSet;

use super::admission;
use super::http_server::HttpServer;
use super::world::definitions;

/// A running server. Dropping it closes its port.
pub struct ApiServer {
    http: HttpServer,
    _tasks: JoinSet<()>,
}

impl ApiServer {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    /// When it rejects its kinds, which is a defect, or no port is free.
    pub async fn start(clock: &Arc<dyn Clock>) -> Result<Self> {
        let cluster = Cluster::start(&Options {
            clock: Arc::clone(clock),
            ..Options::seeded(1)
        });
        cluster
            .install(&definitions())
            .map_err(|refusal| anyhow!("install the kinds: {refusal:?}"))?;
        admission::install(&cluster);
        let http = HttpServer::open(&cluster, clock, 0).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { cluster.run_collector().await });
        Ok(Self {
            http: http.context("listen on loopback")?,
            _tasks: tasks,
        })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.http.url()
    }
}
