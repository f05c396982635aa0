//! Compares the simulator's table of transitions with that of a real Ironic.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;
use metal3_ironic::model::state::ProvisionState;
use tokio::process::Command;

use metal3_sim_ironic::life::{TRANSITIONS, target_of};

/// Prints Ironic's own table and the target of each state.
const PRINT: &str = "
from ironic.common import state_machine
machine = state_machine.machine
for start, event, end in machine:
    print(start, event, end, sep='|')
for state in machine.states:
    print(state, machine._states[state]['target'], sep='|')
";

/// Compares the tables with the Python of a real Ironic. Returns the number of transitions.
///
/// # Errors
/// Lists the rows that only one of them has.
pub async fn compare(python: &Path) -> anyhow::Result<usize> {
    let printed = Command::new(python)
        .args(["-W", "ignore", "-c", PRINT])
        .output()
        .await?;
    ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let real: BTreeSet<String> = String::from_utf8(printed.stdout)?.lines().map(str::to_owned).collect();
    let simulated: BTreeSet<String> = TRANSITIONS
        .iter()
        .map(|(from, by, to)| format!("{from}|{}|{to}", by.as_str()))
        .chain(ProvisionState::KNOWN.iter().map(|state| {
            let target = target_of(state);
            let target = target.as_ref().map_or("None", ProvisionState::as_str);
            format!("{state}|{target}")
        }))
        .collect();
    let only: Vec<&String> = real.symmetric_difference(&simulated).collect();
    ensure!(only.is_empty(), "only one of the two tables has: {only:?}");
    Ok(TRANSITIONS.len())
}
