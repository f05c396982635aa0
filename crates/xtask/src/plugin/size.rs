//! How much `kubectl metal3` adds to the program of a release: it is built for this machine with and without the feature `plugin`.

use anyhow::Result;

use crate::images::{Compiled, RELEASED, size};

/// What the program may grow by.
const LIMIT: u64 = 1 << 20;
/// Without the plugin.
const WITHOUT: [&str; 1] = ["--no-default-features"];

/// Builds both, and prints the sizes. `Ok(false)`: the difference is above the limit.
pub(crate) fn run(compiled: &Compiled) -> Result<bool> {
    let without = size(&WITHOUT, compiled)?;
    let with = size(&RELEASED, compiled)?;
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
