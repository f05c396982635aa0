//! The Go managers as their users install them: a folder of programs and rendered manifests, made outside this project.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::release::GoRelease;
use crate::claims::stack::Stack;
use crate::instance::{set_image, set_image_of_files};
use crate::lifecycle::fleet::Fleet;
use crate::repository::{self, Kind, Release};

/// The provisioner of newer host operators, and its place in the image.
const PLUGIN: (&str, &str) = ("ironic-provisioner.so", "/plugins/ironic-provisioner.so");
const HOSTS: &str = "baremetal-operator";
const METADATA: &str = "metadata.yaml";
/// The program is the last element of the image's name.
const PROVIDERS: [(Kind, &str, &str); 2] = [
    (
        Kind::Infrastructure,
        "cluster-api-provider-metal3",
        "capm3-components.yaml",
    ),
    (Kind::Ipam, "ip-address-manager", "ipam-components.yaml"),
];
const HOSTS_COMPONENTS: &str = "baremetal-operator-components.yaml";
const MANAGER_ROLE: &str = "name: baremetal-operator-manager-role\n";
const MANAGER_BINDING: &str = "name: baremetal-operator-manager-rolebinding\n";
/// Installed with the release, and bound by who wants HostClaims.
const CLAIMS_ROLE: &str = "name: baremetal-operator-hostclaims-role\n";
const CLAIMS_BINDING: &str = "name: baremetal-operator-hostclaims-rolebinding\n";

/// The folder, and the release in it.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    folder: PathBuf,
    pub(super) release: GoRelease,
}

