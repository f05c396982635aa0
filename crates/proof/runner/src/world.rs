//! What scenarios and the cases of alerts do with the simulated world alike.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use metal3_files::documents;
use metal3_sandbox::steps::apply_text;
use metal3_sandbox::world::World;
use tokio::runtime::{Builder, Runtime};

/// Client names of the products.
pub(crate) const PRODUCTS: [&str; 3] = ["ipam", "hosts", "capm3"];

/// Runs one task at a time, in simulated time.
pub(crate) fn simulated_time() -> Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build();
    runtime.context("start the async runtime")
}

/// Applies the objects of a file, in which these variables have these values.
pub(crate) async fn apply_file(world: &World, file: &Path, with: &BTreeMap<String, String>) -> Result<()> {
    let applied = apply_text(world, &documents::text(file)?, with).await;
    applied.with_context(|| file.display().to_string())
}
