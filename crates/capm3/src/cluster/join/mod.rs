//! Whether workers can join the control plane of another provider.
//!
//! Such a control plane may lack what a machine reads when it joins. The machine is then provisioned, and never becomes a Node.
//! So the workload cluster is looked at once its control plane is initialized and a machine is to join it, usually before the machine has a
//! host. The result is a condition that holds nothing back: only the bootstrap provider knows what its machines need.
//!
//! `kubeadm init` creates all of it, so a control plane of kubeadm is never looked at.

mod due;
mod report;
mod watches;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::conditions::cluster::JOIN_PREFLIGHT;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::meta::{Condition, Time};
use metal3_capi::workload::join::JoinReport;

use super::{is_primary, is_secondary};
use crate::endpoint::conditions::with_message;

pub(crate) use due::{Cause, Due, Looked, due};
pub(crate) use report::is_final;

/// The kind of the control planes that `kubeadm init` starts.
const KUBEADM_CONTROL_PLANE: &str = "KubeadmControlPlane";
/// The kind of the configurations for `kubeadm join`.
const KUBEADM_CONFIG: &str = "KubeadmConfig";
/// Kinds of other configurations that a message names.
const MOST_KINDS: usize = 3;

/// What is known of the workload cluster.
#[derive(Debug, Default)]
pub struct JoinFacts {
    /// The state of the condition.
    pub state: JoinState,
    /// Delay until the next look.
    pub recheck: Option<Duration>,
}

/// What the condition says.
#[derive(Debug, Default)]
pub enum JoinState {
    /// Nothing: the cluster is not looked at.
    #[default]
    NotAsked,
    /// The same as before.
    Unchanged,
    /// What the cluster answered.
    Known(Arc<Answer>),
}

/// An answer, and what it is about.
#[derive(Debug)]
pub struct Answer {
    /// The answer of the workload cluster.
    pub report: JoinReport,
    /// The endpoint of the Cluster.
    pub endpoint: Option<(String, u16)>,
    /// The bootstrap providers of the machines.
    pub bootstraps: Bootstraps,
}

/// The bootstrap providers of the machines that join.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bootstraps {
    /// Whether kubeadm joins some.
    pub has_kubeadm: bool,
    /// Kinds of configurations of other providers.
    pub others: BTreeSet<String>,
    /// Whether some have data without a configuration.
    pub has_plain_data: bool,
}

impl JoinFacts {
    /// Nothing new is known.
    pub(crate) const fn unchanged(recheck: Option<Duration>) -> Self {
        Self {
            state: JoinState::Unchanged,
            recheck,
        }
    }

    /// The answer of the last look.
    pub(crate) fn last(looked: Option<&Looked>, recheck: Option<Duration>) -> Self {
        let answer = looked.map(|looked| Arc::clone(&looked.answer));
        Self {
            state: answer.map_or(JoinState::Unchanged, JoinState::Known),
            recheck,
        }
    }
}

impl Bootstraps {
    pub(crate) fn add(&mut self, machine: &Machine) {
        match &machine.spec.bootstrap.config_ref {
            Some(config) if config.kind == KUBEADM_CONFIG => self.has_kubeadm = true,
            Some(config) if self.others.len() < MOST_KINDS => drop(self.others.insert(config.kind.clone())),
            Some(_) => {}
            None => self.has_plain_data = true,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl JoinState {
    /// The condition, if it is written.
    pub(crate) fn condition(&self, generation: Option<i64>, now: Time) -> Option<Condition> {
        let Self::Known(answer) = self else { return None };
        let (builder, message) = report::condition(answer);
        Some(with_message(builder.standard(generation, now), &message))
    }

    /// Whether an earlier condition does not apply any more.
    pub(crate) const fn is_obsolete(&self) -> bool {
        matches!(self, Self::NotAsked)
    }
}

// differs (`join-preflight`): the Go manager looks at no workload cluster before its machines join.
/// Whether another provider runs the control plane of the Cluster that the object belongs to.
pub(crate) fn has_foreign_control_plane(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let is_secondary = is_secondary(object, cluster);
    match &cluster.spec.control_plane_ref {
        Some(plane) => {
            let is_kubeadm = plane.kind == KUBEADM_CONTROL_PLANE && plane.api_group == CONTROL_PLANE_GROUP;
            !is_kubeadm && (is_secondary || is_primary(object, cluster))
        }
        // The machines of a Primary may be the control plane.
        None => is_secondary,
    }
}

/// Whether the API server of the Cluster was reported as usable.
pub(crate) fn has_control_plane(cluster: &Cluster) -> bool {
    let initialization = cluster.status.initialization.as_ref();
    initialization.is_some_and(|one| one.control_plane_initialized == Some(true))
}

/// The condition in the status of an object.
pub(crate) fn join_condition(object: &Metal3Cluster) -> Option<&Condition> {
    let mut conditions = object.status.conditions.iter();
    conditions.find(|condition| condition.type_ == JOIN_PREFLIGHT)
}
