//! Where things are in the checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder that holds the workspace manifest: the nearest one above the current folder.
///
/// Asked at run time. A path taken at compile time belongs to the checkout that was built, and two checkouts that share
/// a target folder take each other's binaries for fresh.
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
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = above(&crate_folder.join("src")).unwrap();
        assert!(root.join("crates/xtask").is_dir(), "{}", root.display());
    }

    #[test]
    fn outside_a_checkout_there_is_none() {
        assert_eq!(above(Path::new("/")), None);
    }
}
