//! The store: content by its SHA-256, one file each, so that equal disks share a file.

use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::disk::Content;

/// A directory of content.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// A store in an existing directory.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The path of an incomplete file. `name` must be unique among writers.
    #[must_use]
    pub fn draft(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.draft"))
    }

    /// The path of content.
    #[must_use]
    pub fn path(&self, content: &Content) -> PathBuf {
        self.folder.join(&content.sha256)
    }

    /// Moves a complete draft into the store.
    ///
    /// # Errors
    /// Any error of the file system.
    pub async fn take(&self, draft: &Path) -> std::io::Result<Content> {
        let content = digest(draft).await?;
        tokio::fs::rename(draft, self.path(&content)).await?;
        Ok(content)
    }

    /// Stores bytes from memory.
    ///
    /// # Errors
    /// Any error of the file system.
    pub async fn put(&self, name: &str, bytes: &[u8]) -> std::io::Result<Content> {
        let draft = self.draft(name);
        tokio::fs::write(&draft, bytes).await?;
        self.take(&draft).await
    }
}

async fn digest(path: &Path) -> std::io::Result<Content> {
    use tokio::io::AsyncReadExt as _;
    let mut file = tokio::fs::File::open(path).await?;
    let (mut context, mut buffer, mut bytes) = (Context::new(&SHA256), vec![0; 1 << 18], 0_u64);
    loop {
        let read = file.read(&mut buffer).await?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        context.update(chunk);
        bytes += u64::try_from(read).unwrap_or(0);
    }
    Ok(Content {
        sha256: hex(context.finish().as_ref()),
        bytes,
    })
}

/// Hexadecimal, lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
