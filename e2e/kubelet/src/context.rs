//! What every part of the kubelet is given: the API, the Node's place, and the limits it works by.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::events::{Events, Weight};
use crate::machine::addresses::Pool;
use crate::plan::environment::ApiServer;
use crate::plan::user::Users;

/// Shared by all Pods. It is never changed but for the pool of addresses.
pub(crate) struct Context {
    pub(crate) client: kube::Client,
    pub(crate) events: Events,
    /// Asks probes: it trusts any certificate, as probes do.
    pub(crate) http: reqwest::Client,
    pub(crate) node_name: String,
    pub(crate) node_address: String,
    pub(crate) bridge: String,
    pub(crate) server: ApiServer,
    pub(crate) users: Users,
    pub(crate) images: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) limits: Limits,
}

/// Times that tests may shorten.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// How old the files of a volume may get.
    pub(crate) refresh: Duration,
    /// A token is renewed at this age, or at four fifths of its life if that is earlier.
    pub(crate) token_age: Duration,
    pub(crate) backoff_first: Duration,
    pub(crate) backoff_limit: Duration,
}

impl Context {
    pub(crate) fn take_address(&self) -> Option<Ipv4Addr> {
        // A pool is whole after every call, so a panic elsewhere does not spoil it.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn give_back(&self, address: Ipv4Addr) {
        self.pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .give_back(address);
    }

    pub(crate) async fn event(&self, pod: &Pod, weight: Weight, reason: &str, note: String) {
        self.events.publish(pod, weight, reason, note).await;
    }
}
