//! Executes an [`ImageOrder`]: downloads the image, checks it, converts it to disk content, decodes the config-drive.
//!
//! An image with a wrong checksum is not written. `raw` is written unchanged; another format must match the order and
//! is converted by qemu-img, like in the real agent. A gzipped image is rejected unless its format is `raw`.

use std::{collections::BTreeSet, io::Read as _, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use reqwest::header::AUTHORIZATION;
use ring::digest::{SHA256, SHA512};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

use crate::{
    agent::{Algorithm, Authorization, Checksum, Failure, ImageOrder},
    disk::Content,
    store::{Store, hex},
};

/// A limit for decompression, above the size of any config-drive.
const LARGEST_CONFIG_DRIVE: u64 = 64 << 20;

/// The result of an order.
#[derive(Debug)]
pub struct Fetched {
    /// The disk's content.
    pub image: Content,
    /// The config-drive, if ordered.
    pub config_drive: Option<Content>,
}

/// The environment of image orders.
#[derive(Debug)]
pub struct ImageWriter<'a> {
    /// The HTTP client.
    pub client: &'a reqwest::Client,
    /// The store of disk content.
    pub store: &'a Store,
    /// A unique name among concurrent orders.
    pub name: &'a str,
    /// Corrupts downloads.
    pub corrupt: bool,
    /// Whether MD5 checksums are accepted.
    pub accepts_md5: bool,
    /// Checksums that are accepted for any content.
    pub trusted_checksums: &'a BTreeSet<String>,
}

fn download_failed(details: impl std::fmt::Display) -> Failure {
    Failure::new("ImageDownloadError", "Error downloading image", details)
}

fn write_failed(details: impl std::fmt::Display) -> Failure {
    Failure::new("ImageWriteError", "Error writing image to device", details)
}

fn invalid_image(details: impl std::fmt::Display) -> Failure {
    Failure::new("InvalidImage", "The image is not valid", details)
}

impl ImageWriter<'_> {
    /// Executes the order for a disk of `capacity` bytes.
    ///
    /// # Errors
    /// The [`Failure`] that the agent reports.
    pub async fn execute(&self, order: &ImageOrder, capacity: u64) -> Result<Fetched, Failure> {
        let draft = self.store.draft(self.name);
        let outcome = self.image(order, &draft, capacity).await;
        // Removes a rejected image; after success the draft has been renamed.
        let _ = tokio::fs::remove_file(&draft).await;
        let image = outcome?;
        let config_drive = match &order.config_drive {
            Some(drive) => Some(self.config_drive(drive).await?),
            None => None,
        };
        Ok(Fetched { image, config_drive })
    }

    async fn image(&self, order: &ImageOrder, draft: &Path, capacity: u64) -> Result<Content, Failure> {
        let (algorithm, expected) = self.expected(order).await?;
        let actual = self.download(order, algorithm, draft).await?;
        // A corrupted download is never accepted.
        let is_trusted = !self.corrupt && self.trusted_checksums.contains(&expected);
        if actual != expected && !is_trusted {
            let details = format!("{} was ordered with checksum {expected} and has {actual}", order.url);
            let message = "Error verifying image checksum";
            return Err(Failure::new("ImageChecksumError", message, details));
        }
        let is_raw = self.check_format(order.format.as_deref(), draft).await?;
        if !is_raw {
            self.convert(draft).await?;
        }
        let content = self.store.take(draft).await.map_err(write_failed)?;
        if content.bytes > capacity {
            return Err(write_failed(format!(
                "{} bytes do not fit on a disk of {capacity}",
                content.bytes
            )));
        }
        Ok(content)
    }

    async fn expected(&self, order: &ImageOrder) -> Result<(Algorithm, String), Failure> {
        let (algorithm, digest) = match &order.checksum {
            Checksum::Digest(algorithm, digest) => (*algorithm, digest.clone()),
            Checksum::At(url) => self.written_at(url, order).await?,
        };
        if algorithm == Algorithm::Md5 && !self.accepts_md5 {
            let details = format!("{} has an MD5 checksum, which Ironic does not allow", order.url);
            return Err(Failure::new("RESTError", "An error occurred", details));
        }
        Ok((algorithm, digest))
    }

    async fn written_at(&self, checksum: &str, order: &ImageOrder) -> Result<(Algorithm, String), Failure> {
        let text = self.get(checksum).await?.text().await.map_err(download_failed)?;
        let name = order.url.rsplit('/').next().unwrap_or_default();
        match checksum_in(&text, name) {
            Some(Checksum::Digest(algorithm, digest)) => Ok((algorithm, digest)),
            _ => Err(download_failed(format!("{checksum} contains no checksum of {name}"))),
        }
    }

    async fn get(&self, url: &str) -> Result<reqwest::Response, Failure> {
        self.send(self.client.get(url)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
        let answer = request.send().await.map_err(download_failed)?;
        answer.error_for_status().map_err(download_failed)
    }

    async fn download(&self, order: &ImageOrder, algorithm: Algorithm, draft: &Path) -> Result<String, Failure> {
        let mut request = self.client.get(&order.url);
        if let Some(Authorization(value)) = &order.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let mut answer = self.send(request).await?;
        let mut file = tokio::fs::File::create(draft).await.map_err(write_failed)?;
        let mut sum = Sum::new(algorithm);
        while let Some(chunk) = answer.chunk().await.map_err(download_failed)? {
            sum.take(&chunk);
            file.write_all(&chunk).await.map_err(write_failed)?;
        }
        if self.corrupt {
            sum.take(b"?");
        }
        file.flush().await.map_err(write_failed)?;
        Ok(sum.digits())
    }

    /// Checks the format; returns whether the image is raw.
    async fn check_format(&self, ordered: Option<&str>, draft: &Path) -> Result<bool, Failure> {
        if matches!(ordered, Some("raw" | "iso")) {
            return Ok(true);
        }
        // Of an image that a digest names, Ironic does not know the format.
        let ordered = ordered.filter(|ordered| *ordered != "unknown");
        let mut head = [0_u8; 4];
        let mut file = tokio::fs::File::open(draft).await.map_err(write_failed)?;
        let read = file.read(&mut head).await.map_err(write_failed)?;
        let found = format_of(head.get(..read).unwrap_or_default());
        match (ordered, found) {
            (Some(ordered), found) if ordered != found => {
                Err(invalid_image(format!("the format is {found}, the order has {ordered}")))
            }
            (_, "gzip") => Err(invalid_image("a gzipped image is not a disk format")),
            (_, found) => Ok(found == "raw"),
        }
    }

    async fn convert(&self, draft: &Path) -> Result<(), Failure> {
        let raw = draft.with_extension("raw");
        let output = Command::new("qemu-img")
            .args(["convert", "-O", "raw"])
            .args([draft, &raw])
            .kill_on_drop(true)
            .output()
            .await
            .map_err(write_failed)?;
        if !output.status.success() {
            let _ = tokio::fs::remove_file(&raw).await;
            return Err(write_failed(String::from_utf8_lossy(&output.stderr).trim()));
        }
        tokio::fs::rename(&raw, draft).await.map_err(write_failed)
    }

    async fn config_drive(&self, drive: &str) -> Result<Content, Failure> {
        let packed;
        let packed = if drive.starts_with("http://") || drive.starts_with("https://") {
            packed = self.get(drive).await?.text().await.map_err(download_failed)?;
            packed.as_str()
        } else {
            drive
        };
        let bytes = unpack(packed)?;
        self.store
            .put(&format!("{}-config-drive", self.name), &bytes)
            .await
            .map_err(write_failed)
    }
}

