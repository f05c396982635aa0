//! Holds the claims about Ironic against a real one: `ironic-contract --credentials endpoint.json`.
//!
//! The last line counts the claims that hold; the program fails when one does not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_conformance_ironic::{self as conformance, CLAIMS, Lab, Level, Needs, Pool, Recorder, differ};
use metal3_domain::clock::SystemClock;
use metal3_sim_ironic::{Ironic, Options};

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
    /// With them: the script that started this Ironic, to have it die and come back.
    #[arg(long, value_name = "SCRIPT", requires = "machines")]
    script: Option<PathBuf>,
    /// Instead take the answers that the client's tests are given, one file each, into this folder.
    #[arg(long, value_name = "FOLDER", requires_all = ["older", "nginx"])]
    record: Option<PathBuf>,
    /// The file of an Ironic that is too old for the client.
    #[arg(long, value_name = "ENDPOINT")]
    older: Option<PathBuf>,
    /// A proxy's program.
    #[arg(long, value_name = "PROGRAM")]
    nginx: Option<PathBuf>,
    /// Operations of each seed.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    operations: u32,
}

async fn open(credentials: &Path) -> anyhow::Result<Lab> {
    let opened = Lab::open(credentials).await;
    opened.with_context(|| format!("cannot use {}; start the real Ironic first", credentials.display()))
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
        script,
        record,
        older,
        nginx,
        operations,
    } = Arguments::parse();
    let lab = open(&credentials).await?;
    if let Some(file) = machines {
        let pool = Pool::open(&file).with_context(|| format!("cannot use {}", file.display()))?;
        let lab = lab.with(pool);
        return hold_of_machines(script.into_iter().fold(lab, Lab::started_by)).await;
    }
    let lab = &lab;
    if let (Some(folder), Some(older), Some(nginx)) = (&record, &older, &nginx) {
        let older = &open(older).await?;
        let recorder = Recorder {
            lab,
            older,
            nginx,
            folder,
        };
        return recorder.record().await;
    }
    if let Some(nodes) = measure_feed {
        return conformance::measure(lab, nodes, database.as_deref()).await;
    }
    if !seeds.is_empty() {
        return differ(lab, &seeds, operations).await;
    }
    let claims = CLAIMS
        .iter()
        .filter(|claim| claim.level == Level::L1 && claim.needs != Needs::Peace);
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

/// Holds what only machines show, side by side, and then one by one what takes the whole Ironic.
async fn hold_of_machines(lab: Lab) -> anyhow::Result<()> {
    let is_quiet = |claim: &&conformance::Claim| claim.needs != Needs::Peace;
    let of_machines = CLAIMS.iter().filter(|claim| claim.level > Level::L1);
    let (held, mut failed) = conformance::hold_at_once(&lab, of_machines.filter(is_quiet)).await;
    let (more, other) = conformance::hold(&lab, CLAIMS.iter().filter(|claim| !is_quiet(claim))).await;
    failed.extend(other);
    sum(held.saturating_add(more), &failed)
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
