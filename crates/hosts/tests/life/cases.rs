//! The cases of a sweep: a fault in each request to Ironic, and in each write.

use metal3_sim_faults::{Fault, Plan, Rule};

use crate::env::{CONTROLLER_USER, TestEnv};
use crate::interceptor::IronicFault;

/// What happens in one run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Case {
    NoFault,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, IronicFault),
    /// The n-th write of the controller, counted from 1.
    Write(u64, Fault),
}

impl Case {
    /// Injects the fault. `resource`: counts writes of this resource only.
    pub(crate) fn inject(self, env: &TestEnv, resource: Option<&str>) {
        match self {
            Self::NoFault => {}
            Self::Ironic(at, fault) => env.interceptor.log().fault = Some((at, fault)),
            Self::Write(at, fault) => {
                let rule = Rule::at(at, fault).verb("patch");
                let rule = match resource {
                    Some(resource) => rule.resource(resource),
                    None => rule,
                };
                env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
            }
        }
    }

    /// Each `sample`-th case of a run with so many requests and writes; all when `METAL3_HOSTS_EVERY_CASE` is set.
    pub(crate) fn all((requests, writes): (usize, u64), sample: usize) -> impl Iterator<Item = Self> {
        let asked = (1..=requests).flat_map(|at| IronicFault::ALL.map(|fault| Self::Ironic(at, fault)));
        let faults = [Fault::CrashBefore, Fault::CrashAfter, Fault::ReplyLost, Fault::Conflict];
        let written = (1..=writes).flat_map(move |at| faults.map(|fault| Self::Write(at, fault)));
        let every = std::env::var_os("METAL3_HOSTS_EVERY_CASE").map_or(sample, |_| 1);
        asked.chain(written).step_by(every)
    }
}
