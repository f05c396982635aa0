//! The files of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// All files of a folder and of those below it, in no order.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// The name of a file below a folder.
pub(crate) fn relative<'a>(path: &'a Path, folder: &Path) -> Result<&'a str> {
    let name = path.strip_prefix(folder)?.to_str();
    name.context("the name of a file is not text")
}
