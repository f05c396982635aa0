//! What is said of a machine, in both generations, as a function of how far it is.
//!
//! A stage states the aspects that it knows something of and leaves the others as they were: a pause says nothing about
//! data. The summary is made of what then stands there, in each generation by its own rules: the standard one counts
//! what is missing as unknown, the older one looks at what is there and takes the worst.
//!
//! Every wait and every failure is one stage, and one stage gives one set of conditions: nothing is true in one moment
//! of a pass and false in the next. Times move with the status alone. How a stage is found out is not decided here.

mod summary;

use metal3_api::infrastructure::conditions::{legacy, machine, shared};
use metal3_api::meta::{Condition, ConditionStatus, LegacyCondition, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;

/// How far a machine is. Texts are for people and say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Something has to be there before a host is looked for.
    Before(Prerequisite),
    /// The machine is paused.
    Paused {
        /// By what.
        message: String,
    },
    /// The machine's host could not be paused or resumed together with it.
    PauseNotPassedOn {
        /// Whether it was to be paused.
        pausing: bool,
        /// What went wrong.
        message: String,
    },
    /// More than one Metal3Cluster could be meant.
    Ambiguous {
        /// Which, and how to say which one is.
        message: String,
    },
    /// Something that counts cannot be read, so nothing is done.
    Unclear {
        /// What, and why.
        message: String,
    },
    /// No host could be taken.
    WithoutHost {
        /// Why, for each kind of host.
        message: String,
    },
    /// The machine has a host.
    Hosted {
        /// Whether the host was kept for the machine's owner.
        is_kept: bool,
        /// Its request for data, and what was written to the host.
        request: Request,
        /// Its data.
        data: Data,
        /// Its Node.
        node: Node,
    },
    /// The machine is being deleted.
    Deleting(Deletion),
}

/// What has to be there before a host is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prerequisite {
    /// The Machine that owns the object.
    Owner,
    /// The Cluster of the Machine.
    Cluster,
    /// The Cluster's infrastructure.
    Infrastructure,
    /// The Metal3Cluster.
    Metal3Cluster,
    /// The bootstrap data.
    Bootstrap,
}

/// A machine's request for data, and the host it is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// It is made, or none is needed.
    Made,
    /// It could not be made.
    Failed(String),
    /// The host could not be given what it is to run.
    HostNotWritten(String),
    /// The provisioned host could not be kept up to date.
    HostNotUpdated(String),
}

/// A machine's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// It is being rendered.
    Waiting(String),
    /// It is rendered.
    Rendered,
    /// The user supplies it, or there is none.
    External,
}

/// A machine's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// The host is not provisioned.
    NotExpected,
    /// It has not appeared.
    Waiting(String),
    /// It cannot be told, or is another machine's.
    Failed(String),
    /// It is known.
    Known,
}

/// How far a deletion is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// It goes on.
    UnderWay(String),
    /// The data could not be given back.
    DataNotReleased(String),
    /// The host could not be given back.
    HostNotReleased(String),
}

/// The conditions of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The standard ones.
    pub standard: Vec<Condition>,
    /// Those of the older generation.
    pub legacy: Vec<LegacyCondition>,
}

const READY: Reason = Reason::new(shared::REASON_READY);

impl Conditions {
    /// What is said at a stage, after this was said before.
    #[must_use]
    pub fn at(mut self, stage: &Stage, generation: Option<i64>, now: Time) -> Self {
        let is_kept = self.was_kept() || matches!(stage, Stage::Hosted { is_kept: true, .. });
        let said = Sayings::of(stage, is_kept, generation, now);
        for condition in said.standard {
            set_condition(&mut self.standard, condition);
        }
        for condition in said.legacy {
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
            // What went wrong with the request is over, and nothing is known of the Node yet.
            self.legacy.retain(|condition| condition.type_ != legacy::NODE_READY);
        }
        let ready = summary::standard(&self.standard).standard(generation, now);
        set_condition(&mut self.standard, ready);
        if let Some(ready) = summary::older(&self.legacy, now) {
            set_condition(&mut self.legacy, ready);
        }
        self
    }

    /// Whether the machine is said to have a host that was kept for its owner. Only the moment of taking it tells.
    fn was_kept(&self) -> bool {
        let host = self
            .standard
            .iter()
            .find(|condition| condition.type_ == machine::ASSOCIATE_HOST);
        host.is_some_and(|host| host.status == ConditionStatus::True && host.reason == machine::REASON_HOST_REUSED)
    }
}

