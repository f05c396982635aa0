//! The workload clusters as other providers know them: which of them are to run, and those that answer.
//!
//! Who boots machines has them started and stopped ([`Grounds::wanted`]), and says what became of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube::config::Kubeconfig;
use metal3_sim_capi::site::{Changes, Ground, Notice, Purpose};
use tokio::runtime::Handle;

use super::papers::{Login, Papers};

/// All of them. Clones share them.
#[derive(Clone)]
pub(in crate::mission) struct Grounds {
    known: Arc<Mutex<Known>>,
    notice: Notice,
    runtime: Handle,
}

#[derive(Default)]
struct Known {
    /// Those that a control plane without machines wants to run.
    wanted: BTreeMap<String, Papers>,
    /// Papers that somebody has asked for before anything was to run, too.
    papers: BTreeMap<String, Papers>,
    answering: BTreeMap<String, kube::Client>,
}

impl fmt::Debug for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grounds").finish_non_exhaustive()
    }
}

impl Grounds {
    pub(super) fn new(runtime: &Handle) -> Self {
        Self {
            known: Arc::default(),
            notice: Notice::default(),
            runtime: runtime.clone(),
        }
    }

    /// Those that are to run though no machine runs them.
    pub(in crate::mission) fn wanted(&self) -> BTreeMap<String, Papers> {
        self.with(|known| known.wanted.clone())
    }

    /// One answers to this login.
    pub(in crate::mission) fn answers(&self, login: &Login) -> anyhow::Result<()> {
        let client = super::client(&self.runtime, Kubeconfig::from_yaml(&login.kubeconfig())?)?;
        self.with(|known| known.answering.insert(login.endpoint.clone(), client));
        self.notice.tell();
        Ok(())
    }

    /// Nobody answers at an endpoint any more.
    pub(in crate::mission) fn is_silent(&self, endpoint: &str) {
        self.with(|known| known.answering.remove(endpoint));
        self.notice.tell();
    }

    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same for as long as there is nothing at the endpoint that was made with others.
    fn papers_of(&self, endpoint: &str) -> Option<Papers> {
        let known = self.with(|known| known.papers.get(endpoint).cloned());
        if known.is_some() {
            return known;
        }
        let made = Papers::of(endpoint);
        let made = made
            .inspect_err(|error| eprintln!("no papers for {endpoint}: {error}"))
            .ok()?;
        self.with(|known| known.papers.insert(endpoint.to_owned(), made.clone()));
        Some(made)
    }
}

impl Ground for Grounds {
    fn start(&self, endpoint: &str) {
        if let Some(papers) = self.papers_of(endpoint) {
            self.with(|known| known.wanted.insert(endpoint.to_owned(), papers));
        }
    }

    fn stop(&self, endpoint: &str) {
        self.with(|known| {
            known.wanted.remove(endpoint);
            known.papers.remove(endpoint);
        });
    }

    fn endpoints(&self) -> Vec<String> {
        self.with(|known| known.answering.keys().cloned().collect())
    }

    /// Everybody is its administrator.
    fn client(&self, endpoint: &str, _user: &str) -> Option<kube::Client> {
        self.with(|known| known.answering.get(endpoint).cloned())
    }

    fn papers(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)> {
        let papers = self.papers_of(endpoint);
        papers.map(|papers| papers.of_secret(purpose)).unwrap_or_default()
    }

    fn changes(&self) -> Changes {
        self.notice.changes()
    }
}
