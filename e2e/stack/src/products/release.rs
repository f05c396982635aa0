//! The files of a release, and the names in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::claims::stack::Stack;
use crate::repository::{self, Kind, Release};

/// A release under test.
pub(super) struct Candidate {
    folder: PathBuf,
    components: String,
    metadata: PathBuf,
    self_managed: PathBuf,
    program: PathBuf,
}

/// The installed version, and the version of the upgrade.
pub(crate) const FIRST: &str = "v1.15.0";
pub(crate) const NEXT: &str = "v1.15.1";

pub(super) fn image(components: &str) -> anyhow::Result<&str> {
    let line = components.lines().find_map(|line| line.trim().strip_prefix("image: "));
    Ok(line.context("the components name no image")?.trim_matches(['"', '\'']))
}

impl Candidate {
    pub(super) fn read(folder: &Path, program: &Path) -> anyhow::Result<Self> {
        let path = folder.join("ipam-components.yaml");
        let components = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let metadata = folder.join("metadata.yaml");
        let self_managed = folder.join("ipam-components-self-managed.yaml");
        for file in [&metadata, &self_managed] {
            ensure!(file.is_file(), "{} is missing", file.display());
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            components,
            metadata,
            self_managed,
            program: program.to_path_buf(),
        })
    }

    /// A file of the release.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Installs the variant without cert-manager, with variables substituted by clusterctl.
    pub(super) fn install_self_managed(&self, stack: &Stack) -> anyhow::Result<()> {
        let path = self.self_managed.to_string_lossy();
        let objects = stack.run("clusterctl", &["generate", "yaml", "--from", &path], None)?;
        stack
            .run("kubectl", &["apply", "--filename", "-"], Some(&objects))
            .map(drop)
    }

    fn image(&self) -> anyhow::Result<&str> {
        image(&self.components)
    }

    /// The last element of the image without tag, the key of the kubelet's image table.
    pub(super) fn image_name(&self) -> anyhow::Result<String> {
        let last = self.image()?.rsplit('/').next().unwrap_or_default();
        Ok(last.split([':', '@']).next().unwrap_or_default().to_owned())
    }

    /// Adds a version to the clusterctl repository, with that version as image tag.
    pub(super) fn publish(&self, stack: &Stack, version: &str) -> anyhow::Result<()> {
        let image = self.image()?;
        let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
        let folder = stack.places.state_file("products").join(version);
        fs::create_dir_all(&folder)?;
        let components = folder.join("components.yaml");
        fs::write(
            &components,
            self.components.replace(image, &format!("{name}:{version}")),
        )?;
        let release = Release {
            kind: Kind::Ipam,
            provider: "metal3".to_owned(),
            version: version.to_owned(),
            components,
            metadata: self.metadata.clone(),
            templates: Vec::new(),
        };
        repository::put(&stack.places, &release)
    }

    pub(super) fn roles(stack: &Stack) -> anyhow::Result<Vec<Value>> {
        let selector = "--selector=cluster.x-k8s.io/provider=ipam-metal3";
        let mut roles = Vec::new();
        for what in ["clusterroles", "roles"] {
            let list = stack.kubectl(&["get", what, "--all-namespaces", selector, "--output=json"])?;
            let mut list: Value = serde_json::from_str(&list)?;
            roles.extend(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
        }
        ensure!(!roles.is_empty(), "the release brought no role");
        Ok(roles)
    }
}
