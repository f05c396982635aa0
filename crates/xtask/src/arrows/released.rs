//! What is compiled into the program as it is released: none of the stand-ins.
//!
//! The graph of the workspace cannot say it, because there the sandbox is turned on for everybody.

use std::process::Command;

use anyhow::{Context, Result, bail};

use metal3_files::workspace;

const PROGRAM: &str = "metal3-manager";
/// Rooms that imitate what a product meets.
const STAND_INS: [&str; 6] = [
    "metal3-sim-capi",
    "metal3-sim-faults",
    "metal3-harness",
    "metal3-sim-ironic",
    "metal3-sim-bmc",
    "metal3-sim-cluster",
];

/// A line for each stand-in that is released.
pub(super) fn violations() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", PROGRAM, "--no-default-features"])
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(workspace::root()?)
        .output()
        .context("run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(among(&String::from_utf8_lossy(&output.stdout)))
}

/// The stand-ins among packages, one a line with its version behind it.
fn among(packages: &str) -> Vec<String> {
    let names = packages.lines().filter_map(|line| line.split_whitespace().next());
    let mut found: Vec<&str> = names.filter(|name| STAND_INS.contains(name)).collect();
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
    fn a_stand_in_in_the_released_program_is_named_once() {
        let tree = "metal3-manager v1.0.0 (/x)\nmetal3-hosts v1.0.0 (/x)\nmetal3-sim-faults v1.0.0 (/x)\nmetal3-sim-faults v1.0.0 (*)\n";
        assert_eq!(
            among(tree),
            ["metal3-manager must not be released with metal3-sim-faults"]
        );
    }

    #[test]
    fn this_program_is_released_without_stand_ins() {
        assert_eq!(violations().unwrap(), Vec::<String>::new());
    }
}
