//! Commands of other programs whose failure is an error with their output.

use std::path::{Path, PathBuf};
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

/// A folder next to another. The name is longer, so that no part of the other name that looks like an ending is replaced.
pub(crate) fn next_to(folder: &Path, word: &str) -> PathBuf {
    // The iterator leaves a slash at the end out.
    let mut path = folder.components().collect::<PathBuf>().into_os_string();
    path.push(".");
    path.push(word);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_next_to_another_has_its_whole_name() {
        for (folder, wanted) in [
            ("out/images", "out/images.trust"),
            ("out/images-1.15.0", "out/images-1.15.0.trust"),
            ("/srv/images/", "/srv/images.trust"),
        ] {
            assert_eq!(next_to(Path::new(folder), "trust"), Path::new(wanted));
        }
    }
}
