//! Holds the claims about Ironic against a real one: `ironic-contract --credentials endpoint.json`.
//!
//! The last line counts the claims that hold; the program fails when one does not.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_domain::clock::SystemClock;
use metal3_ironicsim::conformance::{self, CLAIMS, Lab, Level, Pool, differ};
use metal3_ironicsim::{Ironic, Options};

#[derive(Parser)]
struct Arguments {
    /// The file that starting the real Ironic wrote: url, ca, username, password.
    #[arg(long)]
    credentials: PathBuf,
    /// Measure the feed with so many nodes instead, a hundred of them busy. They stay: use an Ironic of its own.
    #[arg(long, value_name = "NODES")]
    measure_feed: Option<u32>,
    /// Its SQLite database, to have the nodes copied there in place of being created.
    #[arg(long, value_name = "FILE", requires = "measure_feed")]
    database: Option<PathBuf>,
    /// Instead compare with the simulated Ironic on random operations drawn from this seed. May be repeated.
    #[arg(long, value_name = "SEED")]
    differ: Vec<u64>,
    /// Instead hold the claims that take machines, on those of the running labhosts that wrote this file.
    #[arg(long, value_name = "ENDPOINT")]
    machines: Option<PathBuf>,
    /// Operations of each seed.
    #[arg(long, default_value_t = 300)]
    operations: u32,
}

/// Runs the same operations on the real Ironic and on one that is simulated here.
async fn differ(lab: &Lab, seeds: &[u64], operations: u32) -> anyhow::Result<()> {
    let mut differing = 0_usize;
    for seed in seeds {
        let clock = Arc::new(SystemClock::start());
        let simulated = Lab::within(Ironic::start(Options::new(*seed, clock.clone())), clock)?;
        let found = differ::compare(&simulated, lab, *seed, operations).await?;
        for words in &found {
            println!("DIFFERS (simulated and real): {words}");
        }
        println!("seed {seed}: {operations} operations, {} differences", found.len());
        differing = differing.saturating_add(found.len());
    }
    if differing > 0 {
        bail!("{differing} differences");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another crypto provider is installed already");
    }
    let Arguments {
        credentials,
        measure_feed,
        database,
        differ: seeds,
        machines,
        operations,
    } = Arguments::parse();
    let lab = Lab::open(&credentials)
        .await
        .with_context(|| format!("cannot use {}; start the real Ironic first", credentials.display()))?;
    if let Some(file) = machines {
        let pool = Pool::open(&file).with_context(|| format!("cannot use {}", file.display()))?;
        return hold_of_machines(lab.with(pool)).await;
    }
    let lab = &lab;
    if let Some(nodes) = measure_feed {
        return conformance::measure(lab, nodes, database.as_deref()).await;
    }
    if !seeds.is_empty() {
        return differ(lab, &seeds, operations).await;
    }
    let claims = CLAIMS.iter().filter(|claim| claim.level == Level::L1);
    let (mut held, mut failed) = conformance::hold(lab, claims).await;
    let python = lab
        .python()
        .context("the file does not say in which Python this Ironic runs")?;
    match conformance::table::compare(python).await {
        Ok(rows) => {
            println!("{rows} transitions, as in Ironic's own table");
            held = held.saturating_add(1);
        }
        Err(error) => failed.push(format!("the table of transitions is Ironic's own: {error:#}")),
    }
    sum(held, &failed)
}

/// Holds what only machines show.
async fn hold_of_machines(lab: Lab) -> anyhow::Result<()> {
    let claims = CLAIMS.iter().filter(|claim| claim.level > Level::L1);
    let (held, failed) = conformance::hold_at_once(&lab, claims).await;
    sum(held, &failed)
}

fn sum(held: usize, failed: &[String]) -> anyhow::Result<()> {
    for words in failed {
        println!("FAILS: {words}");
    }
    if !failed.is_empty() {
        bail!("{held} claims hold, {} do not", failed.len());
    }
    println!("{held} claims hold");
    Ok(())
}
