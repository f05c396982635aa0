//! The shared parts of the kubelet: API client, Node addresses, and limits.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;

use crate::events::{EventType, Events};
use crate::machine::addresses::Pool;
use crate::plan::environment::ApiServer;
use crate::plan::user::Users;
use crate::pod::pull::Images;

/// Shared by all Pods. Only the address pool changes.
pub(crate) struct Context {
    pub(crate) client: kube::Client,
    pub(crate) events: Events,
    /// For HTTP probes: trusts any certificate, as the API requires.
    pub(crate) http: reqwest::Client,
    pub(crate) node_name: String,
    pub(crate) node_address: String,
    pub(crate) bridge: String,
    pub(crate) server: ApiServer,
    pub(crate) users: Users,
    /// The table of images by tag.
    pub(crate) images: PathBuf,
    /// Images by digest.
    pub(crate) pulled: Images,
    pub(crate) state: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) limits: Limits,
}

/// Times that tests may shorten.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The refresh interval of volumes.
    pub(crate) refresh: Duration,
    /// The age at which a token is renewed, unless four fifths of its lifetime are less.
    pub(crate) token_age: Duration,
    pub(crate) backoff_first: Duration,
    pub(crate) backoff_limit: Duration,
}

impl Context {
    pub(crate) fn take_address(&self) -> Option<Ipv4Addr> {
        self.pool.lock().take()
    }

    pub(crate) fn release(&self, address: Ipv4Addr) {
        self.pool.lock().release(address);
    }

    pub(crate) async fn event(&self, pod: &Pod, event_type: EventType, reason: &str, note: String) {
        self.events.publish(pod, event_type, reason, note).await;
    }
}
