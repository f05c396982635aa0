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
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
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

/// Whether a variable is about the package of this program, by which cargo started it. Build scripts of dependencies depend on them: with
/// others than in a plain `cargo build`, these and all that needs them would be built again at each change from one to the other.
fn is_of_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_the_variables_of_the_user_and_not_those_of_this_package() {
        for (name, expected) in [
            ("CARGO_PKG_NAME", true),
            ("CARGO_PKG_VERSION_MAJOR", true),
            ("CARGO_MANIFEST_DIR", true),
            ("CARGO_TARGET_DIR", false),
            ("CARGO_HOME", false),
            ("PATH", false),
        ] {
            assert_eq!(is_of_package(name), expected, "{name}");
        }
    }
}
