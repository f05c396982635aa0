//! The released program contains no simulator.
//!
//! The graph of the workspace cannot show it, because there the feature `sandbox` is enabled for all packages.

use std::process::Command;

use anyhow::{Context, Result, bail};

use metal3_files::workspace;

use crate::images::RELEASED;

const PROGRAM: &str = "metal3-manager";
/// Packages for simulation and tests.
const SIMULATION: [&str; 6] = [
    "metal3-sim-capi",
    "metal3-sim-faults",
    "metal3-harness",
    "metal3-sim-ironic",
    "metal3-sim-bmc",
    "metal3-sim-cluster",
];

/// A line for each of them in the released program.
pub(super) fn violations() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", PROGRAM])
        .args(RELEASED)
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(workspace::root()?)
        .output()
        .context("run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(among(&String::from_utf8_lossy(&output.stdout)))
}

/// Those among the packages of `cargo tree`, one per line with its version.
fn among(packages: &str) -> Vec<String> {
    let names = packages.lines().filter_map(|line| line.split_whitespace().next());
    let mut found: Vec<&str> = names.filter(|name| SIMULATION.contains(name)).collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|name| format!("{PROGRAM} must not be released with {name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulator_in_the_released_program_is_reported_once() {
        let tree = "metal3-manager v1.0.0 (/x)\nmetal3-hosts v1.0.0 (/x)\nmetal3-sim-faults v1.0.0 (/x)\nmetal3-sim-faults v1.0.0 (*)\n";
        assert_eq!(
            among(tree),
            ["metal3-manager must not be released with metal3-sim-faults"]
        );
    }

    #[test]
    fn the_released_program_contains_no_simulator() {
        assert_eq!(violations().unwrap(), Vec::<String>::new());
    }
}
