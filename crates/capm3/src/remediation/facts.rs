//! The inputs of the plan for a remediation.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::REMEDIATION_POWER_OFF_PREFIX;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::pause;
use metal3_capi::workload::{Drained, NodeState};
use metal3_runtime::plan::Observed;

/// The inputs of the plan for a remediation, observed at one time.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The remediation.
    pub remediation: Arc<Metal3Remediation>,
    /// Whether remediation, Machine, Metal3Machine, host and Cluster were read live before they were observed.
    pub is_confirmed: bool,
    /// The Machine that owns it; absent when there is no owner reference or no Machine of its UID.
    pub machine: Observed<Arc<Machine>>,
    /// The Cluster of the Machine.
    pub cluster: Observed<Arc<Cluster>>,
    /// The infrastructure of the Machine.
    pub metal3_machine: Observed<Arc<Metal3Machine>>,
    /// The host that the Metal3Machine names; absent when it names none.
    pub host: Observed<Arc<BareMetalHost>>,
    /// The hosts of the namespace that are kept off for this remediation.
    pub held: Vec<Arc<BareMetalHost>>,
    /// The Node of the Machine.
    pub node: Node,
    /// What is left on the Node, when it was read.
    pub drained: Option<Drained>,
    /// The last change of the Node by this process in this attempt, and how long ago it was.
    pub changed: Option<(NodeStep, Duration)>,
    /// How long the attempt has lasted while nothing was paused. It is measured from `status.lastRemediated`, and by the
    /// monotonic clock from the moment at which this process first observed the attempt.
    pub elapsed: Duration,
    /// How long this process has observed in this attempt that the host is off, and neither Cluster nor remediation is
    /// paused.
    pub off: Duration,
    /// How long this process has observed in this attempt that the host is on, and nothing is paused.
    pub on: Duration,
    /// How long this process has observed that the remediation is in deletion, the host is as it is now, on or off,
    /// nothing is paused, and no request of the Node waits for others.
    pub awaited: Duration,
    /// The time for timestamps.
    pub now: Time,
}

impl Facts {
    /// Whether this host, the Machine or its Metal3Machine is paused.
    pub(super) fn is_machine_paused(&self, host: Option<&BareMetalHost>) -> bool {
        let infrastructure = self.metal3_machine.present();
        let owner = self.machine.present();
        host.is_some_and(BareMetalHost::is_paused)
            || infrastructure.is_some_and(|one| pause::is_reconcile_skipped(&one.metadata))
            || owner.is_some_and(|one| pause::is_reconcile_skipped(&one.metadata))
    }
}

/// A change of a Node that another program may undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeStep {
    /// Adds the taint.
    Taint,
    /// Removes it.
    Untaint,
    /// Adds what the Node lacks.
    Add,
    /// Deletes the Node.
    Delete,
}

/// What is known of the Node of a Machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// This reconcile has not read it yet.
    NotRead,
    /// The Machine never had one.
    NeverRegistered,
    /// It is not read, because other requests are under way.
    Busy {
        /// Whether that has lasted long enough to be reported: a lost race of milliseconds is none of a user's business.
        is_reported: bool,
    },
    /// The result of the read.
    Read(NodeState),
}

/// The annotation by which a host is kept off for a remediation.
#[must_use]
pub fn power_off_annotation(remediation: &Metal3Remediation) -> String {
    let uid = remediation.metadata.uid.as_deref().unwrap_or_default();
    format!("{REMEDIATION_POWER_OFF_PREFIX}{uid}")
}
