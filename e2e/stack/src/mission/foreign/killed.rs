//! Of each manager one replica is killed at each phase of a move, in both management clusters.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::Value;

use super::super::audit::{MANAGERS, Manager};
use crate::claims::world::World;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;

/// How far clusterctl is, as the objects of both sides show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The Cluster rests, and nothing of it is there.
    Paused,
    /// Some of it is there, all of it is here.
    Arrives,
    /// All of it is there, and here less and less.
    Leaves,
    /// Nothing of it is here.
    Left,
    /// It goes on there.
    GoesOn,
}

/// What one side has: of Clusters whether it rests, and how many machines of infrastructure.
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

/// None: the move has not begun.
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

pub(super) struct Killed<'a> {
    from: &'a World,
    to: &'a World,
    /// The one whose processes are seen from here.
    near: &'a World,
    /// How many it struck.
    at: Vec<(Phase, usize)>,
    /// Stack and process of each.
    dead: BTreeSet<String>,
}

impl<'a> Killed<'a> {
    pub(super) fn begin(from: &'a World, to: &'a World, near: &'a World) -> anyhow::Result<Self> {
        let (at, dead) = (Vec::new(), BTreeSet::new());
        let killed = Self {
            from,
            to,
            near,
            at,
            dead,
        };
        ensure!(killed.phase()?.is_none(), "it moves already");
        Ok(killed)
    }

    fn phase(&self) -> anyhow::Result<Option<Phase>> {
        let side = |world| Ok::<_, anyhow::Error>(Side::of(&list(world, NAMESPACE, "clusters,metal3machines")?));
        // What leaves is looked at first: between both looks more may arrive, and nothing seems to have left too early.
        let from = side(self.from)?;
        Ok(phase(from, side(self.to)?))
    }

    /// A phase that is over before anybody looks goes without.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        let Some(phase) = self.phase()? else {
            return Ok(());
        };
        if self.at.last().is_some_and(|(last, _)| *last >= phase) {
            return Ok(());
        }
        let mut killed = 0;
        for world in [self.from, self.to] {
            for manager in &MANAGERS {
                killed += usize::from(self.kill(world, manager)?);
            }
        }
        self.at.push((phase, killed));
        Ok(())
    }

    /// Whoever leads, or stands by where that one is dead already. Whether there was anybody.
    fn kill(&mut self, world: &World, manager: &Manager) -> anyhow::Result<bool> {
        let lease = [
            "get",
            "lease",
            manager.lease,
            "--output=jsonpath={.spec.holderIdentity}",
        ];
        let holder = world.kubectl(&[&["--namespace", manager.namespace], &lease[..]].concat())?;
        let mut pods = list(world, manager.namespace, "pods")?;
        pods.sort_by_key(|pod| !holder.starts_with(&name(pod)));
        for pod in pods {
            let container = &pod["status"]["containerStatuses"][0];
            let id = container["containerID"].as_str().unwrap_or_default();
            let process = id.strip_prefix("process://");
            let Some(process) = process.filter(|_| container["state"]["running"].is_object()) else {
                continue;
            };
            // What a Pod says of its container comes a moment late.
            if self.dead.insert(format!("{} {process}", world.places.name)) {
                self.strike(world, manager.namespace, &name(&pod), process)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn strike(&self, world: &World, namespace: &str, pod: &str, process: &str) -> anyhow::Result<()> {
        let done = if world.places.name == self.near.places.name {
            world.run("kill", &["-9", process], None)
        } else {
            // Its Pod goes without being given time to end.
            let words = [
                "--namespace",
                namespace,
                "delete",
                "pod",
                pod,
                "--grace-period=0",
                "--force",
            ];
            world.kubectl(&words)
        };
        done.map(drop)
    }

    /// Who was killed when.
    pub(super) fn ended(self) -> anyhow::Result<String> {
        let texts: Vec<String> = self
            .at
            .iter()
            .map(|(phase, killed)| format!("{killed} at {phase:?}"))
            .collect();
        let said = texts.join(", ");
        ensure!(
            self.at.iter().all(|(_, killed)| *killed > 0),
            "nobody was killed at a phase: {said}"
        );
        ensure!(self.at.len() >= 3, "too few phases were seen: {said}");
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_from_what_both_sides_have() {
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
