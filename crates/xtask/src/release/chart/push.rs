//! Charts in a registry: `skopeo` copies them, and the real helm pulls them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::package::{self, Package};
use crate::images::{Registry, copy_layout, require_same};
use crate::run::{next_to, succeed};

/// Copies the charts of a folder next to the images in `HOST/PATH/NAME`, and prints each with its digest.
pub(crate) fn run(folder: &Path, images: &str) -> Result<bool> {
    require_unreleased(folder, images)?;
    for chart in pushed(folder, images)? {
        println!("oci://{chart}");
    }
    Ok(true)
}

/// Requires that the registry has no other charts of the versions in a folder: they are installed by their version.
pub(crate) fn require_unreleased(folder: &Path, images: &str) -> Result<()> {
    let packages = package::written(folder)?;
    packages
        .iter()
        .try_for_each(|package| require_same(&package.version, &package.digest()?, &package.repository(images)?))
}

/// The pushed charts by their digests.
pub(crate) fn pushed(folder: &Path, images: &str) -> Result<Vec<String>> {
    let packages = package::written(folder)?;
    packages.iter().map(|package| push(folder, package, images)).collect()
}

/// The charts of a folder by their digests, whether they were pushed or not.
pub(crate) fn names(folder: &Path, images: &str) -> Result<Vec<String>> {
    let packages = package::written(folder)?;
    let name = |package: &Package| Ok(format!("{}@{}", package.repository(images)?, package.digest()?));
    packages.iter().map(name).collect()
}

fn push(folder: &Path, package: &Package, images: &str) -> Result<String> {
    let layout = next_to(folder, package.chart);
    let repository = package.repository(images)?;
    let digest = package.digest()?;
    let copied = package
        .layout(&layout)
        .and_then(|()| copy_layout(&layout, &package.version, &digest, &repository));
    if layout.exists() {
        fs::remove_dir_all(&layout).with_context(|| format!("remove {}", layout.display()))?;
    }
    copied.map(|()| format!("{repository}@{digest}"))
}

/// Pushes the charts to a registry of this machine, has helm pull each, and compares the bytes.
pub(super) fn check(folder: &Path, helm: &Path) -> Result<()> {
    let data = next_to(folder, "registry");
    let registry = Registry::start(&data)?;
    let outcome = round(folder, helm, &registry, &data);
    drop(registry);
    fs::remove_dir_all(&data).with_context(|| format!("remove {}", data.display()))?;
    outcome
}

fn round(folder: &Path, helm: &Path, registry: &Registry, data: &Path) -> Result<()> {
    let images = format!("127.0.0.1:{}/metal3/capm3", registry.port);
    let pushed = pushed(folder, &images)?;
    for (package, name) in package::written(folder)?.iter().zip(&pushed) {
        let chart = format!("oci://{}", package.repository(&images)?);
        let mut pull = Command::new(helm);
        pull.args([
            "pull",
            &chart,
            "--version",
            &package.version,
            "--plain-http",
            "--destination",
        ]);
        succeed(pull.arg(data))?;
        let pulled = data.join(package.file());
        let content = fs::read(&pulled).with_context(|| format!("read {}", pulled.display()))?;
        ensure!(content == package.content, "helm pulls other bytes of {name}");
        println!("{name}: pushed, and pulled by helm with the same bytes");
    }
    Ok(())
}
