//! The charts as `helm pull` and a registry have them: an archive of a folder, and a manifest that names it.
//!
//! `helm package` and `helm push` write the time of the day into both. Here the same files give the same bytes and the same digest,
//! so a chart can be compared with a second build, and its digest can be signed before a registry has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use metal3_files::documents;
use serde_json::{Value, json};

use super::CHARTS;
use crate::files::{files_below, relative};
use crate::images::{Entry, archive, compressed, fits, sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// An archive of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) chart: &'static str,
    pub(crate) version: String,
    pub(crate) content: Vec<u8>,
    /// `Chart.yaml` as JSON.
    config: Value,
}

/// The archives of the charts in a folder.
pub(crate) fn of(folder: &Path) -> Result<Vec<Package>> {
    CHARTS.into_iter().map(|chart| package(folder, chart)).collect()
}

/// The archives that a folder has. An archive of other files than those in the folder next to it is an error.
pub(crate) fn written(folder: &Path) -> Result<Vec<Package>> {
    let packages = of(folder)?;
    for package in &packages {
        let path = folder.join(package.file());
        let content = fs::read(&path).with_context(|| format!("read {}: run `make chart`", path.display()))?;
        ensure!(
            content == package.content,
            "{} has other files than {}: run `make chart`",
            path.display(),
            folder.join(package.chart).display()
        );
    }
    Ok(packages)
}

/// Writes the archives of the charts in a folder into it, and removes those of other versions.
pub(crate) fn write(folder: &Path) -> Result<()> {
    for chart in CHARTS {
        for old in archives(folder, chart)? {
            fs::remove_file(&old).with_context(|| format!("remove {}", old.display()))?;
        }
    }
    for package in of(folder)? {
        let path = folder.join(package.file());
        fs::write(&path, &package.content).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// The archives of a chart: its name is followed by a version, and that of the other chart by a word.
fn archives(folder: &Path, chart: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let rest = name.as_deref().and_then(|name| name.strip_prefix(chart));
        rest.and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.ends_with(".tgz") && rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    Ok(paths.into_iter().filter(is_archive).collect())
}

fn package(folder: &Path, chart: &'static str) -> Result<Package> {
    let files = files(folder, chart)?;
    let described = folder.join(chart).join("Chart.yaml");
    let config = documents::parse(&documents::text(&described)?, &described)?;
    let config = config.into_iter().next().map(|document| document.value);
    let config = config.with_context(|| format!("{} is empty", described.display()))?;
    let version = config.pointer("/version").and_then(Value::as_str);
    let version = version.with_context(|| format!("{} has no version", described.display()))?;
    let entries: Vec<Entry> = files
        .iter()
        .map(|(name, content)| Entry {
            name,
            mode: 0o644,
            content,
        })
        .collect();
    Ok(Package {
        chart,
        version: version.to_owned(),
        content: compressed(&archive(&entries, 0))?,
        config,
    })
}

/// The files of a chart by their names in the archive, which sort the description first.
fn files(folder: &Path, chart: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for path in files_below(&folder.join(chart))? {
        let name = relative(&path, folder)?;
        ensure!(fits(name), "{name} is longer than a name in an archive");
        let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        found.insert(name.to_owned(), content);
    }
    Ok(found)
}

impl Package {
    /// `metal3-rs-1.15.0.tgz`.
    pub(crate) fn file(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.version)
    }

    /// The manifest in a registry, and the content of what it names.
    fn manifest(&self) -> Result<(Vec<u8>, [Vec<u8>; 2])> {
        let config = serde_json::to_vec(&self.config)?;
        let described = |media_type: &str, content: &[u8]| json!({ "mediaType": media_type, "digest": sha256(content), "size": content.len() });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(CONFIG, &config),
            "layers": [described(CONTENT, &self.content)],
            "annotations": {
                "org.opencontainers.image.title": self.chart,
                "org.opencontainers.image.version": self.version,
            },
        });
        Ok((serde_json::to_vec(&manifest)?, [config, self.content.clone()]))
    }

    /// The digest of the manifest: `sha256:…`.
    pub(crate) fn digest(&self) -> Result<String> {
        Ok(sha256(&self.manifest()?.0))
    }

    /// Writes an image layout with this chart.
    pub(crate) fn layout(&self, folder: &Path) -> Result<()> {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("create {}", blobs.display()))?;
        let (manifest, [config, content]) = self.manifest()?;
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [{
            "mediaType": MANIFEST, "digest": sha256(&manifest), "size": manifest.len(),
            "annotations": { "org.opencontainers.image.ref.name": self.version },
        }] });
        let mut files = vec![
            (folder.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
            (folder.join("index.json"), serde_json::to_vec(&index)?),
        ];
        let blob = |content: Vec<u8>| (blobs.join(sha256(&content).trim_start_matches("sha256:")), content);
        files.extend([manifest, config, content].map(blob));
        for (path, content) in files {
            fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }

    /// Where `helm` finds the chart, for images in `HOST/PATH/NAME`: `HOST/PATH/charts/CHART`.
    pub(crate) fn repository(&self, images: &str) -> Result<String> {
        let parent = images.rsplit_once('/').map(|(parent, _)| parent);
        let parent = parent.with_context(|| format!("`{images}` is not HOST/NAME"))?;
        Ok(format!("{parent}/charts/{}", self.chart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::chart;

    /// Both charts, in a folder of this name.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("metal3-package-{name}-{}", std::process::id()));
        chart::write(&folder, "r/x@sha256:1").unwrap();
        folder
    }

    #[test]
    fn archives_and_digests_do_not_depend_on_the_folder() {
        let (one, other) = (folder("a"), folder("another-one"));
        let (packages, again) = (written(&one).unwrap(), written(&other).unwrap());
        assert_eq!(packages, again);
        let digests: Vec<String> = packages.iter().map(|package| package.digest().unwrap()).collect();
        let repeated: Vec<String> = again.iter().map(|package| package.digest().unwrap()).collect();
        assert_eq!(digests, repeated);
        assert_ne!(digests[0], digests[1]);
        for folder in [one, other] {
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn archive_of_other_files_is_an_error_and_one_of_another_version_is_removed() {
        let folder = folder("changed");
        fs::write(folder.join("metal3-rs-1.0.0.tgz"), "").unwrap();
        fs::write(folder.join("metal3-rs-crds-1.0.0.tgz"), "").unwrap();
        chart::write(&folder, "r/x@sha256:2").unwrap();
        let found = CHARTS.map(|chart| archives(&folder, chart).unwrap().len());
        fs::write(folder.join("metal3-rs/values.yaml"), "image: other\n").unwrap();
        let error = written(&folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [1, 1]);
        assert!(error.contains("has other files than"), "{error}");
    }

    #[test]
    fn charts_are_next_to_the_images() {
        let folder = folder("repository");
        let packages = written(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for (images, wanted) in [
            ("r.example/metal3/capm3", Some("r.example/metal3/charts/metal3-rs-crds")),
            ("r.example:5000/capm3", Some("r.example:5000/charts/metal3-rs-crds")),
            ("capm3", None),
        ] {
            assert_eq!(packages[0].repository(images).ok().as_deref(), wanted);
        }
    }
}
