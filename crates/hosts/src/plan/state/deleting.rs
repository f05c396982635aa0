//! `deleting`: Ironic deletes the node, then the finalizers are removed.

use crate::plan::deletion::{ensure_node_deleted, remove_finalizers};
use crate::plan::planner::{PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    ensure_node_deleted(planner)?;
    remove_finalizers(planner)
}
