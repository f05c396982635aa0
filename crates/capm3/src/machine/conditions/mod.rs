//! Conditions of a machine in both API generations, as a function of its stage.
//!
//! A stage sets the conditions that it determines and leaves the rest unchanged: a pause does not change the data
//! conditions. Each generation has its own summary: the standard one counts missing conditions as unknown, the legacy
//! one takes the worst of those that exist.
//!
//! Every wait and every failure is one stage with one set of conditions, so no condition flaps during a reconcile.

mod stage;
mod summary;

use std::time::Duration;

use metal3_api::infrastructure::conditions::{legacy, machine, shared};
use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};
use metal3_capi::workload::{BUSY_MESSAGE, BUSY_POLL};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

pub use stage::{Data, Deletion, Labels, Node, Prerequisite, Request, Stage};

/// The conditions of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The conditions of `metav1`.
    pub standard: Vec<Condition>,
    /// The conditions of v1beta1.
    pub legacy: Vec<LegacyCondition>,
}

/// Control planes, MachineSets, MachineDeployments, and Machines of other Clusters, are not watched for the wait that their
/// change may end.
const SET_RECHECK: Duration = Duration::from_mins(1);

/// A granted permission enqueues nothing, and each attempt is a rejected request.
pub(crate) const OWNER_RETRY: Duration = Duration::from_mins(10);

/// What a machine waits for at a stage, as its first condition that is not true states it.
#[must_use]
pub fn wait_at(stage: &Stage, now: Time) -> Next {
    let wait = StageConditions::of(stage, false, None, now).wait;
    let recheck = match stage {
        Stage::Deleting(Deletion::ReuseUndecided(_)) | Stage::WithoutHost { is_rechecked: true, .. } => {
            Some(SET_RECHECK)
        }
        Stage::Deleting(Deletion::HostOwned(_)) => Some(OWNER_RETRY),
        Stage::Hosted {
            labels: Labels::Later(after),
            ..
        } => Some(*after),
        Stage::Hosted {
            labels: Labels::Busy, ..
        } => Some(BUSY_POLL),
        _ => None,
    };
    match (wait, recheck) {
        (Some((reason, message)), Some(recheck)) => Next::waiting_with_recheck(reason, message, recheck).quiet(),
        (Some((reason, message)), None) => Next::waiting(reason, message).quiet(),
        (None, recheck) => recheck.map_or(Next::Done, Next::RequeueAfter),
    }
}

impl Conditions {
    /// The conditions at a stage, based on the current ones.
    #[must_use]
    pub fn at(mut self, stage: &Stage, generation: Option<i64>, now: Time) -> Self {
        let is_reused = self.was_reused() || matches!(stage, Stage::Hosted { is_reused: true, .. });
        let stage_conditions = StageConditions::of(stage, is_reused, generation, now);
        for condition in stage_conditions.standard {
            set_condition(&mut self.standard, condition);
        }
        for condition in stage_conditions.legacy {
            set_condition(&mut self.legacy, condition);
        }
        if matches!(
            stage,
            Stage::Hosted {
                request: Request::Made,
                node: Node::NotExpected,
                ..
            }
        ) {
            // The claim's failure is resolved, and the Node is not known yet.
            self.legacy.retain(|condition| condition.type_ != legacy::NODE_READY);
        }
        if let Stage::Hosted {
            labels: Labels::NotAsked,
            ..
        } = stage
        {
            self.standard
                .retain(|condition| condition.type_ != machine::LABELS_SYNCED);
        }
        let ready = summary::standard_summary(&self.standard).standard(generation, now);
        set_condition(&mut self.standard, ready);
        if let Some(ready) = summary::legacy_summary(&self.legacy, now) {
            set_condition(&mut self.legacy, ready);
        }
        self
    }

    /// Whether the conditions record a reused host. Only the claim of the host determines this.
    fn was_reused(&self) -> bool {
        let host = self
            .standard
            .iter()
            .find(|condition| condition.type_ == machine::ASSOCIATE_HOST);
        host.is_some_and(|host| {
            host.status == ConditionStatus::True && host.reason == machine::REASON_HOST_REUSED.as_str()
        })
    }
}