/// What a stage says, in each generation.
struct Sayings {
    generation: Option<i64>,
    now: Time,
    standard: Vec<Condition>,
    legacy: Vec<LegacyCondition>,
}

impl Sayings {
    fn of(stage: &Stage, is_kept: bool, generation: Option<i64>, now: Time) -> Self {
        let mut said = Self {
            generation,
            now,
            standard: Vec::new(),
            legacy: Vec::new(),
        };
        if !matches!(stage, Stage::Paused { .. } | Stage::PauseNotPassedOn { .. }) {
            let reason = Reason::new(shared::REASON_NOT_PAUSED);
            said.standard(&ConditionBuilder::mark_false(
                machine::PAUSED,
                reason,
                Severity::Info,
                "",
            ));
        }
        match stage {
            Stage::Before(prerequisite) => said.before(*prerequisite),
            Stage::Paused { message } => said.paused(message),
            Stage::PauseNotPassedOn { pausing, message } => said.pause_not_passed_on(*pausing, message),
            Stage::Ambiguous { message } => {
                let (reason, older) = (machine::REASON_AMBIGUOUS_CLUSTER, legacy::REASON_WAITING_FOR_CLUSTER);
                said.without_host(reason, older, Severity::Info, message);
            }
            Stage::Unclear { message } => {
                let reason = Reason::new(shared::REASON_READY_UNKNOWN);
                said.standard(&ConditionBuilder::mark_unknown(
                    machine::ASSOCIATE_HOST,
                    reason,
                    message,
                ));
                said.legacy(&ConditionBuilder::mark_unknown(legacy::ASSOCIATE_HOST, reason, message));
            }
            Stage::WithoutHost { message } => {
                let (reason, older) = (machine::REASON_HOST_FAILED, legacy::REASON_HOST_FAILED);
                said.without_host(reason, older, Severity::Error, message);
            }
            Stage::Hosted {
                request, data, node, ..
            } => {
                said.host(is_kept);
                said.request(request, node);
                said.data(data);
                said.node(request, node);
            }
            Stage::Deleting(deletion) => said.deletion(deletion),
        }
        said
    }

    fn standard(&mut self, statement: &ConditionBuilder) {
        self.standard.push(statement.standard(self.generation, self.now));
    }

    fn legacy(&mut self, statement: &ConditionBuilder) {
        self.legacy.push(statement.legacy(self.now));
    }

    fn host(&mut self, is_kept: bool) {
        let reason = if is_kept {
            Reason::new(machine::REASON_HOST_REUSED)
        } else {
            Reason::new(machine::REASON_HOST_ASSOCIATED)
        };
        self.standard(&ConditionBuilder::mark_true(machine::ASSOCIATE_HOST, reason));
        self.legacy(&ConditionBuilder::mark_true(legacy::ASSOCIATE_HOST, reason));
    }

    fn without_host(&mut self, reason: &'static str, older: &'static str, severity: Severity, message: &str) {
        let (reason, older) = (Reason::new(reason), Reason::new(older));
        self.standard(&ConditionBuilder::mark_false(
            machine::ASSOCIATE_HOST,
            reason,
            severity,
            message,
        ));
        self.legacy(&ConditionBuilder::mark_false(
            legacy::ASSOCIATE_HOST,
            older,
            severity,
            message,
        ));
    }

    fn before(&mut self, prerequisite: Prerequisite) {
        let (reason, older, message) = match prerequisite {
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
            Prerequisite::Metal3Cluster => (
                machine::REASON_WAITING_FOR_CLUSTER,
                legacy::REASON_WAITING_FOR_CLUSTER,
                "waiting for the Metal3Cluster; create it",
            ),
            Prerequisite::Bootstrap => (
                machine::REASON_WAITING_FOR_BOOTSTRAP,
                legacy::REASON_WAITING_FOR_BOOTSTRAP,
                "waiting for the bootstrap data; see the conditions of the Machine",
            ),
        };
        self.without_host(reason, older, Severity::Info, message);
    }

    fn paused(&mut self, message: &str) {
        let paused = ConditionBuilder::mark_true(machine::PAUSED, Reason::new(shared::REASON_PAUSED));
        let paused = paused.standard(self.generation, self.now);
        self.standard.push(Condition {
            message: message.to_owned(),
            ..paused
        });
        self.without_host(shared::REASON_PAUSED, legacy::REASON_PAUSED, Severity::Info, message);
    }

