//! A script, as read from its file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use metal3_scenario::Scenario;
use serde_json::Value;

/// A script with the name of its file.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) scenario: Scenario,
    pub(super) folder: PathBuf,
    /// Directory of published manifests.
    pub(super) published: Option<PathBuf>,
}

impl Script {
    pub(super) fn namespace(&self) -> &str {
        self.scenario.namespace.as_deref().unwrap_or(&self.name)
    }

    pub(super) fn published(&self, file: &str) -> anyhow::Result<Vec<Value>> {
        let folder = self.published.as_deref();
        let folder = folder.context("no directory of published manifests: set --published")?;
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        metal3_scenario::published(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn read(file: &Path, published: Option<&Path>) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Self {
            name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            scenario: Scenario::read(&text).with_context(|| format!("reading {}", file.display()))?,
            folder: file.parent().unwrap_or(Path::new(".")).to_path_buf(),
            published: published.map(Path::to_path_buf),
        })
    }
}
