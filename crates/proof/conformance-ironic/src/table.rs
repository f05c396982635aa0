//! The table of transitions, held against the one inside a real Ironic.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;
use metal3_ironic::model::state::ProvisionState;
use tokio::process::Command;

use metal3_sim_ironic::life::{TRANSITIONS, target_of};

/// Prints Ironic's own table, and where a node in each state is heading.
const PRINT: &str = "
from ironic.common import state_machine
machine = state_machine.machine
for start, event, end in machine:
    print(start, event, end, sep='|')
for state in machine.states:
    print(state, machine._states[state]['target'], sep='|')
";

/// Compares the two, given the Python that Ironic runs in. Says how many rows there are.
///
/// # Errors
/// Names the rows that only one of them has.
pub async fn compare(python: &Path) -> anyhow::Result<usize> {
    let printed = Command::new(python)
        .args(["-W", "ignore", "-c", PRINT])
        .output()
        .await?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let theirs: BTreeSet<String> = String::from_utf8(printed.stdout)?.lines().map(str::to_owned).collect();
    let ours: BTreeSet<String> = TRANSITIONS
        .iter()
        .map(|(from, by, to)| format!("{from}|{}|{to}", by.as_str()))
        .chain(ProvisionState::KNOWN.iter().map(|state| {
            let target = target_of(state);
            let target = target.as_ref().map_or("None", ProvisionState::as_str);
            format!("{state}|{target}")
        }))
        .collect();
    let only: Vec<&String> = theirs.symmetric_difference(&ours).collect();
    ensure!(only.is_empty(), "only one of the two tables has: {only:?}");
    Ok(TRANSITIONS.len())
}
