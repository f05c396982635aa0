//! The three ways of README.md. Of the lines only the address of Ironic is another one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::{Installation, install_limit};
use crate::claim::Proof;
use crate::products::load::{list, name};
use crate::products::written::wait_for_test;
use crate::wait::{Stopwatch, until};

/// The address in README.md.
pub(super) const EXAMPLE: &str = "https://ironic.example:6385";
/// The namespace of the process with all products.
pub(super) const NAMESPACE: &str = "metal3-system";
/// All files that a way installs from, for the removal.
pub(super) const FILES: [&str; 4] = [
    "hosts-components.yaml",
    "infrastructure-components.yaml",
    "ipam-components.yaml",
    "all-in-one.yaml",
];

pub(super) fn clusterctl(installation: &Installation<'_>) -> Proof {
    wait_for_test(installation.stack)?;
    way(
        installation,
        "clusterctl",
        &["baremetal-operator-system", "capm3-system", "metal3-ipam-system"],
    )
}

pub(super) fn helm(installation: &Installation<'_>) -> Proof {
    way(installation, "Helm", &[NAMESPACE])
}

pub(super) fn kubectl(installation: &Installation<'_>) -> Proof {
    way(installation, "kubectl", &[NAMESPACE])
}

/// Runs the lines, waits for the Deployments, and has a host registered, inspected and deleted.
fn way(installation: &Installation<'_>, name: &str, namespaces: &[&str]) -> Proof {
    let watch = Stopwatch::start();
    let lines = lines(&installation.readme, name)?;
    installation.run(&lines)?;
    for namespace in namespaces {
        installation.available(namespace)?;
    }
    let installed = watch.elapsed();
    installation.create_host()?;
    until(install_limit(), "a host that is available", || {
        Ok((installation.host()?["status"]["provisioning"]["state"] == "available").then_some(()))
    })
    .with_context(|| format!("{:?}", installation.host().map(|host| host["status"].clone())))?;
    installation.delete_host()?;
    let nodes = installation.fleet.nodes(installation.stack)?;
    ensure!(nodes.is_empty(), "a deleted host is in Ironic: {nodes:?}");
    installation.clean()?;
    Ok(format!(
        "{} lines, installed in {:.1} s, a host available and deleted after {:.1} s",
        lines.lines().count(),
        installed.as_secs_f64(),
        watch.elapsed().as_secs_f64()
    ))
}

/// The lines below a name in the section about the installation.
pub(super) fn lines(readme: &str, way: &str) -> anyhow::Result<String> {
    let section = readme.split("\n## Install\n").nth(1);
    let block = section.and_then(|rest| rest.split(&format!("\n{way}:\n\n```sh\n")).nth(1));
    let lines = block.and_then(|rest| rest.split("\n```").next());
    let lines = lines.with_context(|| format!("README.md has no block `{way}`"))?;
    Ok(lines.to_owned())
}

impl Installation<'_> {
    /// Runs lines in a folder with the content of the release, the login and the CA, with the address of this Ironic.
    pub(super) fn run(&self, lines: &str) -> anyhow::Result<String> {
        ensure!(
            lines.contains(EXAMPLE) || !lines.contains("ironic.example"),
            "the lines do not name {EXAMPLE}"
        );
        let lines = lines.replace(EXAMPLE, self.fleet.ironic_url());
        self.run_as_they_are(&lines)
    }

    pub(super) fn run_as_they_are(&self, lines: &str) -> anyhow::Result<String> {
        let folder = self.folder()?;
        // kubectl finds its plugin next to the files.
        let shell = format!("cd '{}'\nPATH=$PWD/bin:$PATH\n{lines}", folder.display());
        self.stack.run("bash", &["-e", "-o", "pipefail", "-c", &shell], None)
    }

    /// The folder of the lines. The configuration of clusterctl names the providers of Cluster API in addition, because the
    /// stack reaches no other repository.
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let folder = self.stack.places.state_file("user");
        if folder.exists() {
            return Ok(folder);
        }
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(self.release)? {
            let entry = entry?;
            symlink(entry.path(), folder.join(entry.file_name()))?;
        }
        fs::create_dir(folder.join("bin"))?;
        symlink(self.program, folder.join("bin/kubectl-metal3"))?;
        let configuration = folder.join("clusterctl.yaml");
        fs::remove_file(&configuration)?;
        fs::copy(self.written.configuration(), &configuration)?;
        let [(username, password), _] = self.fleet.logins();
        fs::write(folder.join("username"), username)?;
        fs::write(folder.join("password"), password)?;
        fs::copy(&self.fleet.authority, folder.join("ca.pem"))?;
        Ok(folder)
    }

    /// Waits until the Deployments of a namespace are available.
    pub(super) fn available(&self, namespace: &str) -> anyhow::Result<()> {
        let deployments = list(self.stack, namespace, "deployments")?;
        ensure!(!deployments.is_empty(), "there is no Deployment in {namespace}");
        for deployment in &deployments {
            let own = format!("deployment/{}", name(deployment));
            let args = ["--namespace", namespace, "rollout", "status", &own, "--timeout=180s"];
            self.stack.kubectl(&args)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_way() {
        let readme =
            "# a\n\nkubectl:\n\n```sh\nno\n```\n## Install\n\nHelm:\n\n```sh\na\nb\n```\n\nkubectl:\n\n```sh\nc\n```\n";
        assert_eq!(lines(readme, "Helm").unwrap(), "a\nb");
        assert_eq!(lines(readme, "kubectl").unwrap(), "c");
        assert!(lines(readme, "clusterctl").is_err());
    }
}
