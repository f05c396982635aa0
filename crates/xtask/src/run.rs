//! Commands of other programs whose failure is an error with their output.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The output of a command that succeeds; otherwise its errors are part of the error.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("run {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} {}: {}",
        command.get_program().display(),
        command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The output of git in a checkout.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = succeed(Command::new("git").arg("-C").arg(root).args(arguments))?;
    Ok(output.trim().to_owned())
}
