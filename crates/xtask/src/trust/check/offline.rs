//! Runs this program again where no network but the loopback interface is.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools;

/// What is installed first: nothing can be downloaded later.
const TOOLS: [(&str, &str); 4] = [
    ("skopeo", "skopeo"),
    ("docker-registry", "docker-registry"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// The same command with one more flag. `false` when it fails.
pub(super) fn again(flag: &str) -> Result<bool> {
    for (program, package) in TOOLS {
        tools::install(program, &[package])?;
    }
    let own = std::env::current_exe().context("find this program")?;
    let mut command = Command::new("unshare");
    if !tools::is_root() {
        command.arg("--map-root-user");
    }
    let status = command
        .args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .arg(flag)
        .status()
        .context("run unshare")?;
    Ok(status.success())
}

/// Requires that this process has no other interface.
pub(super) fn require() -> Result<()> {
    let table = fs::read_to_string("/proc/self/net/dev").context("read the interfaces")?;
    let found = interfaces(&table);
    ensure!(
        found == ["lo"],
        "there are other interfaces than that of loopback: {}",
        found.join(", ")
    );
    println!("no network but loopback");
    Ok(())
}

/// The names in the kernel's table, which has two lines of titles.
fn interfaces(table: &str) -> Vec<&str> {
    let rows = table.lines().skip(2);
    rows.filter_map(|row| row.split_once(':'))
        .map(|(name, _)| name.trim())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_read_from_the_table_of_the_kernel() {
        let titles = "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes    packets\n";
        for (rows, wanted) in [
            ("    lo: 1 2 0\n", vec!["lo"]),
            ("    lo: 1 2 0\n  eth0: 5 6 0\n", vec!["lo", "eth0"]),
            ("", vec![]),
        ] {
            assert_eq!(interfaces(&format!("{titles}{rows}")), wanted);
        }
    }
}
