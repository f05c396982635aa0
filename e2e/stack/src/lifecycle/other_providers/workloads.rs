//! The workload clusters of other providers: those to run, and those that run.
//!
//! The machine simulator starts and stops them ([`WorkloadRegistry::wanted`]), and reports the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use metal3_sim_capi::workload::{ChangeNotifier, Changes, Purpose, WorkloadServers};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::credentials::{ControlPlanePki, Login};

/// All of them. Clones share the state.
#[derive(Clone)]
pub(crate) struct WorkloadRegistry {
    known: Arc<Mutex<Entries>>,
    notice: ChangeNotifier,
    runtime: Handle,
}

#[derive(Default)]
struct Entries {
    /// Control planes without machines that should run.
    wanted: BTreeMap<String, ControlPlanePki>,
    /// Credentials, including those requested before the start.
    credentials: BTreeMap<String, ControlPlanePki>,
    answering: BTreeMap<String, kube::Client>,
}

impl WorkloadRegistry {
    pub(super) fn new(runtime: &Handle) -> Self {
        Self {
            known: Arc::default(),
            notice: ChangeNotifier::default(),
            runtime: runtime.clone(),
        }
    }

    /// Control planes without machines that should run.
    pub(crate) fn wanted(&self) -> BTreeMap<String, ControlPlanePki> {
        self.with(|known| known.wanted.clone())
    }

    /// Records a running API server.
    pub(crate) fn answers(&self, login: &Login) -> anyhow::Result<()> {
        let client = client(&self.runtime, Kubeconfig::from_yaml(&login.kubeconfig())?)?;
        self.with(|known| known.answering.insert(login.endpoint.clone(), client));
        self.notice.notify();
        Ok(())
    }

    /// Records that the API server of an endpoint stopped.
    pub(crate) fn is_silent(&self, endpoint: &str) {
        self.with(|known| known.answering.remove(endpoint));
        self.notice.notify();
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entries) -> T) -> T {
        work(&mut self.known.lock())
    }

    /// The credentials of an endpoint, created once and kept until `stop`.
    fn credentials_of(&self, endpoint: &str) -> Option<ControlPlanePki> {
        let known = self.with(|known| known.credentials.get(endpoint).cloned());
        if known.is_some() {
            return known;
        }
        let made = ControlPlanePki::of(endpoint);
        let made = made
            .inspect_err(|error| eprintln!("no credentials for {endpoint}: {error}"))
            .ok()?;
        self.with(|known| known.credentials.insert(endpoint.to_owned(), made.clone()));
        Some(made)
    }
}

impl WorkloadServers for WorkloadRegistry {
    fn start(&self, endpoint: &str) {
        if let Some(credentials) = self.credentials_of(endpoint) {
            self.with(|known| known.wanted.insert(endpoint.to_owned(), credentials));
        }
    }

    fn stop(&self, endpoint: &str) {
        self.with(|known| {
            known.wanted.remove(endpoint);
            known.credentials.remove(endpoint);
        });
    }

    fn endpoints(&self) -> Vec<String> {
        self.with(|known| known.answering.keys().cloned().collect())
    }

    /// Each user is administrator.
    fn client(&self, endpoint: &str, _user: &str) -> Option<kube::Client> {
        self.with(|known| known.answering.get(endpoint).cloned())
    }

    fn secret_data(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)> {
        let credentials = self.credentials_of(endpoint);
        credentials
            .map(|credentials| credentials.of_secret(purpose))
            .unwrap_or_default()
    }

    fn changes(&self) -> Changes {
        self.notice.changes()
    }
}

/// A client for the cluster of a kubeconfig.
pub(super) fn client(runtime: &Handle, kubeconfig: Kubeconfig) -> anyhow::Result<kube::Client> {
    runtime.block_on(async {
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(kube::Client::try_from(config)?)
    })
}
