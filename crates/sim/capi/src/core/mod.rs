//! The core of Cluster API: clusters, machines, and what keeps machines in number.

mod clone;
mod cluster;
mod deployment;
mod machine;
mod machine_set;
mod pause;

pub(crate) use clone::{Mould, machines};
pub(crate) use pause::paused;

#[cfg(test)]
pub(crate) use deployment::{Roll, SetView};

use crate::view::World;
use crate::write::Write;

/// Every write of the core that is due.
pub(crate) fn writes(world: &World) -> Vec<Write> {
    let mut due = cluster::writes(world);
    due.extend(deployment::writes(world));
    due.extend(machine_set::writes(world));
    due.extend(machine::writes(world));
    due
}
