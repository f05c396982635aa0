//! How long the steps of a host's life take, as its status records them.

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationMetric};

use crate::order;
use crate::values::name;

/// A step of a host's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Register,
    Inspect,
    Provision,
    Deprovision,
}

impl Step {
    pub(crate) const ALL: [Self; 4] = [Self::Register, Self::Inspect, Self::Provision, Self::Deprovision];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Inspect => "inspect",
            Self::Provision => "provision",
            Self::Deprovision => "deprovision",
        }
    }

    /// The step of a host that is in progress for this reason. Nothing records how long the others take.
    pub(crate) fn of_reason(reason: &str) -> Option<Self> {
        match reason {
            "Registering" => Some(Self::Register),
            "Inspecting" => Some(Self::Inspect),
            "Provisioning" => Some(Self::Provision),
            "Deprovisioning" => Some(Self::Deprovision),
            _ => None,
        }
    }

    const fn of(self, host: &BareMetalHost) -> &OperationMetric {
        let history = &host.status.operation_history;
        match self {
            Self::Register => &history.register,
            Self::Inspect => &history.inspect,
            Self::Provision => &history.provision,
            Self::Deprovision => &history.deprovision,
        }
    }

    /// Whether the host is in the step.
    pub(crate) fn is_running(self, host: &BareMetalHost) -> bool {
        let metric = self.of(host);
        let start = metric.start;
        start.is_some_and(|start| metric.end.is_none_or(|end| end < start))
    }

    /// When the step of the host began that is in progress.
    pub(crate) fn begun(self, host: &BareMetalHost) -> Option<Time> {
        self.of(host).start.filter(|_| self.is_running(host))
    }

    /// The seconds that the step took on each host that completed it, with its name, the shortest first.
    pub(crate) fn completed<'a>(self, hosts: impl Iterator<Item = &'a BareMetalHost>) -> Vec<(i64, &'a str)> {
        let completed = hosts.filter_map(|host| {
            let (start, end) = (self.of(host).start?, self.of(host).end?);
            (end >= start).then(|| ((end.get() - start.get()).num_seconds(), name(&host.metadata)))
        });
        let mut completed: Vec<(i64, &str)> = completed.collect();
        order::sort(&mut completed);
        completed
    }
}

/// The median of seconds in their order.
pub(crate) fn median(completed: &[(i64, &str)]) -> Option<i64> {
    completed.get(completed.len() / 2).map(|(seconds, _)| *seconds)
}
