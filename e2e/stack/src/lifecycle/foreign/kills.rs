//! Kills one replica of each manager at each phase of a move, in both management clusters.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::Value;

use super::super::audit::{MANAGERS, Manager};
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;

/// The progress of clusterctl according to the objects on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The Cluster is paused, and the target has no objects.
    Paused,
    /// The target has some objects, the source has all.
    Arrives,
    /// The target has all objects, the source is losing them.
    Leaves,
    /// The source has no objects.
    Left,
    /// The Cluster is resumed in the target.
    GoesOn,
}

/// The state of one side: whether the Cluster is paused, and the number of Metal3Machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Side {
    cluster: Option<bool>,
    machines: usize,
}

impl Side {
    fn of(objects: &[Value]) -> Self {
        let is = |object: &&Value, kind: &str| object["kind"] == kind;
        let cluster = objects.iter().find(|object| is(object, "Cluster"));
        Self {
            cluster: cluster.map(|cluster| cluster["spec"]["paused"] == true),
            machines: objects.iter().filter(|object| is(object, "Metal3Machine")).count(),
        }
    }
}

/// `None` before the move.
fn phase(from: Side, to: Side) -> Option<Phase> {
    match (from.cluster, to.cluster) {
        (_, Some(false)) => Some(Phase::GoesOn),
        (None, _) => Some(Phase::Left),
        (Some(_), Some(true)) if to.machines > from.machines => Some(Phase::Leaves),
        (Some(_), Some(true)) => Some(Phase::Arrives),
        (Some(true), None) => Some(Phase::Paused),
        (Some(false), None) => None,
    }
}

pub(super) struct ReplicaKiller<'a> {
    from: &'a Stack,
    to: &'a Stack,
    /// The stack whose processes are visible here.
    near: &'a Stack,
    /// The number of kills at each phase.
    at: Vec<(Phase, usize)>,
    /// Stack and process id of each kill.
    killed_processes: BTreeSet<String>,
}

impl<'a> ReplicaKiller<'a> {
    pub(super) fn begin(from: &'a Stack, to: &'a Stack, near: &'a Stack) -> anyhow::Result<Self> {
        let (at, killed_processes) = (Vec::new(), BTreeSet::new());
        let killer = Self {
            from,
            to,
            near,
            at,
            killed_processes,
        };
        ensure!(killer.phase()?.is_none(), "the move is already running");
        Ok(killer)
    }

    fn phase(&self) -> anyhow::Result<Option<Phase>> {
        let side = |stack| Ok::<_, anyhow::Error>(Side::of(&list(stack, NAMESPACE, "clusters,metal3machines")?));
        // The source is read first: objects that arrive between both reads must not look like objects that left.
        let from = side(self.from)?;
        Ok(phase(from, side(self.to)?))
    }

    /// A phase that ends between two reads is skipped.
    pub(super) fn tick(&mut self) -> anyhow::Result<()> {
        let Some(phase) = self.phase()? else {
            return Ok(());
        };
        if self.at.last().is_some_and(|(last, _)| *last >= phase) {
            return Ok(());
        }
        let mut killed = 0;
        for stack in [self.from, self.to] {
            for manager in &MANAGERS {
                killed += usize::from(self.kill(stack, manager)?);
            }
        }
        self.at.push((phase, killed));
        Ok(())
    }

    /// Kills the leader, or the standby when the leader is dead. Returns whether a process was killed.
    fn kill(&mut self, stack: &Stack, manager: &Manager) -> anyhow::Result<bool> {
        let lease = [
            "get",
            "lease",
            manager.lease,
            "--output=jsonpath={.spec.holderIdentity}",
        ];
        let holder = stack.kubectl(&[&["--namespace", manager.namespace], &lease[..]].concat())?;
        let mut pods = list(stack, manager.namespace, "pods")?;
        pods.sort_by_key(|pod| !holder.starts_with(&name(pod)));
        for pod in pods {
            let container = &pod["status"]["containerStatuses"][0];
            let id = container["containerID"].as_str().unwrap_or_default();
            let process = id.strip_prefix("process://");
            let Some(process) = process.filter(|_| container["state"]["running"].is_object()) else {
                continue;
            };
            // The container status is updated late.
            if self.killed_processes.insert(format!("{} {process}", stack.places.name)) {
                self.kill_process(stack, manager.namespace, &name(&pod), process)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn kill_process(&self, stack: &Stack, namespace: &str, pod: &str, process: &str) -> anyhow::Result<()> {
        let done = if stack.places.name == self.near.places.name {
            stack.run("kill", &["-9", process], None)
        } else {
            // Deleted without a grace period.
            let args = [
                "--namespace",
                namespace,
                "delete",
                "pod",
                pod,
                "--grace-period=0",
                "--force",
            ];
            stack.kubectl(&args)
        };
        done.map(drop)
    }

    /// The kills of each phase.
    pub(super) fn finish(self) -> anyhow::Result<String> {
        let texts: Vec<String> = self
            .at
            .iter()
            .map(|(phase, killed)| format!("{killed} at {phase:?}"))
            .collect();
        let summary = texts.join(", ");
        ensure!(
            self.at.iter().all(|(_, killed)| *killed > 0),
            "no kill at a phase: {summary}"
        );
        ensure!(self.at.len() >= 3, "too few phases were seen: {summary}");
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_follows_from_both_sides() {
        let side = |cluster, machines| Side { cluster, machines };
        let table = [
            (side(Some(false), 3), side(None, 0), None),
            (side(Some(true), 3), side(None, 0), Some(Phase::Paused)),
            (side(Some(true), 3), side(Some(true), 0), Some(Phase::Arrives)),
            (side(Some(true), 3), side(Some(true), 3), Some(Phase::Arrives)),
            (side(Some(true), 1), side(Some(true), 3), Some(Phase::Leaves)),
            (side(None, 0), side(Some(true), 3), Some(Phase::Left)),
            (side(None, 0), side(Some(false), 3), Some(Phase::GoesOn)),
        ];
        for (from, to, expected) in table {
            assert_eq!(phase(from, to), expected, "{from:?} {to:?}");
        }
    }
}
