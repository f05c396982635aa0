//! The environment of the claims: the stack, the machines, and the parts that run.

use std::path::Path;

use clap::ValueEnum;
use parking_lot::{Mutex, MutexGuard};

use super::describe::{self, Figures};
use super::fleet::Fleet;
use super::simulator::MachineSimulator;
use crate::claims::stack::Stack;
use crate::products::machines::NAMESPACE;
use crate::products::machines::host_simulator::concurrently;

/// Claims on which no claim of another part depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Rolls workers to another template.
    Rolls,
    /// Rolls workers that get their hosts and disks back.
    Reuse,
    /// Copies labels of hosts to their Nodes.
    Labels,
    /// Repairs and replaces workers whose Nodes stop answering.
    Remediation,
    /// Moves the cluster to another management cluster and back.
    Move,
    /// Upgrades the release, deletes it and installs it again.
    Upgrade,
    /// Kills leaders at five points of a life cycle.
    Kills,
    /// A Cluster of the ClusterClass with the real topology controller.
    Topology,
    /// A Cluster with another provider's infrastructure, which also moves there and back.
    Foreign,
}

#[derive(Clone, Copy)]
pub(super) struct TestEnv<'a> {
    pub(super) stack: &'a Stack,
    /// Another management cluster, for the claims that require it.
    pub(super) second: &'a Stack,
    pub(super) release: &'a Path,
    /// The binary of that release.
    pub(super) program: &'a Path,
    pub(super) fleet: &'a Fleet,
    pub(super) simulator: &'a Mutex<MachineSimulator<'a>>,
    pub(super) parts: &'a [Part],
    pub(super) seed: u64,
    /// The program of the cluster autoscaler, if there is one.
    pub(super) autoscaler: Option<&'a Path>,
}

impl<'a> TestEnv<'a> {
    /// The simulated operating systems.
    pub(super) fn simulator(&self) -> MutexGuard<'a, MachineSimulator<'a>> {
        self.simulator.lock()
    }

    /// Does the work while machines are simulated.
    pub(super) fn while_simulated<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        concurrently("the simulated machines", || self.simulator().step(), work)
    }

    /// Also compares the output of clusterctl with the objects.
    pub(super) fn while_described<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Figures)> {
        describe::meanwhile(self.stack, NAMESPACE, || self.while_simulated(work))
    }
}
