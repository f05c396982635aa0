//! What a decision says of the machine.

use metal3_api::infrastructure::v1beta2::{DeprecatedStatus, LegacyStatus, Metal3MachineStatus};

use super::{Mine, Pass, Plan};
use crate::machine::action::{Action, Deed};
use crate::machine::conditions::{Conditions, Data, Deletion, Node, Request, Stage};

impl Pass<'_> {
    /// The plan that says how far the machine is. Where it says so already, there is nothing to write.
    pub(super) fn saying(mut self, stage: &Stage) -> Plan {
        let before = &self.facts.machine.status;
        let status = &mut self.machine.status;
        let older = status
            .deprecated
            .take()
            .and_then(|older| older.v1beta1)
            .unwrap_or_default();
        let said = Conditions {
            standard: std::mem::take(&mut status.conditions),
            legacy: older.conditions,
        };
        let said = said.at(stage, self.facts.machine.metadata.generation, self.facts.now);
        status.conditions = said.standard;
        // differs (`failure-cleared`): what the Go manager once wrote there stands for ever, and stops the Machine.
        status.deprecated = Some(DeprecatedStatus {
            v1beta1: Some(LegacyStatus {
                conditions: said.legacy,
                ..LegacyStatus::default()
            }),
        });
        status.last_updated = before.last_updated;
        let is_news = *status != *before;
        if is_news {
            status.last_updated = Some(self.facts.now);
        }
        // Cluster API waits for that alone.
        let is_told_host =
            |action: &Action| matches!(action, Action::PatchHost { deed, .. } if *deed == Deed::Provision);
        // Later passes decide from what the host was told, and only the taking shows that a host was kept.
        let is_kept = matches!(stage, Stage::Hosted { is_kept: true, .. });
        let tells_once = is_kept || self.actions.iter().any(is_told_host);
        let is_wait = goes_on(stage) && !tells_once && status.initialization == before.initialization;
        let status: Metal3MachineStatus = self.machine.status;
        Plan {
            confirm: false,
            confirm_host: None,
            actions: self.actions,
            status: is_news.then(|| Box::new(status)),
            is_wait,
            tells_once,
            wants_nodes: self.wants_nodes,
        }
    }

    /// The plan that says nothing new.
    pub(super) fn quiet(self) -> Plan {
        Plan {
            confirm: false,
            confirm_host: None,
            actions: self.actions,
            status: None,
            is_wait: false,
            tells_once: false,
            wants_nodes: self.wants_nodes,
        }
    }

    /// How far the machine is when a write was refused for good.
    pub(super) fn stage_of_failure(&mut self, failed: &Action, why: &str) -> Option<Stage> {
        let why = why.to_owned();
        let deed = match failed {
            Action::PatchMachine(_) => return None,
            Action::PatchHost { deed, .. } => *deed,
            Action::LabelSecret { .. } => Deed::Keep,
            Action::CreateClaim(_) => return Some(self.failed_hosted(Request::Failed(why), Node::NotExpected)),
            Action::PatchClaim { .. } | Action::DeleteClaim { .. } => {
                return Some(Stage::Deleting(Deletion::DataNotReleased(why)));
            }
            Action::AdoptNode { .. } => return Some(self.failed_hosted(Request::Made, Node::Failed(why))),
        };
        Some(match deed {
            Deed::Claim => Stage::WithoutHost { message: why },
            Deed::Provision => self.failed_hosted(Request::HostNotWritten(why), Node::NotExpected),
            Deed::Keep => self.failed_hosted(Request::HostNotUpdated(why), Node::NotExpected),
            Deed::Pause | Deed::Resume => Stage::PauseNotPassedOn {
                pausing: deed == Deed::Pause,
                message: why,
            },
            Deed::Deprovision | Deed::Release => Stage::Deleting(Deletion::HostNotReleased(why)),
        })
    }

    fn failed_hosted(&mut self, request: Request, node: Node) -> Stage {
        let data = match self.mine() {
            Mine::Claimed(host) => self.data(host).said(),
            Mine::None | Mine::Unclaimed(_) | Mine::Taken(_) | Mine::Gone(_) | Mine::Unknown { .. } => {
                Data::Waiting("waiting for Metal3Data to become ready".to_owned())
            }
        };
        Stage::Hosted {
            is_kept: false,
            request,
            data,
            node,
        }
    }
}

/// Whether a stage ends by itself, with nothing to cure: what was asked for comes.
const fn goes_on(stage: &Stage) -> bool {
    match stage {
        Stage::Before(_) | Stage::Deleting(Deletion::UnderWay(_)) => true,
        Stage::Hosted { request, node, .. } => {
            matches!(request, Request::Made) && matches!(node, Node::NotExpected | Node::Waiting(_))
        }
        _ => false,
    }
}