/// A checksum in computation.
enum Sum {
    Md5(md5::Context),
    Sha(ring::digest::Context),
}

impl Sum {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Md5(md5::Context::new()),
            Algorithm::Sha256 => Self::Sha(ring::digest::Context::new(&SHA256)),
            Algorithm::Sha512 => Self::Sha(ring::digest::Context::new(&SHA512)),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(sum) => sum.consume(bytes),
            Self::Sha(sum) => sum.update(bytes),
        }
    }

    fn digits(self) -> String {
        match self {
            Self::Md5(sum) => hex(&*sum.finalize()),
            Self::Sha(sum) => hex(sum.finish().as_ref()),
        }
    }
}

fn unpack(packed: &str) -> Result<Vec<u8>, Failure> {
    let compact: String = packed.split_whitespace().collect();
    let gzipped = STANDARD
        .decode(compact)
        .map_err(|_| write_failed("the config-drive is not base64"))?;
    let mut bytes = Vec::new();
    GzDecoder::new(gzipped.as_slice())
        .take(LARGEST_CONFIG_DRIVE)
        .read_to_end(&mut bytes)
        .map_err(|_| write_failed("the config-drive is not gzipped"))?;
    Ok(bytes)
}

/// The format according to the first bytes.
fn format_of(head: &[u8]) -> &'static str {
    match head {
        [b'Q', b'F', b'I', 0xfb, ..] => "qcow2",
        [0x1f, 0x8b, ..] => "gzip",
        [b'K', b'D', b'M', b'V', ..] => "vmdk",
        _ => "raw",
    }
}

/// A checksum file contains one digest, or lines of digest and name.
fn checksum_in(text: &str, name: &str) -> Option<Checksum> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let named = lines().find_map(|line| {
        let (digest, file) = line.split_once(char::is_whitespace)?;
        (file.trim().trim_start_matches('*') == name).then_some(digest)
    });
    let single = lines()
        .next()
        .filter(|line| lines().count() == 1 && !line.contains(char::is_whitespace));
    named.or(single).and_then(|digest| Checksum::parse(digest).ok())
}

#[cfg(test)]
mod tests;
