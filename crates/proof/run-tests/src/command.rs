//! The programs that are run, and their output.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use anyhow::{Context as _, Result};

/// Arguments of cargo.
type Arguments = &'static [&'static str];

pub(super) const BUILD: Arguments = &["test", "--workspace", "--locked", "--no-run"];
pub(super) const TESTS: Arguments = &["test", "--workspace", "--locked", "--no-fail-fast"];
pub(super) const SCRIPTS: Arguments = &[
    "run",
    "--quiet",
    "--locked",
    "--bin",
    "scenarios",
    "--",
    "run",
    "--twice",
];

/// Runs cargo and passes on each line of both its outputs, in order. Returns whether it ended well.
pub(super) fn run(arguments: Arguments, mut line: impl FnMut(&str)) -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (reader, writer) = std::io::pipe().context("create a pipe")?;
    let mut command = Command::new(cargo);
    // The lines are read: neither colours nor another verbosity that a user has set.
    command.envs([
        ("CARGO_TERM_COLOR", "never"),
        ("CARGO_TERM_QUIET", "false"),
        ("CARGO_TERM_VERBOSE", "false"),
    ]);
    command.args(arguments).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("run cargo")?;
    // Its copies of the writer would keep the pipe open.
    drop(command);
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    // A test may print what is no text.
    while reader
        .read_until(b'\n', &mut bytes)
        .context("read the output of cargo")?
        > 0
    {
        line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
        bytes.clear();
    }
    Ok(child.wait().context("wait for cargo")?.success())
}
