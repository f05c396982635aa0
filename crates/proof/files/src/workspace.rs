//! Root of the checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder of the workspace manifest: the nearest one at or above the current folder.
///
/// Determined at run time. A path from compile time belongs to the checkout that was built, and checkouts that share a
/// target folder reuse binaries of each other.
pub fn root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    above(&here).context("this command works on the checkout it is started in: change to a folder of one")
}

fn above(folder: &Path) -> Option<PathBuf> {
    let holds_workspace = |folder: &&Path| {
        std::fs::read_to_string(folder.join("Cargo.toml"))
            .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[workspace]"))
    };
    folder.ancestors().find(holds_workspace).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_found_from_any_folder_of_it() {
        // Not a path from compile time: checkouts that share a target folder use the binary of each other.
        let crate_folder = std::env::current_dir().unwrap();
        let root = above(&crate_folder.join("src")).unwrap();
        assert!(root.join("crates/xtask").is_dir(), "{}", root.display());
    }

    #[test]
    fn outside_a_checkout_the_root_is_none() {
        assert_eq!(above(Path::new("/")), None);
    }
}
