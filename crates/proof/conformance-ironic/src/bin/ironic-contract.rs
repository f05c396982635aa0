//! Checks the claims about Ironic on a real one: `ironic-contract --credentials endpoint.json`.
//!
//! The last line has the number of claims that hold; the program fails when a claim does not hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Parser;
use metal3_conformance_ironic::{self as conformance, CLAIMS, Lab, Level, Needs, Pool, Recorder, differ};
use metal3_domain::clock::SystemClock;
use metal3_sim_ironic::{Ironic, Options};

#[derive(Parser)]
struct Arguments {
    /// The endpoint file of the real Ironic: url, ca, username, password.
    #[arg(long)]
    credentials: PathBuf,
    /// Instead measure the feed with this number of nodes, a hundred of them busy. The nodes are not removed, so use a
    /// separate Ironic.
    #[arg(long, value_name = "NODES")]
    measure_feed: Option<u32>,
    /// Its SQLite database: copy the nodes there instead of creating them.
    #[arg(long, value_name = "FILE", requires = "measure_feed")]
    database: Option<PathBuf>,
    /// Instead compare with the simulated Ironic on random operations of this seed. May be repeated.
    #[arg(long, value_name = "SEED")]
    differ: Vec<u64>,
    /// Instead check the claims that need machines, with the labhosts of this endpoint file.
    #[arg(long, value_name = "ENDPOINT")]
    machines: Option<PathBuf>,
    /// The script that started this Ironic, for restarts.
    #[arg(long, value_name = "SCRIPT", requires = "machines")]
    script: Option<PathBuf>,
    /// Instead record responses for the client's tests into this directory.
    #[arg(long, value_name = "FOLDER", requires_all = ["older", "nginx"])]
    record: Option<PathBuf>,
    /// The endpoint file of an Ironic that is too old for the client.
    #[arg(long, value_name = "ENDPOINT")]
    older: Option<PathBuf>,
    /// The nginx program.
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

/// Runs the same operations on the real and on a simulated Ironic.
async fn differ(lab: &Lab, seeds: &[u64], operations: u32) -> anyhow::Result<()> {
    let mut differing = 0_usize;
    for seed in seeds {
        let clock = Arc::new(SystemClock::start());
        let simulated = Lab::in_process(Ironic::start(Options::new(*seed, clock.clone())), clock)?;
        let found = differ::compare(&simulated, lab, *seed, operations).await?;
        for difference in &found {
            println!("DIFFERS (simulated and real): {difference}");
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
        return check_on_machines(script.into_iter().fold(lab, Lab::started_by)).await;
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
        .filter(|claim| claim.level == Level::L1 && claim.needs != Needs::Exclusive);
    let (mut held, mut failed) = conformance::check(lab, claims).await;
    let python = lab
        .python()
        .context("the endpoint file has no path of Ironic's Python")?;
    match conformance::table::compare(python).await {
        Ok(rows) => {
            println!("{rows} transitions, as in Ironic's own table");
            held = held.saturating_add(1);
        }
        Err(error) => failed.push(format!("the table of transitions equals Ironic's own: {error:#}")),
    }
    report(held, &failed)
}

/// Checks the claims with machines concurrently, then those with exclusive use in sequence.
async fn check_on_machines(lab: Lab) -> anyhow::Result<()> {
    let is_shared = |claim: &&conformance::Claim| claim.needs != Needs::Exclusive;
    let with_machines = CLAIMS.iter().filter(|claim| claim.level > Level::L1);
    let (held, mut failed) = conformance::check_concurrently(&lab, with_machines.filter(is_shared)).await;
    let (more, other) = conformance::check(&lab, CLAIMS.iter().filter(|claim| !is_shared(claim))).await;
    failed.extend(other);
    report(held.saturating_add(more), &failed)
}

fn report(held: usize, failed: &[String]) -> anyhow::Result<()> {
    for error in failed {
        println!("FAILS: {error}");
    }
    if !failed.is_empty() {
        bail!("{held} claims hold, {} do not", failed.len());
    }
    println!("{held} claims hold");
    Ok(())
}
