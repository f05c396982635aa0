//! The content of disks: blank, or an image written by an agent.

use serde::{Deserialize, Serialize};

/// Content in the [store](crate::store).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// SHA-256, the name in the store.
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
    /// The source address.
    pub url: String,
    /// The node of the order.
    pub node: String,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// `sda` and so on.
    pub name: String,
    /// Capacity.
    pub size: u64,
    /// The image; `None` when blank.
    pub written: Option<Written>,
    /// The content of the config-drive partition.
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

    /// Erases the partition table, and thereby the content.
    pub fn erase(&mut self) {
        self.written = None;
        self.config_drive = None;
    }
}
