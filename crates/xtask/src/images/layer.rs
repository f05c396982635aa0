//! The layer of the image: an archive of one file, compressed.
//!
//! The bytes depend on the content and the time that is passed in, and on nothing of the machine: no owner, no order of a
//! folder, no clock.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

/// Length of a block of the archive.
const BLOCK: usize = 512;

/// A file in the archive. It belongs to root, so that the user of the image cannot change it.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) mode: u32,
    pub(super) content: &'a [u8],
}

/// The archive with one file, in the form of POSIX (`ustar`). `modified`: seconds since 1970.
pub(super) fn archive(entry: &Entry, modified: u64) -> Vec<u8> {
    let mut archive = header(entry, modified);
    archive.extend(entry.content);
    // The content fills its last block, and two empty blocks end the archive.
    let end = archive.len().next_multiple_of(BLOCK) + 2 * BLOCK;
    archive.resize(end, 0);
    archive
}

fn header(entry: &Entry, modified: u64) -> Vec<u8> {
    let mut before = field(entry.name, 100);
    before.extend(field(&format!("{:07o}", entry.mode), 8));
    before.extend(field("0000000", 8));
    before.extend(field("0000000", 8));
    before.extend(field(&format!("{:011o}", entry.content.len()), 12));
    before.extend(field(&format!("{modified:011o}"), 12));
    let mut after = field("0", 1);
    after.extend(field("", 100));
    after.extend(field("ustar", 6));
    after.extend(field("00", 2));
    // Names of owner and group, numbers of a device, prefix of the name.
    after.extend(field("", BLOCK - 265));
    // The sum counts its own field as spaces.
    let sum: u64 = before.iter().chain(&after).map(|byte| u64::from(*byte)).sum();
    let sum = sum + 8 * u64::from(b' ');
    before.extend(format!("{sum:06o}\0 ").into_bytes());
    before.extend(after);
    before
}

fn field(text: &str, width: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(width, 0);
    bytes
}

/// The archive as gzip without a name and a time.
pub(super) fn compressed(archive: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(archive).context("compress the layer")?;
    gzip.finish().context("compress the layer")
}
