//! What a machine's disks hold: nothing, or an image that an agent wrote.

use serde::{Deserialize, Serialize};

/// A named piece of content in the lab's [store](crate::store).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// SHA-256, which is also its name in the store.
    pub sha256: String,
    /// Length.
    pub bytes: u64,
}

/// An image on a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The disk's first bytes; the rest reads as zero.
    #[serde(flatten)]
    pub content: Content,
    /// Where it came from.
    pub url: String,
    /// The node it was ordered for.
    pub node: String,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// `sda` and so on.
    pub name: String,
    /// Capacity.
    pub size: u64,
    /// What it holds; nothing when new or erased.
    pub written: Option<Written>,
    /// The config-drive partition behind the image.
    pub config_drive: Option<Content>,
}

impl Disk {
    /// A new disk.
    #[must_use]
    pub fn blank(name: String, size: u64) -> Self {
        Self {
            name,
            size,
            written: None,
            config_drive: None,
        }
    }

    /// After the partition table is gone nothing on it is found again.
    pub fn erase(&mut self) {
        self.written = None;
        self.config_drive = None;
    }
}
