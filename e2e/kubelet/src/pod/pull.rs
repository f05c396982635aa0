//! Pulls images by digest from a registry of this machine and unpacks them, each once.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use flate2::read::GzDecoder;
use tokio::sync::Mutex;

use crate::node::architecture;
use crate::plan::layer::{self, Files};
use crate::plan::pull::{self, Descriptor, Document, Reference, Runs};
use crate::plan::sandbox::Mount;

/// A layer of a hundred megabytes from this machine takes a second.
const LIMIT: Duration = Duration::from_secs(60);
/// A configuration may say that its layer, once unpacked, is much larger than what came.
const UNPACKED: u64 = 1 << 30;

/// The largest manifest that registries take.
const MANIFEST: u64 = 4 << 20;

/// An unpacked image.
#[derive(Debug)]
pub(crate) struct Pulled {
    pub(crate) runs: Runs,
    /// Its files and folders at the top.
    pub(crate) files: Vec<Mount>,
    /// Bytes that came.
    pub(crate) size: usize,
}

/// The images of this machine.
pub(crate) struct Images {
    client: reqwest::Client,
    folder: PathBuf,
    /// Held while an image is pulled: replicas start together.
    pulled: Mutex<BTreeMap<Reference, Arc<Pulled>>>,
}

impl Images {
    pub(crate) fn new(folder: PathBuf) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LIMIT)
            .no_proxy();
        Ok(Self {
            client: client.build().context("the client of registries")?,
            folder,
            pulled: Mutex::default(),
        })
    }

    /// The image, and whether it was pulled for this call.
    pub(crate) async fn get(&self, reference: &Reference) -> anyhow::Result<(Arc<Pulled>, bool)> {
        let mut pulled = self.pulled.lock().await;
        if let Some(image) = pulled.get(reference) {
            return Ok((image.clone(), false));
        }
        let image = Arc::new(self.pull(reference).await?);
        pulled.insert(reference.clone(), image.clone());
        Ok((image, true))
    }

    async fn pull(&self, reference: &Reference) -> anyhow::Result<Pulled> {
        let first = self.answer(&reference.manifest(&reference.digest), MANIFEST).await?;
        pull::verify(&first, &reference.digest).map_err(anyhow::Error::msg)?;
        let mut size = first.len();
        let (config, layers) = match document(&first)? {
            Document::Manifest { config, layers } => (config, layers),
            Document::Index(of_machine) => {
                let content = self
                    .described(reference.manifest(&of_machine.digest), &of_machine)
                    .await?;
                size += content.len();
                match document(&content)? {
                    Document::Manifest { config, layers } => (config, layers),
                    Document::Index(_) => anyhow::bail!("{}: an index in an index", of_machine.digest),
                }
            }
        };
        let content = self.described(reference.blob(&config.digest), &config).await?;
        size += content.len();
        let (runs, archives) = pull::configuration(&content).map_err(anyhow::Error::msg)?;
        anyhow::ensure!(
            archives.len() == layers.len(),
            "{}: {} archives for {} layers",
            config.digest,
            archives.len(),
            layers.len()
        );
        let mut files = Files::new();
        for (layer, archive) in layers.iter().zip(archives) {
            let content = self.described(reference.blob(&layer.digest), layer).await?;
            size += content.len();
            files = tokio::task::spawn_blocking(move || unpacked(&content, &archive, files)).await??;
        }
        let hex = reference.digest.rsplit(':').next().unwrap_or_default();
        let root = self.folder.join(hex);
        let files = tokio::task::spawn_blocking(move || written(&root, &files)).await??;
        Ok(Pulled { runs, files, size })
    }

    async fn described(&self, url: String, wanted: &Descriptor) -> anyhow::Result<Vec<u8>> {
        let content = self.answer(&url, wanted.size).await?;
        pull::verify_described(&content, wanted).map_err(anyhow::Error::msg)?;
        Ok(content)
    }

    /// Reads no more than that many bytes.
    async fn answer(&self, url: &str, most: u64) -> anyhow::Result<Vec<u8>> {
        let sent = self.client.get(url).header("Accept", pull::ACCEPTED).send();
        let mut answer = sent.await.with_context(|| format!("asking for {url}"))?;
        let status = answer.status();
        anyhow::ensure!(status.is_success(), "{url}: the registry answered {status}");
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.with_context(|| format!("reading {url}"))? {
            body.extend_from_slice(&part);
            anyhow::ensure!(
                u64::try_from(body.len())? <= most,
                "{url}: the registry sends more than {most} bytes"
            );
        }
        Ok(body)
    }
}

fn document(content: &[u8]) -> anyhow::Result<Document> {
    pull::document(content, architecture()).map_err(anyhow::Error::msg)
}

/// Adds the files of a compressed layer whose archive must have this digest.
fn unpacked(layer: &[u8], digest: &str, mut files: Files) -> anyhow::Result<Files> {
    let mut archive = Vec::new();
    let mut gzip = GzDecoder::new(layer).take(UNPACKED);
    gzip.read_to_end(&mut archive).context("the layer is not gzip")?;
    pull::verify(&archive, digest).map_err(anyhow::Error::msg)?;
    layer::add(&archive, &mut files).map_err(anyhow::Error::msg)?;
    Ok(files)
}

/// Writes the files below a directory, which an earlier attempt may have left; returns what is at the top.
fn written(root: &Path, files: &Files) -> anyhow::Result<Vec<Mount>> {
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| format!("removing {}", root.display()))?;
    }
    for (name, file) in files {
        let path = root.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        fs::write(&path, &file.content).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(&path, PermissionsExt::from_mode(file.mode))?;
    }
    let mut tops: Vec<&str> = files.keys().filter_map(|name| name.split('/').next()).collect();
    tops.dedup();
    let mount = |top: &&str| Mount {
        from: root.join(top),
        to: format!("/{top}"),
        read_only: true,
    };
    Ok(tops.iter().map(mount).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn archive_of_a_layer_has_the_digest_of_the_configuration() {
        // An empty archive ends with two blocks of zeros.
        let archive = [0; 1024];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&archive).unwrap();
        let layer = gzip.finish().unwrap();
        assert!(
            unpacked(&layer, &pull::sha256(&archive), Files::new())
                .unwrap()
                .is_empty()
        );
        assert!(unpacked(&layer, &pull::sha256(b"other"), Files::new()).is_err());
        assert!(unpacked(b"no gzip", &pull::sha256(&archive), Files::new()).is_err());
    }
}
