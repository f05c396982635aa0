//! The OCI image layout: one image for each architecture, and an index that names them.
//!
//! The files are a pure function of the programs and of [`Facts`]: equal programs and facts have the same digests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::layer::{self, Entry};
use super::program::Architecture;
use crate::notices;

/// User and group of the process, as in the Pods.
pub(super) const USER: &str = "65532:65532";
/// The program in the image, as in the `command` of the Pods.
pub(super) const ENTRYPOINT: &str = "/capm3";
const MODE: u32 = 0o555;
const TEXT_MODE: u32 = 0o444;
const LICENCES: &str = "Apache-2.0";
const TITLE: &str = "capm3";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The tag of an index in a layout.
pub(super) const TAG: &str = "org.opencontainers.image.ref.name";
/// The commit that an index or image was built from.
pub(super) const REVISION: &str = "org.opencontainers.image.revision";

/// Where its source is.
pub(super) const SOURCE: &str = "org.opencontainers.image.source";
/// The compilers of its programs.
pub(super) const COMPILER: &str = "metal3-rs/compiler";
/// The source of an image for this machine alone, like the registry of the manifests without `IMAGE`. It is not released.
pub(crate) const NO_SOURCE: &str = "https://localhost/metal3/capm3";

/// What the annotations and labels of the images say.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// `v1.15.0`; also the tag.
    pub(super) version: String,
    /// The commit.
    pub(super) revision: String,
    /// URL of the source.
    pub(super) source: String,
    /// What compiled and linked the programs.
    pub(super) compiler: String,
    /// Seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the commit.
    pub(super) created: u64,
}

impl Facts {
    fn created(&self) -> Result<String> {
        let seconds = i64::try_from(self.created).context("a time beyond the calendar")?;
        let time = DateTime::from_timestamp(seconds, 0).context("a time beyond the calendar")?;
        Ok(time.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    /// The same set as labels of the images and as annotations of manifests and index.
    fn annotations(&self) -> Result<Value> {
        Ok(json!({
            "org.opencontainers.image.created": self.created()?,
            "org.opencontainers.image.licenses": LICENCES,
            REVISION: self.revision,
            SOURCE: self.source,
            COMPILER: self.compiler,
            "org.opencontainers.image.title": TITLE,
            "org.opencontainers.image.version": self.version,
        }))
    }
}

/// A layout.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Its files, by path.
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    /// Digest of the index of all architectures: `sha256:…`.
    pub(super) digest: String,
}

impl Layout {
    /// The layout of these programs, each with the licences of what is in it.
    pub(super) fn of(programs: &[(&Architecture, Vec<u8>)], notices: &str, facts: &Facts) -> Result<Self> {
        let mut layout = Self::default();
        let mut images = Vec::new();
        for (architecture, program) in programs {
            let mut image = layout.image(architecture, (program, notices), facts)?;
            add(&mut image, "platform", architecture.platform());
            images.push(image);
        }
        let index = json!({
            "schemaVersion": 2, "mediaType": INDEX, "manifests": images, "annotations": facts.annotations()?,
        });
        let mut named = layout.blob(INDEX, serde_json::to_vec(&index)?);
        layout.digest = named
            .get("digest")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        add(&mut named, "annotations", json!({ TAG: facts.version }));
        let top = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] });
        let (version, top) = (json!({ "imageLayoutVersion": "1.0.0" }), serde_json::to_vec(&top)?);
        layout
            .files
            .insert(PathBuf::from("oci-layout"), serde_json::to_vec(&version)?);
        layout.files.insert(PathBuf::from("index.json"), top);
        Ok(layout)
    }

    /// Adds the image of an architecture; returns the descriptor of its manifest. `content`: its program, and the licences.
    fn image(&mut self, architecture: &Architecture, content: (&[u8], &str), facts: &Facts) -> Result<Value> {
        let (program, notices) = content;
        let program = Entry {
            name: ENTRYPOINT.trim_start_matches('/'),
            mode: MODE,
            content: program,
        };
        let notices = Entry {
            name: notices::FILE,
            mode: TEXT_MODE,
            content: notices.as_bytes(),
        };
        // The program is the first file, which is what `layer::first` reads.
        let archive = layer::archive(&[program, notices], facts.created);
        let created = facts.created()?;
        let mut config = json!({
            "created": created,
            "config": { "User": USER, "Entrypoint": [ENTRYPOINT], "Labels": facts.annotations()? },
            "rootfs": { "type": "layers", "diff_ids": [sha256(&archive)] },
            "history": [{ "created": created, "created_by": "make images" }],
        });
        if let (Value::Object(members), Value::Object(platform)) = (&mut config, architecture.platform()) {
            members.extend(platform);
        }
        let layer = self.blob(LAYER, layer::compressed(&archive)?);
        let config = self.blob(CONFIG, serde_json::to_vec(&config)?);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
            "annotations": facts.annotations()?,
        });
        Ok(self.blob(MANIFEST, serde_json::to_vec(&manifest)?))
    }

    /// Adds a blob; returns its descriptor.
    fn blob(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let (digest, size) = (sha256(&content), content.len());
        let name = digest.trim_start_matches("sha256:");
        self.files.insert(PathBuf::from("blobs/sha256").join(name), content);
        json!({ "mediaType": media_type, "digest": digest, "size": size })
    }
}

fn add(object: &mut Value, member: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(member.to_owned(), value);
    }
}

/// `sha256:…` of a content.
pub(crate) fn sha256(content: &[u8]) -> String {
    let hex: String = digest(&SHA256, content)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}
