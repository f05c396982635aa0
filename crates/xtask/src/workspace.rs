//! Where things are in the checkout.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The folder that holds the workspace manifest.
pub(crate) fn root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .map(PathBuf::from)
        .context("xtask does not lie two folders below the workspace")
}
