//! The workload clusters of other providers: those to run, and those that run.
//!
//! The machine simulator starts and stops them ([`WorkloadRegistry::wanted`]), and reports the result.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube::config::Kubeconfig;
use metal3_sim_capi::workload::{ChangeNotifier, Changes, Purpose, WorkloadServers};
use tokio::runtime::Handle;

use super::credentials::{ControlPlanePki, Login};

/// All of them. Clones share the state.
#[derive(Clone)]
pub(in crate::lifecycle) struct WorkloadRegistry {
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

impl fmt::Debug for WorkloadRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grounds").finish_non_exhaustive()
    }
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
    pub(in crate::lifecycle) fn wanted(&self) -> BTreeMap<String, ControlPlanePki> {
        self.with(|known| known.wanted.clone())
    }

    /// Records a running API server.
    pub(in crate::lifecycle) fn answers(&self, login: &Login) -> anyhow::Result<()> {
        let client = super::client(&self.runtime, Kubeconfig::from_yaml(&login.kubeconfig())?)?;
        self.with(|known| known.answering.insert(login.endpoint.clone(), client));
        self.notice.notify();
        Ok(())
    }

    /// Records that the API server of an endpoint stopped.
    pub(in crate::lifecycle) fn is_silent(&self, endpoint: &str) {
        self.with(|known| known.answering.remove(endpoint));
        self.notice.notify();
    }

    fn with<T>(&self, work: impl FnOnce(&mut Entries) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The credentials of an endpoint, created once and kept until `stop`.
    fn papers_of(&self, endpoint: &str) -> Option<ControlPlanePki> {
        let known = self.with(|known| known.credentials.get(endpoint).cloned());
        if known.is_some() {
            return known;
        }
        let made = ControlPlanePki::of(endpoint);
        let made = made
            .inspect_err(|error| eprintln!("no papers for {endpoint}: {error}"))
            .ok()?;
        self.with(|known| known.credentials.insert(endpoint.to_owned(), made.clone()));
        Some(made)
    }
}

impl WorkloadServers for WorkloadRegistry {
    fn start(&self, endpoint: &str) {
        if let Some(credentials) = self.papers_of(endpoint) {
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
        let credentials = self.papers_of(endpoint);
        credentials
            .map(|credentials| credentials.of_secret(purpose))
            .unwrap_or_default()
    }

    fn changes(&self) -> Changes {
        self.notice.changes()
    }
}