impl Upstream {
    /// Fails for a missing file, and names the section that describes how the folder is made.
    pub(super) fn of(folder: &Path) -> anyhow::Result<Self> {
        const NEEDED: [&str; 7] = [
            HOSTS,
            PROVIDERS[0].1,
            PROVIDERS[1].1,
            HOSTS_COMPONENTS,
            PROVIDERS[0].2,
            PROVIDERS[1].2,
            METADATA,
        ];
        ensure_all(folder, &NEEDED)?;
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let files = [read(PROVIDERS[0].2)?, read(PROVIDERS[1].2)?, read(HOSTS_COMPONENTS)?];
        let release = GoRelease::read(&read(METADATA)?, files.each_ref().map(String::as_str));
        let release = release.with_context(|| format!("UPSTREAM_BIN={}", folder.display()))?;
        if release.has_plugin() {
            ensure_all(folder, &[PLUGIN.0])?;
        }
        let folder = folder.canonicalize()?;
        Ok(Self { folder, release })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes images and clusterctl releases of the programs. The cluster template is this project's: both serve it.
    pub(super) fn publish(&self, stack: &Stack, template: &Path) -> anyhow::Result<()> {
        let plugin = self.file(PLUGIN.0);
        let files: &[(&str, &Path)] = &[(PLUGIN.1, plugin.as_path())];
        let files = if self.release.has_plugin() { files } else { &[] };
        set_image_of_files(&stack.places, HOSTS, &self.file(HOSTS), files)?;
        for (kind, program, components) in PROVIDERS {
            set_image(&stack.places, program, &self.file(program))?;
            if kind == Kind::Ipam && !self.release.has_ipam_provider() {
                continue;
            }
            let is_infrastructure = kind == Kind::Infrastructure;
            let release = Release {
                kind,
                provider: "metal3".to_owned(),
                version: self.release.version(),
                components: self.file(components),
                metadata: self.file(METADATA),
                templates: is_infrastructure.then(|| template.to_path_buf()).into_iter().collect(),
            };
            repository::put(&stack.places, &release)?;
        }
        Ok(())
    }

    /// The components of this project's host manager with the variables of the agent that the Go manager has, as a user takes them
    /// over.
    pub(super) fn with_its_agent(&self, components: &str, fleet: &Fleet) -> anyhow::Result<String> {
        if !self.release.names_agent {
            return Ok(components.to_owned());
        }
        let endpoint = format!("  IRONIC_ENDPOINT: {}\n", fleet.ironic_url());
        ensure!(components.contains(&endpoint), "the release has no line {endpoint}");
        let lines = fleet
            .agent()
            .map(|(variable, address)| format!("  {variable}: {address}\n"));
        Ok(components.replace(&endpoint, &(endpoint.clone() + &lines.concat())))
    }

    /// Components of this program for hosts that serve what the Go manager serves: `preflight` names the flag and the role.
    pub(super) fn with_its_claims(&self, components: String) -> anyhow::Result<String> {
        if !self.release.serves_claims {
            return Ok(components);
        }
        let products = "        - \"--controllers=hosts\"\n";
        ensure!(components.contains(products), "the release has no line {products}");
        let flagged = components.replace(products, &format!("{products}        - \"--hostclaims\"\n"));
        let bindings = flagged
            .split("\n---\n")
            .filter(|one| one.contains("\nkind: ClusterRoleBinding\n"));
        let bindings: Vec<String> = bindings
            .filter(|one| one.contains(MANAGER_ROLE))
            .map(|one| {
                one.replace(MANAGER_BINDING, CLAIMS_BINDING)
                    .replace(MANAGER_ROLE, CLAIMS_ROLE)
            })
            .collect();
        ensure!(
            bindings.len() == 1,
            "the release has {} bindings of {MANAGER_ROLE}",
            bindings.len()
        );
        Ok(format!("{}\n---\n{}", flagged.trim_end(), bindings.concat()))
    }

    /// The components of addresses, of a release without a provider of them: `clusterctl` sets their variables only.
    pub(super) fn addresses(&self, stack: &Stack) -> anyhow::Result<String> {
        let file = self.file(PROVIDERS[1].2);
        let file = file.to_str().context("the file's name is not text")?;
        stack.run("clusterctl", &["generate", "yaml", "--from", file], None)
    }

    /// The components of the host operator, with the address and the credentials of Ironic.
    pub(super) fn hosts(&self, fleet: &Fleet) -> anyhow::Result<String> {
        let path = self.file(HOSTS_COMPONENTS);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut documents = Vec::new();
        for document in text.split("\n---\n") {
            let kind = document.lines().find_map(|line| line.strip_prefix("kind: "));
            documents.push(match kind {
                Some("ConfigMap") => with_ironic(document, fleet)?,
                Some("Deployment") => with_credentials(document)?,
                _ => document.to_owned(),
            });
        }
        Ok(documents.join("\n---\n"))
    }
}

fn ensure_all(folder: &Path, files: &[&str]) -> anyhow::Result<()> {
    let missing: Vec<&str> = files
        .iter()
        .copied()
        .filter(|file| !folder.join(file).exists())
        .collect();
    ensure!(
        missing.is_empty(),
        "UPSTREAM_BIN={}: {} missing; docs/development.md, \"The swap\", says how the folder is made",
        folder.display(),
        missing.join(", ")
    );
    Ok(())
}

fn with_ironic(document: &str, fleet: &Fleet) -> anyhow::Result<String> {
    let mut map: Value = serde_saphyr::from_str(document)?;
    map["data"]["IRONIC_ENDPOINT"] = format!("{}/v1/", fleet.ironic_url()).into();
    for (variable, address) in fleet.agent() {
        if !map["data"][variable].is_null() {
            map["data"][variable] = address.into();
        }
    }
    Ok(map.to_string())
}

/// As upstream's overlay `basic-auth_tls` has it.
fn with_credentials(document: &str) -> anyhow::Result<String> {
    const PLACES: [(&str, &str); 2] = [
        ("ironic-credentials", "/opt/metal3/auth/ironic"),
        ("ironic-cacert", "/opt/metal3/certs/ca"),
    ];
    let mut deployment: Value = serde_saphyr::from_str(document)?;
    let pod = &mut deployment["spec"]["template"]["spec"];
    for (secret, path) in PLACES {
        let volumes = pod["volumes"]
            .as_array_mut()
            .context("the host operator has no volumes")?;
        volumes.push(json!({"name": secret, "secret": {"secretName": secret}}));
        let mounts = pod["containers"][0]["volumeMounts"].as_array_mut();
        let mounts = mounts.context("the host operator mounts nothing")?;
        mounts.push(json!({"name": secret, "mountPath": path, "readOnly": true}));
    }
    Ok(deployment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_is_refused_with_all_that_it_lacks() {
        let error = Upstream::of(Path::new("/nonexistent")).unwrap_err().to_string();
        for part in [HOSTS, METADATA, "docs/development.md"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_host_operator_gets_both_secrets() {
        let document = "kind: Deployment\nspec: {template: {spec: {containers: [{volumeMounts: []}], volumes: []}}}";
        let changed: Value = serde_json::from_str(&with_credentials(document).unwrap()).unwrap();
        let pod = &changed["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"][1]["secret"]["secretName"], "ironic-cacert");
        assert_eq!(
            pod["containers"][0]["volumeMounts"][0]["mountPath"],
            "/opt/metal3/auth/ironic"
        );
    }
}
