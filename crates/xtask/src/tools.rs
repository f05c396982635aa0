//! Programs of the machine that a command needs. As root they are installed; otherwise the error has the command.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The path of a program, when a folder of the search path has it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.find(|path| path.is_file())
}

/// Requires a program that no package adds to a machine without it.
pub(crate) fn require(program: &str) -> Result<()> {
    let found = find(program).with_context(|| format!("this machine has no `{program}`"));
    found.map(drop)
}

/// Installs the Debian packages of a program that is missing.
pub(crate) fn install(program: &str, packages: &[&str]) -> Result<()> {
    if find(program).is_some() {
        return Ok(());
    }
    let command = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !is_root() || find("apt-get").is_none() {
        bail!("`{program}` is missing: run `sudo {command}`");
    }
    // Standard output is the result of the command.
    eprintln!("installing {}", packages.join(" "));
    let attempt = || -> Result<bool> {
        let status = Command::new("apt-get")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(std::io::stderr())
            .status()
            .context("run apt-get")?;
        Ok(status.success())
    };
    if attempt()? {
        return Ok(());
    }
    // A new machine has no list of packages, or an old one.
    Command::new("apt-get")
        .args(["update", "-qq"])
        .stdout(std::io::stderr())
        .status()
        .context("run apt-get")?;
    match attempt()? {
        true => Ok(()),
        false => bail!("`{program}` is missing, and `{command}` failed"),
    }
}

/// The owner of this process is the owner of its folder in `/proc`.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}
