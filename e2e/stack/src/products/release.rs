//! The files of a release, and the names in them.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde_json::Value;

use super::written::Written;
use crate::claims::stack::Stack;

/// A release under test.
pub(super) struct Candidate {
    written: Written,
    self_managed: PathBuf,
    program: PathBuf,
}

impl Candidate {
    pub(super) fn read(stack: &Stack, folder: &Path, program: &Path) -> anyhow::Result<Self> {
        let self_managed = folder.join("ipam-components-self-managed.yaml");
        ensure!(self_managed.is_file(), "{} is missing", self_managed.display());
        Ok(Self {
            written: Written::of(stack, folder)?,
            self_managed,
            program: program.to_path_buf(),
        })
    }

    /// A file of the release.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.written.file(name)
    }

    pub(super) fn written(&self) -> &Written {
        &self.written
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
