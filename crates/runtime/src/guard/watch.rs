//! The watch of the guard.
//!
//! The watcher of kube-rs does not report when it works again after a failure, which the guard needs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Client};
use metal3_domain::clock::Clock;
use tokio::sync::watch;
use tokio::time::timeout;

use super::handle::Guard;
use super::status::{DeploymentView, FIRST_PAUSE, ForeignDeployment, GuardStatus};
use crate::access::{Permits, verb};
use crate::watch::SILENCE_LIMIT;

/// The timeout of the response headers. A watch is exempt from the client's own timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The error of a watch that ended without any event or bookmark: its view is not trusted.
const NO_EVENTS: &str = "its watch brings nothing";

/// Watches the Deployment of one other implementation.
#[derive(Debug)]
pub struct DeploymentGuard {
    api: Api<Deployment>,
    foreign: ForeignDeployment,
    clock: Arc<dyn Clock>,
    status: watch::Sender<GuardStatus>,
}

impl DeploymentGuard {
    /// A guard for a role that may list and watch, and the handle to its status, which is unknown at first.
    #[must_use]
    pub fn new<R>(client: Client, foreign: ForeignDeployment, clock: Arc<dyn Clock>) -> (Self, Guard)
    where
        R: Permits<verb::List, Deployment> + Permits<verb::Watch, Deployment>,
    {
        let (sender, status) = watch::channel(DeploymentView::new(foreign.clone()).status().clone());
        let guard = Self {
            api: Api::namespaced(client, &foreign.namespace),
            foreign,
            clock,
            status: sender,
        };
        (guard, Guard { status })
    }

    /// Runs for ever; drop the future to end it. The status then stays.
    pub async fn run(self) {
        let mut view = DeploymentView::new(self.foreign.clone());
        loop {
            let why = self.follow(&mut view).await;
            let pause = view.failed(why, self.clock.monotonic());
            self.set_status(view.status());
            tokio::time::sleep(pause).await;
        }
    }

    /// Lists, then watches until an error. Returns the error.
    async fn follow(&self, view: &mut DeploymentView) -> String {
        let name = format!("metadata.name={}", self.foreign.name);
        let list = match self.api.list(&ListParams::default().fields(&name)).await {
            Ok(list) => list,
            Err(error) => return reason(&error),
        };
        view.observed(list.items.first());
        self.set_status(view.status());
        let mut version = list.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().fields(&name);
        loop {
            let mut events = match timeout(RESPONSE_TIMEOUT, self.api.watch(&params, &version)).await {
                Ok(Ok(events)) => events.boxed(),
                Ok(Err(error)) => return reason(&error),
                Err(late) => return reason(&kube::Error::Service(late.into())),
            };
            let mut has_events = false;
            // A silent server is not available.
            while let Ok(Some(event)) = timeout(SILENCE_LIMIT, events.next()).await {
                let found = match event {
                    Ok(WatchEvent::Added(found) | WatchEvent::Modified(found)) => {
                        view.observed(Some(&found));
                        found.metadata.resource_version
                    }
                    Ok(WatchEvent::Deleted(found)) => {
                        view.observed(None);
                        found.metadata.resource_version
                    }
                    Ok(WatchEvent::Bookmark(mark)) => Some(mark.metadata.resource_version),
                    Ok(WatchEvent::Error(status)) => return reason(&kube::Error::Api(status.boxed())),
                    Err(error) => return reason(&error),
                };
                has_events = true;
                version = found.unwrap_or(version);
                self.set_status(view.status());
            }
            if !has_events {
                return NO_EVENTS.to_owned();
            }
            // At most one watch per second, on a server that ends each after its first event.
            tokio::time::sleep(FIRST_PAUSE).await;
        }
    }

    fn set_status(&self, status: &GuardStatus) {
        let is_new = self.status.send_if_modified(|before| {
            let is_new = before != status;
            if is_new {
                before.clone_from(status);
            }
            is_new
        });
        if !is_new {
            return;
        }
        let group = &self.foreign.group;
        if status.is_clear() {
            tracing::info!(group, "{status}");
        } else {
            tracing::warn!(group, "{status}");
        }
    }
}

/// Reads the Deployment of another implementation once, past the watch and its delay, whether or not a flag overrides the
/// guard.
pub async fn read_status<R>(client: Client, foreign: ForeignDeployment) -> GuardStatus
where
    R: Permits<verb::List, Deployment>,
{
    let mut view = DeploymentView::new(foreign.clone());
    let api: Api<Deployment> = Api::namespaced(client, &foreign.namespace);
    let name = format!("metadata.name={}", foreign.name);
    match api.list(&ListParams::default().fields(&name)).await {
        Ok(list) => {
            view.observed(list.items.first());
            view.status().clone()
        }
        Err(error) => GuardStatus::Unknown {
            foreign,
            why: reason(&error),
        },
    }
}

/// The reason in one line. The server's message names the missing permission.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}: {}", status.code, status.reason, status.message),
        _ => "the API server does not answer".to_owned(),
    }
}
