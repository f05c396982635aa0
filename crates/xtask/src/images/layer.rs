//! Archives of files, compressed: the layer of the image, and those of the plugin.
//!
//! The bytes depend on the content and the time that is passed in, and on nothing of the machine: no owner, no order of a
//! folder, no clock.

use std::io::{Read as _, Write as _};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

/// Length of a block of the archive.
const BLOCK: usize = 512;

/// Lengths of the fields of a name. A longer one is split at a slash.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// A file in the archive. It belongs to root, so that the user of the image cannot change it.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) mode: u32,
    pub(crate) content: &'a [u8],
}

/// The archive with these files, in the form of POSIX (`ustar`). `modified`: seconds since 1970.
pub(crate) fn archive(entries: &[Entry], modified: u64) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        archive.extend(header(entry, modified));
        archive.extend(entry.content);
        // A content fills its last block.
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks end the archive.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// The content and the time of the first file of a compressed archive.
pub(super) fn first(compressed: &[u8]) -> Result<(Vec<u8>, u64)> {
    let mut archive = Vec::new();
    let mut gzip = GzDecoder::new(compressed);
    gzip.read_to_end(&mut archive).context("read the layer")?;
    let number = |start: usize| -> Result<u64> {
        let digits = archive.get(start..start + 11).context("the layer has no file")?;
        let digits = std::str::from_utf8(digits).context("the layer has no file")?;
        u64::from_str_radix(digits, 8).context("the layer has no file")
    };
    let (size, modified) = (usize::try_from(number(124)?)?, number(136)?);
    let content = archive.get(BLOCK..).and_then(|rest| rest.get(..size));
    ensure!(content.is_some(), "the layer ends within its file");
    Ok((content.unwrap_or_default().to_vec(), modified))
}

fn header(entry: &Entry, modified: u64) -> Vec<u8> {
    let (prefix, name) = parts(entry.name);
    let mut before = field(name, NAME);
    before.extend(field(&format!("{:07o}", entry.mode), 8));
    before.extend(field("0000000", 8));
    before.extend(field("0000000", 8));
    before.extend(field(&format!("{:011o}", entry.content.len()), 12));
    before.extend(field(&format!("{modified:011o}"), 12));
    let mut after = field("0", 1);
    after.extend(field("", 100));
    after.extend(field("ustar", 6));
    after.extend(field("00", 2));
    // Names of owner and group, numbers of a device.
    after.extend(field("", 2 * 32 + 2 * 8));
    after.extend(field(prefix, PREFIX));
    after.extend(field("", BLOCK - 500));
    // The sum counts its own field as spaces.
    let sum: u64 = before.iter().chain(&after).map(|byte| u64::from(*byte)).sum();
    let sum = sum + 8 * u64::from(b' ');
    before.extend(format!("{sum:06o}\0 ").into_bytes());
    before.extend(after);
    before
}

/// The folder and the name of a file, as the two fields of a header hold them.
fn parts(name: &str) -> (&str, &str) {
    if name.len() <= NAME {
        return ("", name);
    }
    let mut splits = name
        .match_indices('/')
        .filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..)?)));
    splits.find(|(_, rest)| rest.len() <= NAME).unwrap_or(("", name))
}

/// Whether the fields of a header hold the name.
pub(crate) fn fits(name: &str) -> bool {
    let (prefix, rest) = parts(name);
    prefix.len() <= PREFIX && rest.len() <= NAME
}

fn field(text: &str, width: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(width, 0);
    bytes
}

/// The archive as gzip without a name and a time.
pub(crate) fn compressed(archive: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(archive).context("compress the layer")?;
    gzip.finish().context("compress the layer")
}
