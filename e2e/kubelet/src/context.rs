//! What every part of the kubelet is given: the API, the Node's place, and the limits it works by.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::runtime::events::{Event, EventType, Recorder};

use crate::machine::addresses::Pool;
use crate::plan::environment::ApiServer;
use crate::plan::user::Users;

/// Shared by all Pods. It is never changed but for the pool of addresses.
pub(crate) struct Context {
    pub(crate) client: kube::Client,
    pub(crate) events: Recorder,
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

    /// An Event on a Pod. It is news, not state: a lost one is logged and no more.
    pub(crate) async fn event(&self, pod: &Pod, kind: EventType, reason: &str, note: String) {
        let reference = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: kind,
            reason: reason.to_owned(),
            note: Some(note),
            action: reason.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.events.publish(&event, &reference).await {
            tracing::warn!(%error, reason, "an Event was not written");
        }
    }
}
