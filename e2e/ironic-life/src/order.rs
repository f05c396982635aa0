//! The content ordered for a disk: images of known bytes, and config-drives.

use std::{io::Write as _, path::Path, process::Command};

use anyhow::{Context as _, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use metal3_sim_bmc::store::hex;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

const IMAGE_BYTES: usize = 1 << 20;
/// Neighbouring nodes get different images, without one file per node.
const IMAGES: usize = 8;

/// One image in two formats.
#[derive(Debug)]
pub struct Image {
    /// The raw file.
    pub raw: Source,
    /// The same content as qcow2.
    pub qcow2: Source,
    /// The disk content after a deployment.
    pub bytes: Vec<u8>,
}

impl Image {
    /// The raw file as a live ISO: no simulator reads its content.
    pub(crate) fn live_iso(&self) -> Value {
        json!({ "boot_iso": self.raw.url })
    }
}

/// An image file to deploy from.
#[derive(Debug)]
pub struct Source {
    /// The download address.
    pub url: String,
    /// The checksum of the file.
    pub sha256: String,
    /// `raw` or `qcow2`.
    pub format: &'static str,
}

impl Source {
    /// The `instance_info` of a node.
    pub(crate) fn instance_info(&self) -> Value {
        json!({
            "image_source": self.url,
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": self.sha256,
            "image_disk_format": self.format,
        })
    }
}

/// Writes the images into the directory that Ironic's file server serves at `url`.
///
/// # Errors
/// When a file cannot be written or converted.
pub fn images(folder: &Path, url: &str) -> anyhow::Result<Vec<Image>> {
    (0..IMAGES).map(|index| image(folder, url, index)).collect()
}

fn image(folder: &Path, url: &str, index: usize) -> anyhow::Result<Image> {
    let bytes = disk_bytes(u64::try_from(index)?.wrapping_add(1));
    let (raw, qcow2) = (
        folder.join(format!("disk-{index}.raw")),
        folder.join(format!("disk-{index}.qcow2")),
    );
    std::fs::write(&raw, &bytes).with_context(|| format!("cannot write {}", raw.display()))?;
    let converted = Command::new("qemu-img")
        .args(["convert", "-f", "raw", "-O", "qcow2"])
        .args([&raw, &qcow2])
        .status()?;
    ensure!(converted.success(), "qemu-img cannot create {}", qcow2.display());
    let source = |path: &Path, format| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sha256 = sha256(&std::fs::read(path)?);
        anyhow::Ok(Source {
            url: format!("{url}/{name}"),
            sha256,
            format,
        })
    };
    Ok(Image {
        raw: source(&raw, "raw")?,
        qcow2: source(&qcow2, "qcow2")?,
        bytes,
    })
}

/// A boot sector with one partition, as Ironic's format inspection requires, then bytes that differ by seed.
#[must_use]
pub fn disk_bytes(seed: u64) -> Vec<u8> {
    const PARTITION: [u8; 16] = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 0xff, 7, 0, 0];
    let mut bytes = vec![0; 446];
    bytes.extend(PARTITION);
    bytes.resize(510, 0);
    bytes.extend([0x55, 0xaa]);
    // A linear congruential generator: the bytes are the same in each run.
    let mut state = seed;
    while bytes.len() < IMAGE_BYTES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend((state >> 32).to_be_bytes());
    }
    bytes.truncate(IMAGE_BYTES);
    bytes
}

/// A config-drive as documents: Ironic builds the ISO.
pub(crate) struct ConfigDrive {
    pub(crate) meta_data: Value,
    pub(crate) network_data: Value,
    pub(crate) user_data: String,
}

impl ConfigDrive {
    /// Ironic adds the node's uuid to `meta_data` without one, so it is set here.
    pub(crate) fn of(name: &str, uuid: &str) -> Self {
        Self {
            meta_data: json!({ "uuid": uuid, "name": name, "hostname": name, "metal3": { "label": "ünïcode" } }),
            network_data: json!({ "links": [], "networks": [], "services": [] }),
            user_data: format!("#cloud-config\nhostname: {name}\nruncmd:\n- [echo, \"{name} ✓\"]\n"),
        }
    }

    pub(crate) fn ordered(&self) -> Value {
        json!({ "meta_data": self.meta_data, "network_data": self.network_data, "user_data": self.user_data })
    }
}

/// A config-drive as an image: its bytes, and the order with the bytes gzipped in base64.
pub(crate) fn config_drive_image(name: &str) -> anyhow::Result<(Vec<u8>, Value)> {
    let bytes: Vec<u8> = format!("config-drive of {name}\n")
        .bytes()
        .cycle()
        .take(100_000)
        .collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&bytes)?;
    Ok((bytes, Value::String(STANDARD.encode(gzip.finish()?))))
}

/// The checksum in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_differ_from_each_other_and_are_the_same_in_each_run() {
        assert_ne!(disk_bytes(0), disk_bytes(1));
        assert_eq!(disk_bytes(3), disk_bytes(3));
        assert_eq!(disk_bytes(0).len(), IMAGE_BYTES);
    }
}
