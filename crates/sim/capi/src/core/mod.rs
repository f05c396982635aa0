//! The core of Cluster API: clusters, machines, and the controllers that keep their number.

mod clone;
mod cluster;
mod deployment;
mod machine;
mod machine_set;
mod pause;

pub(crate) use clone::{MachineSource, machines};
pub(crate) use pause::paused;

#[cfg(test)]
pub(crate) use deployment::{Rollout, SetView};

use crate::view::Snapshot;
use crate::write::Write;

/// Writes of the core that are due.
pub(crate) fn writes(snapshot: &Snapshot) -> Vec<Write> {
    let mut due = cluster::writes(snapshot);
    due.extend(deployment::writes(snapshot));
    due.extend(machine_set::writes(snapshot));
    due.extend(machine::writes(snapshot));
    due
}
