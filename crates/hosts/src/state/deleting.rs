//! `deleting`: Ironic deletes the node, then the finalizers are removed.

use crate::deletion::{ensure_node_deleted, remove_finalizers};
use crate::plan::{Decision, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> Result<Decision, Decision> {
    ensure_node_deleted(planner)?;
    remove_finalizers(planner)
}
