//! Telling by Events that a group is idle, and when it may go on: about the Deployment that keeps it idle, where whoever
//! scaled it up looks.
//!
//! The log and `/readyz` say the same without being asked; an Event is news only, and may be lost.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::guard::{Foreign, Guard, Standing};
use metal3_runtime::reason::Reason;

/// Another implementation serves the group, or nobody knows.
const IDLE: Reason = Reason::new("ControllersIdle");
/// Nobody else serves the group any more.
const RESUMED: Reason = Reason::new("ControllersResumed");

/// Events that may lie unwritten: a guard changes its mind seldom.
pub(crate) const EVENTS: usize = 16;

/// Tells each change of a standing, until there will be none.
pub(crate) async fn tell(mut guard: Guard, foreign: Foreign, events: EventRecorder) {
    let mut told = Told::default();
    while let Some(standing) = guard.changed().await {
        let Some((importance, reason)) = told.news(&standing) else {
            continue;
        };
        events.tell(&told.about(&foreign), importance, reason, standing.to_string());
    }
}

/// What was told before.
#[derive(Debug, Default)]
struct Told {
    idle: bool,
    /// Of the Deployment when it was last seen: people are shown the events of an object by it.
    uid: Option<String>,
}

impl Told {
    /// What there is to tell; nothing of a group that was never idle.
    fn news(&mut self, standing: &Standing) -> Option<(Importance, Reason)> {
        let idle = !standing.is_clear();
        if let Standing::Present { uid, .. } = standing {
            self.uid.clone_from(uid);
        }
        let before = std::mem::replace(&mut self.idle, idle);
        match (before, idle) {
            (_, true) => Some((Importance::Warning, IDLE)),
            (true, false) => Some((Importance::Normal, RESUMED)),
            (false, false) => None,
        }
    }

    fn about(&self, foreign: &Foreign) -> Deployment {
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
