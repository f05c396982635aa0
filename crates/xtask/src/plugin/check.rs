//! `plugin-check`: the real Krew reads the manifest, and installs the archive of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::{MANIFEST, PROGRAM, archives};
use crate::images::native;
use crate::run::{next_to, succeed};

#[derive(Args)]
pub(crate) struct Programs {
    /// The program `krew`
    #[arg(long)]
    krew: PathBuf,
    /// The program `validate-krew-manifest`
    #[arg(long)]
    validator: PathBuf,
}

/// Checks what `plugin` wrote into a folder.
pub(crate) fn run(folder: &Path, programs: &Programs) -> Result<bool> {
    let manifest = folder.join(MANIFEST);
    // It would install from the URL, where nothing is yet.
    let mut validator = Command::new(&programs.validator);
    succeed(validator.arg("-skip-install").arg("-manifest").arg(&manifest))?;
    println!("{}: accepted by Krew's validator", manifest.display());
    let ending = format!("_{}.tar.gz", native()?);
    let archive = archives(folder)?.into_iter().find(|name| name.ends_with(&ending));
    let archive = archive.with_context(|| format!("{} has no archive of this machine", folder.display()))?;
    let root = next_to(folder, "krew");
    let outcome = installed(&programs.krew, &manifest, &folder.join(&archive), &root);
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("remove {}", root.display()))?;
    }
    outcome?;
    println!("{archive}: installed by Krew, and its program runs");
    Ok(true)
}

fn installed(krew: &Path, manifest: &Path, archive: &Path, root: &Path) -> Result<()> {
    let mut install = Command::new(krew);
    install
        .env("KREW_ROOT", std::path::absolute(root)?)
        .args(["install", "--manifest"]);
    succeed(install.arg(manifest).arg("--archive").arg(archive))?;
    let printed = succeed(Command::new(root.join("bin").join(PROGRAM)).args(["completion", "bash"]))?;
    ensure!(
        printed.contains(PROGRAM),
        "{PROGRAM} completion bash printed `{printed}`"
    );
    Ok(())
}