    fn pause_not_passed_on(&mut self, pausing: bool, message: &str) {
        let (reason, older) = if pausing {
            (machine::REASON_PAUSE_SET_FAILED, legacy::REASON_PAUSE_SET_FAILED)
        } else {
            (machine::REASON_PAUSE_REMOVE_FAILED, legacy::REASON_PAUSE_REMOVE_FAILED)
        };
        self.standard(&ConditionBuilder::mark_false(
            machine::PAUSED,
            Reason::new(reason),
            Severity::Info,
            message,
        ));
        self.without_host(reason, older, Severity::Info, message);
    }

    fn request(&mut self, request: &Request, node: &Node) {
        let failure = match (request, node) {
            (Request::Failed(message), _) => Some((machine::REASON_META_DATA_FAILED, message)),
            (Request::HostNotWritten(message), _) => Some((machine::REASON_CREATE_ERROR, message)),
            (Request::HostNotUpdated(message), _) => Some((machine::REASON_UPDATE_ERROR, message)),
            // parity: this generation has no aspect for the Node; the Go manager tells of it here.
            (Request::Made, Node::Waiting(message) | Node::Failed(message)) => {
                Some((machine::REASON_CREATE_ERROR, message))
            }
            (Request::Made, Node::NotExpected | Node::Known) => None,
        };
        let aspect = machine::ASSOCIATE_META_DATA;
        self.standard(&match failure {
            Some((reason, message)) => {
                ConditionBuilder::mark_false(aspect, Reason::new(reason), Severity::Warning, message)
            }
            None => ConditionBuilder::mark_true(aspect, Reason::new(machine::REASON_META_DATA_ASSOCIATED)),
        });
    }

    fn data(&mut self, data: &Data) {
        let reason = match data {
            Data::Waiting(message) => {
                let reason = Reason::new(machine::REASON_WAITING_FOR_DATA);
                self.standard(&ConditionBuilder::mark_false(
                    machine::DATA_READY,
                    reason,
                    Severity::Info,
                    message,
                ));
                let older = Reason::new(legacy::REASON_WAITING_FOR_DATA);
                self.legacy(&ConditionBuilder::mark_false(
                    legacy::DATA_READY,
                    older,
                    Severity::Info,
                    message,
                ));
                return;
            }
            Data::Rendered => Reason::new(machine::REASON_SECRETS_READY),
            // differs (`data-ready-without-template`): the Go manager leaves it unknown in two of its modes.
            Data::External => Reason::new(machine::REASON_SECRETS_EXTERNAL),
        };
        self.standard(&ConditionBuilder::mark_true(machine::DATA_READY, reason));
        self.legacy(&ConditionBuilder::mark_true(legacy::DATA_READY, reason));
    }

    fn node(&mut self, request: &Request, node: &Node) {
        let (reason, severity, message) = match (request, node) {
            (Request::Failed(message), _) => (legacy::REASON_META_DATA_FAILED, Severity::Warning, message),
            (_, Node::Failed(message)) => (legacy::REASON_PROVIDER_ID_FAILED, Severity::Warning, message),
            (_, Node::Waiting(message)) => (legacy::REASON_PROVIDER_ID_FAILED, Severity::Info, message),
            // differs (`node-ready`): the Go manager never says so, and a failure that passed stands for ever.
            (_, Node::Known) => return self.legacy(&ConditionBuilder::mark_true(legacy::NODE_READY, READY)),
            (_, Node::NotExpected) => return,
        };
        self.legacy(&ConditionBuilder::mark_false(
            legacy::NODE_READY,
            Reason::new(reason),
            severity,
            message,
        ));
    }

    fn deletion(&mut self, deletion: &Deletion) {
        let (reason, older, severity, message) = match deletion {
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
            Deletion::HostNotReleased(message) => (
                machine::REASON_DELETION_FAILED,
                legacy::REASON_DELETION_FAILED,
                Severity::Warning,
                message,
            ),
        };
        let (reason, older) = (Reason::new(reason), Reason::new(older));
        self.standard(&ConditionBuilder::mark_false(
            machine::ASSOCIATE_META_DATA,
            reason,
            severity,
            message,
        ));
        self.legacy(&ConditionBuilder::mark_false(
            legacy::NODE_READY,
            older,
            severity,
            message,
        ));
    }
}

#[cfg(test)]
mod tests;