/// The conditions of one stage, in each generation.
struct StageConditions {
    generation: Option<i64>,
    now: Time,
    standard: Vec<Condition>,
    legacy: Vec<LegacyCondition>,
    /// Reason and message of the first condition of a summary that is not true.
    wait: Option<(Reason, String)>,
}

impl StageConditions {
    fn of(stage: &Stage, is_reused: bool, generation: Option<i64>, now: Time) -> Self {
        let mut built = Self {
            generation,
            now,
            standard: Vec::new(),
            legacy: Vec::new(),
            wait: None,
        };
        if !matches!(stage, Stage::Paused { .. } | Stage::HostPauseFailed { .. }) {
            let reason = shared::REASON_NOT_PAUSED;
            let not_paused = ConditionBuilder::mark_false(machine::PAUSED, reason, Severity::Info, "");
            built.standard(&not_paused);
        }
        match stage {
            Stage::Before(prerequisite) => built.before(*prerequisite, ""),
            Stage::WithoutBootstrap { note } => built.before(Prerequisite::Bootstrap, note),
            Stage::Paused { message } => built.paused(message),
            Stage::HostPauseFailed { pausing, message } => built.host_pause_failed(*pausing, message),
            Stage::WithoutCluster { message } => {
                let (reason, legacy_reason) = (machine::REASON_WAITING_FOR_CLUSTER, legacy::REASON_WAITING_FOR_CLUSTER);
                built.without_host(reason, legacy_reason, Severity::Info, message);
            }
            Stage::Ambiguous { message } => {
                let (reason, legacy_reason) = (machine::REASON_AMBIGUOUS_CLUSTER, legacy::REASON_WAITING_FOR_CLUSTER);
                built.without_host(reason, legacy_reason, Severity::Info, message);
            }
            Stage::NotOfCluster { message } => {
                let (reason, legacy_reason) = (machine::REASON_NOT_OF_CLUSTER, legacy::REASON_WAITING_FOR_CLUSTER);
                built.without_host(reason, legacy_reason, Severity::Warning, message);
            }
            Stage::Unreadable { message } => {
                let unknown = |condition_type| {
                    let reason = shared::REASON_READY_UNKNOWN;
                    ConditionBuilder::mark_unknown(condition_type, reason, message)
                };
                built.standard(&unknown(machine::ASSOCIATE_HOST));
                built.legacy(&unknown(legacy::ASSOCIATE_HOST));
            }
            Stage::WithoutHost { message, .. } => {
                let (reason, legacy_reason) = (machine::REASON_HOST_FAILED, legacy::REASON_HOST_FAILED);
                built.without_host(reason, legacy_reason, Severity::Error, message);
            }
            Stage::Hosted {
                request,
                data,
                node,
                labels,
                ..
            } => {
                built.host(is_reused);
                built.request(request, node);
                built.data(data);
                built.node(request, node);
                built.labels(labels);
            }
            Stage::Deleting(deletion) => built.deletion(deletion),
        }
        built
    }

    fn standard(&mut self, statement: &ConditionBuilder) {
        self.wait_for(statement, &summary::SUMMARIZED);
        self.standard.push(statement.standard(self.generation, self.now));
    }

    fn legacy(&mut self, statement: &ConditionBuilder) {
        self.wait_for(statement, &summary::SUMMARIZED_LEGACY);
        self.legacy.push(statement.legacy(self.now));
    }

    fn wait_for(&mut self, statement: &ConditionBuilder, summarized: &[&str]) {
        let wait = statement.not_true().filter(|(kind, ..)| summarized.contains(kind));
        if self.wait.is_none() {
            self.wait = wait.map(|(_, reason, message)| (reason, message.to_owned()));
        }
    }

