//! Reads a layout that was written: what its index names, and the program of an architecture.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::layer;
use super::layout::{COMPILER, REVISION, SOURCE, TAG, sha256};
use crate::files::files_below;

/// A layout in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The version.
    pub(crate) tag: String,
    /// Digest of the index: `sha256:…`.
    pub(crate) digest: String,
    /// The commit that the images were built from. It ends in `-dirty` if the checkout had changes, and then in `-dev` if the
    /// program is not optimised.
    pub(crate) revision: String,
    /// URL of the source.
    pub(crate) source: String,
    /// What compiled and linked the programs: `rustc 1.95.0 (…), cc …`, or that of each architecture.
    pub(crate) compiler: String,
    /// The architectures of the images.
    pub(crate) architectures: Vec<String>,
    /// The images, in the same order.
    manifests: Vec<String>,
}

impl Written {
    /// Reads the index of a layout.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("index.json");
        let top = fs::read(&path).with_context(|| format!("read {}: run `make images` first", path.display()))?;
        let top: Value = serde_json::from_slice(&top).with_context(|| format!("read {}", path.display()))?;
        let entry = top.pointer("/manifests/0").context("the layout has no image")?;
        let annotation = |of: &Value, name: &str| of.get("annotations").and_then(|all| all.get(name)).map(text);
        let digest = entry.get("digest").map(text).context("the layout names no digest")?;
        let index: Value = serde_json::from_slice(&blob(folder, &digest)?).context("read the index")?;
        let images = index.get("manifests").and_then(Value::as_array);
        let images = images.context("the index names no images")?;
        let member = |at: &'static str| {
            images
                .iter()
                .map(move |image| image.pointer(at).map(text).unwrap_or_default())
        };
        Ok(Self {
            tag: annotation(entry, TAG).context("the layout names no tag")?,
            revision: annotation(&index, REVISION).context("the index names no commit")?,
            source: annotation(&index, SOURCE).context("the index names no source")?,
            compiler: annotation(&index, COMPILER).context("the index names no compiler: run `make images`")?,
            architectures: member("/platform/architecture").collect(),
            manifests: member("/digest").collect(),
            digest,
        })
    }

    /// Without images.
    #[cfg(test)]
    pub(crate) fn of_test(tag: &str, digest: &str) -> Self {
        Self {
            tag: tag.to_owned(),
            digest: digest.to_owned(),
            revision: String::new(),
            source: String::new(),
            compiler: String::new(),
            architectures: Vec::new(),
            manifests: Vec::new(),
        }
    }

    /// The image in a registry: `HOST/NAME@sha256:…`.
    pub(crate) fn at(&self, repository: &str) -> Result<String> {
        ensure!(!repository.is_empty(), "set REGISTRY to HOST/NAME");
        Ok(format!("{repository}@{}", self.digest))
    }

    /// The files of the layout. Another file in the folder is an error, and so is a blob with other bytes than its name says.
    pub(crate) fn files(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut digests = BTreeSet::from([self.digest.clone()]);
        for manifest in &self.manifests {
            let read: Value = serde_json::from_slice(&blob(folder, manifest)?).context("read an image")?;
            let layers = read.get("layers").and_then(Value::as_array);
            let descriptors = layers.into_iter().flatten().chain(read.get("config"));
            digests.extend(descriptors.filter_map(|one| one.get("digest")).map(text));
            digests.insert(manifest.clone());
        }
        let mut files = vec![folder.join("index.json"), folder.join("oci-layout")];
        for digest in &digests {
            drop(blob(folder, digest)?);
            files.push(path(folder, digest));
        }
        let found = files_below(folder)?;
        let other = found.iter().find(|path| !files.contains(path));
        if let Some(other) = other {
            bail!("{} is no file of the images: remove it", other.display());
        }
        Ok(files)
    }

    /// The programs by architecture, each with the time of its file.
    pub(crate) fn programs(&self, folder: &Path) -> Result<Vec<(&str, Vec<u8>, u64)>> {
        let mut programs = Vec::new();
        for (architecture, manifest) in self.architectures.iter().zip(&self.manifests) {
            let manifest: Value = serde_json::from_slice(&blob(folder, manifest)?).context("read an image")?;
            let layer = manifest.pointer("/layers/0/digest").map(text);
            let layer = blob(folder, &layer.context("an image has no layer")?)?;
            let (content, modified) = layer::first(&layer)?;
            programs.push((architecture.as_str(), content, modified));
        }
        Ok(programs)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn path(folder: &Path, digest: &str) -> PathBuf {
    folder.join("blobs/sha256").join(digest.trim_start_matches("sha256:"))
}

/// A blob, which must have its digest.
fn blob(folder: &Path, digest: &str) -> Result<Vec<u8>> {
    let path = path(folder, digest);
    let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let found = sha256(&content);
    ensure!(
        found == digest,
        "{} has the digest {found}: run `make images`",
        path.display()
    );
    Ok(content)
}
