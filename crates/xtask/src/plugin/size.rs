//! How much `kubectl metal3` adds to the program: both are built with the features of a release, one without `plugin`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use metal3_files::workspace;

use crate::images::RELEASED;

/// What the program may grow by.
const LIMIT: u64 = 1 << 20;
/// Without the plugin.
const WITHOUT: [&str; 1] = ["--no-default-features"];

/// Builds both programs without symbols, and prints the sizes. `Ok(false)`: the difference is above the limit.
pub(crate) fn run(profile: &str) -> Result<bool> {
    let without = size(&WITHOUT, profile)?;
    let with = size(&RELEASED, profile)?;
    println!("{}", line(without, with));
    Ok(with.saturating_sub(without) <= LIMIT)
}

fn line(without: u64, with: u64) -> String {
    let added = with.saturating_sub(without);
    let kilobytes = |bytes: u64| bytes.div_ceil(1024);
    format!(
        "capm3 without kubectl metal3: {without} bytes; with it: {with} bytes; difference: {added} bytes ({} KiB of at most {} KiB)",
        kilobytes(added),
        kilobytes(LIMIT)
    )
}

/// The size of the program with these features.
fn size(features: &[&str], profile: &str) -> Result<u64> {
    let root = workspace::root()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "metal3-manager",
            "--bin",
            "capm3",
            "--profile",
            profile,
        ])
        .args(features)
        .arg("--target-dir")
        .arg(&target)
        .current_dir(&root)
        .env(
            format!("CARGO_PROFILE_{}_STRIP", profile.to_ascii_uppercase()),
            "symbols",
        )
        .status()
        .context("run cargo build")?;
    ensure!(
        status.success(),
        "the program with the features {features:?} cannot be built"
    );
    let program = target.join(profile).join("capm3");
    let size = std::fs::metadata(&program).with_context(|| format!("read {}", program.display()))?;
    Ok(size.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_named_in_bytes_and_rounded_up() {
        let line = line(1000, 2025);
        assert!(
            line.contains("difference: 1025 bytes (2 KiB of at most 1024 KiB)"),
            "{line}"
        );
        assert!(super::line(5, 4).contains("difference: 0 bytes"));
    }
}