    /// The same condition in both generations, which may name it differently: true.
    fn both_true(&mut self, [standard, legacy]: [&'static str; 2], reason: Reason) {
        self.standard(&ConditionBuilder::mark_true(standard, reason));
        self.legacy(&ConditionBuilder::mark_true(legacy, reason));
    }

    /// The same condition in both generations, each with its name and reason: false.
    fn both_false(
        &mut self,
        standard: (&'static str, Reason),
        legacy: (&'static str, Reason),
        severity: Severity,
        message: &str,
    ) {
        let of = |(condition_type, reason)| ConditionBuilder::mark_false(condition_type, reason, severity, message);
        self.standard(&of(standard));
        self.legacy(&of(legacy));
    }

    fn host(&mut self, is_reused: bool) {
        let reason = if is_reused {
            machine::REASON_HOST_REUSED
        } else {
            machine::REASON_HOST_ASSOCIATED
        };
        self.both_true([machine::ASSOCIATE_HOST, legacy::ASSOCIATE_HOST], reason);
    }

    fn without_host(&mut self, reason: Reason, legacy_reason: Reason, severity: Severity, message: &str) {
        let (standard, legacy) = (
            (machine::ASSOCIATE_HOST, reason),
            (legacy::ASSOCIATE_HOST, legacy_reason),
        );
        self.both_false(standard, legacy, severity, message);
    }

    fn before(&mut self, prerequisite: Prerequisite, note: &str) {
        let (reason, legacy_reason, message) = match prerequisite {
            Prerequisite::Owner => (
                machine::REASON_WAITING_FOR_OWNER,
                legacy::REASON_WAITING_FOR_OWNER,
                "waiting for a Machine to own the object; Cluster API sets the owner",
            ),
            Prerequisite::Cluster => (
                machine::REASON_WAITING_FOR_INFRASTRUCTURE,
                legacy::REASON_WAITING_FOR_INFRASTRUCTURE,
                "the Machine has no label with its Cluster, or there is no such Cluster; set the label or create the Cluster",
            ),
            Prerequisite::Infrastructure => (
                machine::REASON_WAITING_FOR_INFRASTRUCTURE,
                legacy::REASON_WAITING_FOR_INFRASTRUCTURE,
                "waiting for the infrastructure of the Cluster; see the conditions of the Cluster",
            ),
            Prerequisite::Bootstrap => (
                machine::REASON_WAITING_FOR_BOOTSTRAP,
                legacy::REASON_WAITING_FOR_BOOTSTRAP,
                "waiting for the bootstrap data; see the conditions of the Machine",
            ),
        };
        let separator = if note.is_empty() { "" } else { "; " };
        let message = format!("{message}{separator}{note}");
        self.without_host(reason, legacy_reason, Severity::Info, &message);
    }

    fn paused(&mut self, message: &str) {
        let paused = ConditionBuilder::mark_true(machine::PAUSED, shared::REASON_PAUSED);
        let paused = paused.standard(self.generation, self.now);
        self.standard.push(Condition {
            message: message.to_owned(),
            ..paused
        });
        self.without_host(shared::REASON_PAUSED, legacy::REASON_PAUSED, Severity::Info, message);
    }

    fn host_pause_failed(&mut self, pausing: bool, message: &str) {
        let (reason, legacy_reason) = if pausing {
            (machine::REASON_PAUSE_SET_FAILED, legacy::REASON_PAUSE_SET_FAILED)
        } else {
            (machine::REASON_PAUSE_REMOVE_FAILED, legacy::REASON_PAUSE_REMOVE_FAILED)
        };
        let failed = ConditionBuilder::mark_false(machine::PAUSED, reason, Severity::Info, message);
        self.standard(&failed);
        self.without_host(reason, legacy_reason, Severity::Info, message);
    }

    fn request(&mut self, request: &Request, node: &Node) {
        let failure = match (request, node) {
            (Request::Failed(message), _) => Some((machine::REASON_META_DATA_FAILED, message)),
            (Request::HostNotWritten(message), _) => Some((machine::REASON_CREATE_ERROR, message)),
            (Request::HostNotUpdated(message), _) => Some((machine::REASON_UPDATE_ERROR, message)),
            // parity: this generation has no condition for the Node; the Go manager reports it here.
            (Request::Made, Node::Waiting(message) | Node::Failed(message)) => {
                Some((machine::REASON_CREATE_ERROR, message))
            }
            (Request::Made, Node::NotExpected | Node::Known) => None,
        };
        let condition_type = machine::ASSOCIATE_META_DATA;
        self.standard(&match failure {
            Some((reason, message)) => ConditionBuilder::mark_false(condition_type, reason, Severity::Warning, message),
            None => ConditionBuilder::mark_true(condition_type, machine::REASON_META_DATA_ASSOCIATED),
        });
    }

    fn data(&mut self, data: &Data) {
        let types = [machine::DATA_READY, legacy::DATA_READY];
        match data {
            Data::Waiting(message) => self.both_false(
                (machine::DATA_READY, machine::REASON_WAITING_FOR_DATA),
                (legacy::DATA_READY, legacy::REASON_WAITING_FOR_DATA),
                Severity::Info,
                message,
            ),
            Data::Rendered => self.both_true(types, machine::REASON_SECRETS_READY),
            // differs (`data-ready-without-template`): the Go manager leaves it unknown in two of its modes.
            Data::External => self.both_true(types, machine::REASON_SECRETS_EXTERNAL),
        }
    }

    fn node(&mut self, request: &Request, node: &Node) {
        let (reason, severity, message) = match (request, node) {
            (Request::Failed(message), _) => (legacy::REASON_META_DATA_FAILED, Severity::Warning, message),
            (_, Node::Failed(message)) => (legacy::REASON_PROVIDER_ID_FAILED, Severity::Warning, message),
            (_, Node::Waiting(message)) => (legacy::REASON_PROVIDER_ID_FAILED, Severity::Info, message),
            // differs (`node-ready`): the Go manager never sets this, so a past failure stays in the status.
            (_, Node::Known) => {
                return self.legacy(&ConditionBuilder::mark_true(legacy::NODE_READY, shared::REASON_READY));
            }
            (_, Node::NotExpected) => return,
        };
        let failed = ConditionBuilder::mark_false(legacy::NODE_READY, reason, severity, message);
        self.legacy(&failed);
    }

    // differs (`label-sync-reported`): the Go manager reports nothing.
    fn labels(&mut self, labels: &Labels) {
        let not_yet = |reason, severity, message: &str| {
            ConditionBuilder::mark_false(machine::LABELS_SYNCED, reason, severity, message)
        };
        self.standard(&match labels {
            Labels::NotAsked | Labels::Unchanged | Labels::Later(_) => return,
            Labels::Copied => ConditionBuilder::mark_true(machine::LABELS_SYNCED, machine::REASON_LABELS_SYNCED),
            Labels::Waiting(message) => not_yet(machine::REASON_WAITING_FOR_NODE, Severity::Info, message),
            Labels::Busy => not_yet(machine::REASON_WAITING_FOR_NODE, Severity::Info, BUSY_MESSAGE),
            Labels::Failed(message) => not_yet(machine::REASON_LABELS_FAILED, Severity::Warning, message),
        });
    }

    fn deletion(&mut self, deletion: &Deletion) {
        let (reason, legacy_reason, severity, message) = match deletion {
            Deletion::UnderWay(message) => (
                shared::REASON_DELETING,
                legacy::REASON_DELETING,
                Severity::Info,
                message,
            ),
            Deletion::DataNotReleased(message) => (
                machine::REASON_META_DATA_RELEASE_FAILED,
                legacy::REASON_META_DATA_RELEASE_FAILED,
                Severity::Warning,
                message,
            ),
            Deletion::ReuseUndecided(message) => (
                machine::REASON_REUSE_UNDECIDED,
                machine::REASON_REUSE_UNDECIDED,
                Severity::Warning,
                message,
            ),
            Deletion::HostNotReleased(message) | Deletion::HostOwned(message) => (
                machine::REASON_DELETION_FAILED,
                legacy::REASON_DELETION_FAILED,
                Severity::Warning,
                message,
            ),
        };
        let standard = (machine::ASSOCIATE_META_DATA, reason);
        self.both_false(standard, (legacy::NODE_READY, legacy_reason), severity, message);
    }
}

#[cfg(test)]
mod tests;
