//! `plugin`: archives of `kubectl metal3`, and its manifest for Krew, which installs plugins of kubectl.
//!
//! The program is that of the images under another name, with the time that its file has there: the same layout gives
//! the same archives.

pub(crate) mod check;
pub(crate) mod size;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;
use metal3_domain::yaml;
use metal3_files::{documents, workspace};
use serde_json::{Value, json};

use crate::images::{Entry, Written, archive, compressed, sha256};
use crate::notices;

/// The name of the plugin, which Krew requires as the name of the manifest.
const PLUGIN: &str = "metal3";
/// The program, by which name kubectl finds it.
const PROGRAM: &str = "kubectl-metal3";
/// The manifest.
pub(crate) const MANIFEST: &str = "metal3.yaml";
const LICENCE: &str = "LICENSE";

#[derive(Args)]
pub(crate) struct Options {
    /// URL of the folder from which the archives will be downloaded
    #[arg(long, default_value = "")]
    url: String,
    /// URL of the source
    #[arg(long, default_value = "")]
    source: String,
}

impl Options {
    /// Archives that will be below a URL.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            source: String::new(),
        }
    }
}

/// Writes an archive for each architecture of a layout, and the manifest that names them.
pub(crate) fn run(folder: &Path, images: &Path, options: &Options) -> Result<bool> {
    for path in write(folder, images, options)? {
        println!("{path}");
    }
    Ok(true)
}

/// Writes what `run` wrote into the folder `from`, if it did, for the same URLs.
pub(crate) fn again(folder: &Path, images: &Path, from: &Path) -> Result<()> {
    let path = from.join(MANIFEST);
    if !path.is_file() {
        return Ok(());
    }
    let documents = documents::parse(&documents::text(&path)?, &path)?;
    let text = |at: &str| {
        let mut texts = documents.iter().filter_map(|document| document.value.pointer(at));
        texts.find_map(Value::as_str).unwrap_or_default()
    };
    let archive = text("/spec/platforms/0/uri");
    let options = Options {
        url: archive.rsplit_once('/').map_or("", |(url, _)| url).to_owned(),
        source: text("/spec/homepage").to_owned(),
    };
    write(folder, images, &options).map(drop)
}

/// The URL of the archives in a folder; `None` without the manifest.
pub(crate) fn url(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(MANIFEST);
    if !path.is_file() {
        return Ok(None);
    }
    let documents = documents::parse(&documents::text(&path)?, &path)?;
    let mut uris = documents
        .iter()
        .filter_map(|document| document.value.pointer("/spec/platforms/0/uri"));
    Ok(uris.find_map(Value::as_str).map(str::to_owned))
}

pub(crate) fn write(folder: &Path, images: &Path, options: &Options) -> Result<Vec<String>> {
    let (url, source) = (options.url.trim_end_matches('/'), options.source.as_str());
    ensure!(
        url.starts_with("https://"),
        "set PLUGIN_URL to the URL of the folder from which the archives will be downloaded, with https://"
    );
    let written = Written::read(images)?;
    let root = workspace::root()?;
    let texts = [
        (LICENCE, documents::text(&root.join(LICENCE))?),
        (notices::FILE, notices::of(&root)?),
    ];
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    // An archive of another version would be signed with the others.
    for old in archives(folder)? {
        fs::remove_file(folder.join(&old)).with_context(|| format!("remove {old}"))?;
    }
    let mut sums = Vec::new();
    for (architecture, program, modified) in written.programs(images)? {
        let content = packed(&program, &texts, modified)?;
        let name = name(&written.tag, architecture);
        fs::write(folder.join(&name), &content).with_context(|| format!("write {name}"))?;
        sums.push((architecture, sha256(&content).trim_start_matches("sha256:").to_owned()));
    }
    let manifest = manifest(&written.tag, &sums, url, source);
    fs::write(folder.join(MANIFEST), yaml::text(&manifest)).with_context(|| format!("write {MANIFEST}"))?;
    let names = sums.iter().map(|(architecture, _)| name(&written.tag, architecture));
    let names = names.chain([MANIFEST.to_owned()]);
    Ok(names.map(|name| folder.join(name).display().to_string()).collect())
}

/// The archives in a folder.
pub(crate) fn archives(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<String>>>()?;
    names.retain(|name| name.starts_with(&format!("{PROGRAM}_")));
    names.sort();
    Ok(names)
}

/// The name of an archive.
pub(crate) fn name(version: &str, architecture: &str) -> String {
    format!("{PROGRAM}_{version}_linux_{architecture}.tar.gz")
}

/// `texts`: further files, by name.
fn packed(program: &[u8], texts: &[(&str, String)], modified: u64) -> Result<Vec<u8>> {
    let program = Entry {
        name: PROGRAM,
        mode: 0o555,
        content: program,
    };
    let texts = texts.iter().map(|(name, text)| Entry {
        name,
        mode: 0o444,
        content: text.as_bytes(),
    });
    let entries: Vec<Entry<'_>> = std::iter::once(program).chain(texts).collect();
    compressed(&archive(&entries, modified))
}

/// The manifest. `sums`: architectures with the sums of their archives. `url`: the folder of the archives.
fn manifest(version: &str, sums: &[(&str, String)], url: &str, source: &str) -> Value {
    let platform = |(architecture, sum): &(&str, String)| {
        json!({
            "selector": { "matchLabels": { "os": "linux", "arch": architecture } },
            "uri": format!("{url}/{}", name(version, architecture)),
            "sha256": sum,
            "bin": PROGRAM,
        })
    };
    let mut manifest = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": { "name": PLUGIN },
        "spec": {
            "version": version,
            "shortDescription": "Explain bare metal hosts and machines",
            "description": "Says why a Cluster, machine or host of the Metal3 provider waits, who has to act and how, and \
                            shows hosts, address pools and durations of a fleet. It only reads.\n",
            "platforms": sums.iter().map(platform).collect::<Vec<_>>(),
        },
    });
    if let (false, Some(Value::Object(spec))) = (source.is_empty(), manifest.get_mut("spec")) {
        spec.insert("homepage".to_owned(), source.into());
    }
    manifest
}

#[cfg(test)]
mod tests;
