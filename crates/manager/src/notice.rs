//! Events about an idle group, and about its resumption. They refer to the Go manager's Deployment that keeps it idle.
//!
//! The log and `/readyz` contain the same; an Event is recorded once and may be lost.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_domain::reasons;
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::guard::{ForeignDeployment, Guard, GuardStatus};
use metal3_runtime::reason::Reason;

reasons! {
    /// Another implementation serves the group, or that is unknown.
    pub IDLE = "ControllersIdle";
    /// No other implementation serves the group any more.
    pub RESUMED = "ControllersResumed";
}

/// Capacity of the event queue; the guard's status changes rarely.
pub(crate) const EVENTS: usize = 16;

/// Records an event for each change of the guard's status, until the guard ends.
pub(crate) async fn report(mut guard: Guard, foreign: ForeignDeployment, events: EventRecorder) {
    let mut reported = GuardEvents::default();
    while let Some(status) = guard.changed().await {
        let Some((importance, reason)) = reported.event_for(&status) else {
            continue;
        };
        events.record(&reported.about(&foreign), importance, reason, status.to_string());
    }
}

/// The last recorded status.
#[derive(Debug, Default)]
struct GuardEvents {
    idle: bool,
    /// UID of the Deployment, by which clients find the events of an object.
    uid: Option<String>,
}

impl GuardEvents {
    /// The event for a status; `None` for a group that was never idle.
    fn event_for(&mut self, status: &GuardStatus) -> Option<(Importance, Reason)> {
        let idle = !status.is_clear();
        if let GuardStatus::Present { uid, .. } = status {
            self.uid.clone_from(uid);
        }
        let before = std::mem::replace(&mut self.idle, idle);
        match (before, idle) {
            (_, true) => Some((Importance::Warning, IDLE)),
            (true, false) => Some((Importance::Normal, RESUMED)),
            (false, false) => None,
        }
    }

    fn about(&self, foreign: &ForeignDeployment) -> Deployment {
        Deployment {
            metadata: ObjectMeta {
                name: Some(foreign.name.clone()),
                namespace: Some(foreign.namespace.clone()),
                uid: self.uid.clone(),
                ..ObjectMeta::default()
            },
            ..Deployment::default()
        }
    }
}
