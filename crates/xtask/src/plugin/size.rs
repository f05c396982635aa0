//! How much `kubectl metal3` and the console add to the program of a release: it is built for this machine without them, with the
//! feature `plugin`, and with the feature `console`, which has both.

use anyhow::Result;

use crate::images::{Compiled, RELEASED, size};

/// What the program may grow by for `kubectl metal3`.
const LIMIT: u64 = 1 << 20;
/// And for the console.
const LIMIT_OF_CONSOLE: u64 = 2_000_000;
/// Without both.
const WITHOUT: [&str; 1] = ["--no-default-features"];
/// Without the console.
const WITH_PLUGIN: [&str; 3] = ["--no-default-features", "--features", "plugin"];

/// Builds all, and prints the sizes. `Ok(false)`: a difference is above its limit.
pub(crate) fn run(compiled: &Compiled) -> Result<bool> {
    let without = size(&WITHOUT, compiled)?;
    let plugin = size(&WITH_PLUGIN, compiled)?;
    println!("{}", line("kubectl metal3", (without, plugin), LIMIT));
    let console = size(&RELEASED, compiled)?;
    println!("{}", line("the console", (plugin, console), LIMIT_OF_CONSOLE));
    let is_small = plugin.saturating_sub(without) <= LIMIT;
    Ok(is_small && console.saturating_sub(plugin) <= LIMIT_OF_CONSOLE)
}

fn line(what: &str, (without, with): (u64, u64), limit: u64) -> String {
    let added = with.saturating_sub(without);
    let kilobytes = |bytes: u64| bytes.div_ceil(1024);
    format!(
        "capm3 without {what}: {without} bytes; with it: {with} bytes; difference: {added} bytes ({} KiB of at most {} KiB)",
        kilobytes(added),
        kilobytes(limit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_named_in_bytes_and_rounded_up() {
        let line = line("kubectl metal3", (1000, 2025), LIMIT);
        assert!(
            line.contains("difference: 1025 bytes (2 KiB of at most 1024 KiB)"),
            "{line}"
        );
        assert!(super::line("x", (5, 4), LIMIT).contains("difference: 0 bytes"));
    }
}
