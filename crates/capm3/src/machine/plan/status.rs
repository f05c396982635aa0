//! The status that a plan writes.

use metal3_api::infrastructure::conditions::machine;
use metal3_api::infrastructure::v1beta2::{DeprecatedStatus, LegacyStatus, Metal3MachineSpec, Metal3MachineStatus};
use metal3_capi::workload::BUSY_MESSAGE;
use metal3_runtime::work::Next;

use super::events::events_of;
use super::{HostOwnership, Plan, Planner, Undone};
use crate::machine::action::{Action, HostChange, Reads, StatusWrite, Urgency};
use crate::machine::conditions::{Conditions, Data, Deletion, Labels, Node, Request, Stage, wait_at};
use crate::served::{self, Unserved};

impl Planner<'_> {
    /// The plan with the actions so far and the status of a stage.
    pub(super) fn with_status(mut self, stage: Option<&Stage>) -> Plan {
        let status = stage.and_then(|stage| self.status_at(stage));
        let at_rest = stage.filter(|_| status.is_none());
        let retry = at_rest.and_then(|stage| self.disown_at_rest(stage));
        let events = status.as_ref().map(|_| events_of(self.before, &self.machine));
        // A key that waits for other requests is reconciled soon, whatever it reports.
        let is_idle = self.actions.is_empty() && (status.is_none() || stage.is_some_and(is_busy));
        Plan {
            reads: Reads::Nothing,
            actions: self.actions,
            status,
            events: events.unwrap_or_default(),
            next: match stage {
                _ if !is_idle => Next::Requeue,
                Some(stage) => {
                    let next = wait_at(stage, self.facts.now);
                    match retry {
                        Some(retry) => next.at_latest(retry),
                        None => next,
                    }
                }
                None => Next::Done,
            },
        }
    }

    /// The status of a stage, if it changes.
    fn status_at(&mut self, stage: &Stage) -> Option<StatusWrite> {
        let before = &self.before.status;
        let status = &mut self.machine.status;
        let older = status
            .deprecated
            .take()
            .and_then(|older| older.v1beta1)
            .unwrap_or_default();
        let conditions = Conditions {
            standard: std::mem::take(&mut status.conditions),
            legacy: older.conditions,
        };
        let conditions = conditions.at(stage, self.before.metadata.generation, self.facts.now);
        status.conditions = conditions.standard;
        let unserved = unserved(&self.before.spec);
        served::report(
            &mut status.conditions,
            &unserved,
            self.before.metadata.generation,
            self.facts.now,
        );
        // differs (`failure-cleared`): a failure written by the Go manager is permanent and stops the Machine.
        status.deprecated = Some(DeprecatedStatus {
            v1beta1: Some(LegacyStatus {
                conditions: conditions.legacy,
                ..LegacyStatus::default()
            }),
        });
        status.last_updated = before.last_updated;
        if *status == *before {
            return None;
        }
        let may_change_often = matches!(stage, Stage::WithoutHost { .. }) || depends_on_nodes(stage);
        let is_recounted = may_change_often && without_messages(status) == without_messages(before);
        // After a restart all Nodes with labels are read again, one after another.
        let waits_for_labels = matches!(
            stage,
            Stage::Hosted {
                labels: Labels::Waiting(_) | Labels::Busy,
                ..
            }
        );
        let is_recounted = is_recounted || (waits_for_labels && without_labels(status) == without_labels(before));
        status.last_updated = Some(self.facts.now);
        let is_provisioning =
            |action: &Action| matches!(action, Action::PatchHost { change, .. } if *change == HostChange::Provision);
        let is_reused = matches!(stage, Stage::Hosted { is_reused: true, .. });
        // Later reconciles depend on what the host was given, and only the claim shows that a host is reused. Cluster
        // API waits only for `initialization`, so that any other change of a wait may be delayed.
        let urgency = if is_reused || self.actions.iter().any(is_provisioning) {
            Urgency::Record
        } else if is_recounted {
            Urgency::Recount
        } else if resolves_by_itself(stage) && status.initialization == before.initialization {
            Urgency::Wait
        } else {
            Urgency::Report
        };
        let status = Box::new(status.clone());
        Some(StatusWrite { status, urgency })
    }

    pub(super) fn stage_of_failure(&mut self, failed: &Action, why: Undone<'_>) -> Option<Stage> {
        let unchanged = Labels::Unchanged;
        let why = match (why, failed) {
            // Only these send a request to the workload cluster.
            (Undone::Busy, Action::CopyLabels { .. }) => {
                return Some(self.failed_hosted(Request::Made, Node::Known, Labels::Busy));
            }
            (Undone::Busy, _) => {
                let node = Node::Waiting(BUSY_MESSAGE.to_owned());
                return Some(self.failed_hosted(Request::Made, node, unchanged));
            }
            (Undone::Failed(why), _) => why.to_owned(),
        };
        let change = match failed {
            Action::PatchMachine(_) => return None,
            Action::PatchHost { change, .. } => *change,
            Action::LabelSecret { .. } => HostChange::Update,
            Action::CreateClaim(_) => {
                return Some(self.failed_hosted(Request::Failed(why), Node::NotExpected, unchanged));
            }
            Action::PatchClaim { .. } | Action::DeleteClaim { .. } => {
                return Some(Stage::Deleting(Deletion::DataNotReleased(why)));
            }
            Action::AdoptNode { .. } => return Some(self.failed_hosted(Request::Made, Node::Failed(why), unchanged)),
            Action::CopyLabels { .. } => {
                return Some(self.failed_hosted(Request::Made, Node::Known, Labels::Failed(why.into())));
            }
        };
        Some(match change {
            HostChange::Claim => Stage::WithoutHost {
                message: why,
                is_rechecked: false,
            },
            HostChange::Provision => self.failed_hosted(Request::HostNotWritten(why), Node::NotExpected, unchanged),
            HostChange::Update => self.failed_hosted(Request::HostNotUpdated(why), Node::NotExpected, unchanged),
            HostChange::Pause | HostChange::Resume => Stage::HostPauseFailed {
                pausing: change == HostChange::Pause,
                message: why,
            },
            HostChange::Deprovision | HostChange::Release | HostChange::Disown => {
                Stage::Deleting(Deletion::HostNotReleased(why))
            }
        })
    }

    fn failed_hosted(&mut self, request: Request, node: Node, labels: Labels) -> Stage {
        let data = match self.host_ownership() {
            HostOwnership::Claimed(host) => self.data_state(host).to_condition(),
            HostOwnership::None
            | HostOwnership::Unclaimed(_)
            | HostOwnership::Taken(_)
            | HostOwnership::Missing(_)
            | HostOwnership::Unknown { .. } => Data::Waiting("waiting for Metal3Data to become ready".to_owned()),
        };
        Stage::Hosted {
            is_reused: false,
            request,
            data,
            node,
            labels,
        }
    }
}

