//! The required programs of the machine. Missing packages are installed as root, otherwise the error has the command.

use std::process::Command;

use anyhow::{Context, bail};

use crate::namespaces::is_root;
use crate::places::Places;

/// Programs, each with its Debian package.
type Packages = &'static [(&'static str, &'static str)];

/// What each stack needs.
pub(crate) const STACK: Packages = &[
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
    ("setsid", "util-linux"),
    ("hostname", "hostname"),
];

/// What a stack with a registry needs. `curl` writes what no tool pushes.
pub(crate) const REGISTRY: Packages = &[
    (crate::registry::PROGRAM, "docker-registry"),
    ("skopeo", "skopeo"),
    ("umoci", "umoci"),
    ("curl", "curl"),
];

/// The error without Go. Version 1.21 is the oldest that downloads the toolchain of the modules.
const GO: &str = "Go is not on the path. Install Go 1.26 from https://go.dev/dl, or run `apt-get install golang-go` \
                                (1.21 or newer downloads the right toolchain)";

/// Installs missing packages, or fails with the command.
pub(crate) fn ensure_packages(places: &Places, packages: Packages) -> anyhow::Result<()> {
    let mut missing: Vec<&str> = packages
        .iter()
        .filter(|(program, _)| places.find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let command = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !is_root() || places.find("apt-get").is_none() {
        bail!("missing on this machine: {}. Run `sudo {command}`", missing.join(", "));
    }
    println!("installing {}", missing.join(" "));
    let status = Command::new("apt-get")
        .args(["install", "-y", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("running apt-get")?;
    if !status.success() {
        bail!("`{command}` failed with {status}; after `apt-get update` it may succeed");
    }
    Ok(())
}

/// Go is required for builds only.
pub(crate) fn ensure_go(places: &Places) -> anyhow::Result<()> {
    places.find("go").map(drop).context(GO)
}
