//! Paths and addresses: binaries in the cache, and one directory per running stack.

use std::env::JoinPathsError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::families::{FAMILIES, Family, READERS};

/// All paths and addresses of one stack. Each stack has its own network, so two may have the same addresses unless they are
/// connected.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) name: String,
    network: u8,
    root: PathBuf,
    path: OsString,
}

pub(crate) const SERVICE_SUBNET: &str = "10.96.0.0/16";
pub(crate) const BRIDGE: &str = "stack0";
pub(crate) const NODE_NAME: &str = "stack-node";

impl Places {
    pub(crate) fn new(cache: PathBuf, name: &str, path: OsString) -> anyhow::Result<Self> {
        ensure!(
            !name.is_empty() && name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "--name `{name}`: at most 32 letters, digits and dashes"
        );
        let cache = std::path::absolute(&cache).with_context(|| format!("cache folder {}", cache.display()))?;
        Ok(Self {
            name: name.to_owned(),
            network: 0,
            root: cache.join("stack"),
            path,
        })
    }

    /// The same stack with another network number.
    pub(crate) fn in_network(self, network: u8) -> Self {
        Self { network, ..self }
    }

    pub(crate) fn network(&self) -> u8 {
        self.network
    }

    /// Address of the API server and of the Node; Pods use the rest of the subnet.
    pub(crate) fn node_address(&self) -> String {
        format!("10.244.{}.1", self.network)
    }

    pub(crate) fn pod_subnet(&self) -> String {
        format!("10.244.{}.0/24", self.network)
    }

    /// Another stack of the same cache.
    pub(crate) fn named(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// The cache directory, the value of `--cache`.
    pub(crate) fn cache(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    pub(crate) fn family(&self, family: &Family) -> PathBuf {
        self.root.join("bin").join(family.cache_name())
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state").join(&self.name)
    }

    pub(crate) fn state_file(&self, name: &str) -> PathBuf {
        self.state().join(name)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join(format!("{}.lock", self.name))
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.state().join("log").join(format!("{name}.log"))
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.state().join(format!("{user}.kubeconfig"))
    }

    pub(crate) fn certificate(&self, user: &str) -> PathBuf {
        self.state().join("pki").join(format!("{user}.crt"))
    }

    pub(crate) fn key(&self, user: &str) -> PathBuf {
        self.state().join("pki").join(format!("{user}.key"))
    }

    /// The image table of the kubelet.
    pub(crate) fn images(&self) -> PathBuf {
        self.state().join("images.txt")
    }

    /// The search path of commands in the stack: its tools first.
    pub(crate) fn search_path(&self) -> Result<OsString, JoinPathsError> {
        let own = FAMILIES.iter().chain(READERS).map(|family| self.family(family));
        std::env::join_paths(own.chain(std::env::split_paths(&self.path)))
    }

    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())
    }
}