/// The fields that are stored without effect. The webhook warns, and only of a write that a person makes.
fn unserved(spec: &Metal3MachineSpec) -> Unserved {
    let selector = spec.host_selector.as_ref();
    let namespace = selector.and_then(|selector| selector.in_namespace.as_ref());
    let fields = [
        ("spec.hostSelector.inNamespace", namespace.is_some()),
        ("spec.identityRef", spec.identity_ref.is_some()),
    ];
    Unserved::of(
        fields,
        "the machine gets a host of its own namespace; remove it from the template",
    )
}

/// A status whose conditions have no messages.
fn without_messages(status: &Metal3MachineStatus) -> Metal3MachineStatus {
    let mut status = status.clone();
    for condition in &mut status.conditions {
        condition.message.clear();
    }
    let older = status.deprecated.as_mut().and_then(|older| older.v1beta1.as_mut());
    for condition in older.into_iter().flat_map(|older| older.conditions.iter_mut()) {
        condition.message.clear();
    }
    status
}

/// A status without the report on the labels of the Node.
fn without_labels(status: &Metal3MachineStatus) -> Metal3MachineStatus {
    let mut status = status.clone();
    status
        .conditions
        .retain(|condition| condition.type_ != machine::LABELS_SYNCED);
    status
}

/// Whether a stage ends without action by the user.
const fn resolves_by_itself(stage: &Stage) -> bool {
    match stage {
        Stage::Before(_) | Stage::WithoutBootstrap { .. } | Stage::Deleting(Deletion::UnderWay(_)) => true,
        Stage::Hosted { request, node, .. } => matches!(request, Request::Made) && !matches!(node, Node::Known),
        _ => false,
    }
}

const fn is_busy(stage: &Stage) -> bool {
    let Stage::Hosted { labels, .. } = stage else {
        return false;
    };
    matches!(labels, Labels::Busy)
}

/// Whether the server of a tenant decides about the report, and how often it changes.
const fn depends_on_nodes(stage: &Stage) -> bool {
    let Stage::Hosted { node, labels, .. } = stage else {
        return false;
    };
    matches!(node, Node::Waiting(_) | Node::Failed(_))
        || matches!(labels, Labels::Waiting(_) | Labels::Busy | Labels::Failed(_))
}
