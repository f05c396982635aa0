//! Holds the claims about Ironic against a real one: `ironic-contract --credentials endpoint.json`.
//!
//! The last line counts the claims that hold; the program fails when one does not.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_ironicsim::conformance::{self, CLAIMS, Lab};

#[derive(Parser)]
struct Arguments {
    /// The file that starting the real Ironic wrote: url, ca, username, password.
    #[arg(long)]
    credentials: PathBuf,
    /// Measure the feed with so many nodes instead, a tenth of them busy. They stay: use an Ironic of its own.
    #[arg(long, value_name = "NODES")]
    measure_feed: Option<u32>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another crypto provider is installed already");
    }
    let Arguments {
        credentials,
        measure_feed,
    } = Arguments::parse();
    let lab = &Lab::open(&credentials)
        .await
        .with_context(|| format!("cannot use {}; start the real Ironic first", credentials.display()))?;
    if let Some(nodes) = measure_feed {
        return conformance::measure(lab, nodes).await;
    }
    let (held, failed) = conformance::hold(lab, CLAIMS).await;
    for words in &failed {
        println!("FAILS: {words}");
    }
    if !failed.is_empty() {
        bail!("{held} claims hold, {} do not", failed.len());
    }
    println!("{held} claims hold");
    Ok(())
}
