//! Prints the ledger of a machine's life cycle with all three products: their requests to the API server and to Ironic,
//! with the goals.
//!
//! The real controllers run on the simulated API server and Ironic under paused time, so each number is exact and
//! reproducible. A machine has metadata and network data with an address of one pool; its host has one network
//! interface and is inspected by an agent. A remediation powers the host of another machine off and on. Events are not counted, nor is the change feed of Ironic, which serves all
//! hosts. Fractions are rounded up, so that one additional request is visible. The numbers of machines can be given as
//! arguments.

mod counting;
#[path = "../../src/data/reconciler/tests/lab.rs"]
#[expect(dead_code, reason = "the tests of data use the rest")]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken environment ends the program"
)]
mod lab;
mod nodes;
mod programs;
mod remediation;
mod site;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use metal3_ledger::{Figure, Ledger};
use serde_json::json;

use site::{Awaited, Requests, Site};

/// The goals are the same for all sizes.
const SIZES: [u32; 2] = [1, 3];

/// The counted requests.
const NAMES: [&str; 3] = ["API writes", "API reads", "Ironic requests"];

/// The goals of a phase, per machine: writes, reads, requests to Ironic.
struct Goal {
    name: &'static str,
    most: [u64; 3],
    least: [&'static str; 3],
}

const ENROL: Goal = Goal {
    name: "enrol",
    most: [16, 1, 11],
    least: ["5", "1", "8"],
};
/// The accepted counts; `docs/counts.md` explains each request above the ideal.
const PROVISION: Goal = Goal {
    name: "provision",
    most: [27, 10, 6],
    least: ["17, aim 22", "3, aim 3", "4, aim 6"],
};
const LIFE: Goal = Goal {
    name: "life",
    most: [63, 18, 20],
    least: ["36, aim 59", "4, aim 4", "16, aim 20"],
};

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

fn row(ledger: &mut Ledger, phase: &str, what: &str, (measured, goal): (u64, u64), least: &str) {
    ledger.add(Figure {
        phase: phase.to_owned(),
        what: what.to_owned(),
        measured,
        goal,
        least: least.to_owned(),
    });
}

/// The rows of a phase.
fn enter(ledger: &mut Ledger, goal: &Goal, requests: &[u64; 3], machines: u64) {
    let phase = format!("{}, {machines}", goal.name);
    for (((what, measured), most), least) in NAMES.iter().zip(requests).zip(goal.most).zip(goal.least) {
        let each = measured.div_ceil(machines);
        row(ledger, &phase, &format!("{what} per machine"), (each, most), least);
    }
}

/// Each request by name, per machine.
fn detail(phase: &str, requests: &Requests, machines: u64) {
    for (kind, counts) in [
        ("write", &requests.writes),
        ("read", &requests.reads),
        ("Ironic", &requests.ironic),
        ("Nodes", &requests.workload),
    ] {
        for (what, number) in counts {
            let (whole, tenth) = (number / machines, number % machines * 10 / machines);
            println!("{phase:12} {kind:7} {whole:3}.{tenth}  {what}");
        }
    }
}

fn all(requests: &Requests) -> [u64; 3] {
    [sum(&requests.writes), sum(&requests.reads), sum(&requests.ironic)]
}

async fn enrol(site: &Site, machines: u32) -> Result<()> {
    for number in 1..=machines {
        site.enrol(number).await?;
    }
    let count = usize::try_from(machines)?;
    site.until(Awaited::Hosts, "/status/provisioning/state", &json!("available"), count)
        .await
}

async fn provision(site: &Site, machines: u32) -> Result<()> {
    for number in 1..=machines {
        site.machine(number).await;
    }
    let (count, state) = (usize::try_from(machines)?, "/status/provisioning/state");
    site.until(Awaited::Hosts, state, &json!("provisioned"), count).await?;
    site.join_nodes().await;
    let is_provisioned = "/status/initialization/provisioned";
    site.until(Awaited::Machines, is_provisioned, &json!(true), count).await
}

/// The requests while machines are enrolled, provisioned, idle, released, and their hosts deleted.
async fn phases(site: &Site, machines: u32) -> Result<[Requests; 5]> {
    site.requests();
    enrol(site, machines).await?;
    let enrolled = site.requests();
    provision(site, machines).await?;
    let provisioned = site.requests();
    tokio::time::sleep(Duration::from_hours(24)).await;
    let idle = site.requests();
    for number in 1..=machines {
        site.delete_machine(number).await;
    }
    site.until_left(Awaited::Machines, 0).await?;
    let released = site.requests();
    for number in 1..=machines {
        site.delete_host(number).await;
    }
    site.until_left(Awaited::Hosts, 0).await?;
    Ok([enrolled, provisioned, idle, released, site.requests()])
}

/// Runs machines from enrolment to deletion, and returns the total.
async fn life(ledger: &mut Ledger, machines: u32, in_detail: bool) -> Result<[u64; 3]> {
    let several = u64::from(machines);
    let phases = phases(&Site::new().await?, machines).await?;
    let [enrolled, provisioned, idle, _, _] = &phases;
    enter(ledger, &ENROL, &all(enrolled), several);
    enter(ledger, &PROVISION, &all(provisioned), several);
    let phase = format!("idle day, {machines}");
    for (what, measured) in NAMES.iter().zip(all(idle)) {
        row(ledger, &phase, what, (measured, 0), "0");
    }
    let whole = phases.iter().fold([0_u64; 3], |sum, requests| {
        let [writes, reads, ironic] = all(requests);
        let [w, r, i] = sum;
        [
            w.saturating_add(writes),
            r.saturating_add(reads),
            i.saturating_add(ironic),
        ]
    });
    enter(ledger, &LIFE, &whole, several);
    let (phase, lists) = (
        format!("life, {machines}"),
        phases.iter().map(|requests| requests.host_lists).sum(),
    );
    row(ledger, &phase, "lists of hosts after the start", (lists, 0), "0");
    if in_detail {
        for (phase, requests) in ["enrol", "provision", "idle", "release", "delete"].iter().zip(&phases) {
            detail(phase, requests, several);
        }
    }
    Ok(whole)
}

/// A machine in a zone that gives it its data costs what another one costs.
async fn zone(ledger: &mut Ledger, machines: u32, life: [u64; 3]) -> Result<()> {
    let phases = phases(&Site::with_zone(Some("rack")).await?, machines).await?;
    let phase = format!("life in a zone, {machines}");
    for (at, (what, most)) in NAMES.iter().zip(life).enumerate() {
        let measured = phases
            .iter()
            .filter_map(|requests| all(requests).get(at).copied())
            .sum();
        row(ledger, &phase, what, (measured, most), "the same");
    }
    Ok(())
}

/// The requested numbers of machines, in ascending order.
fn sizes() -> Result<Vec<u32>> {
    let requests: Result<Vec<u32>, _> = std::env::args().skip(1).map(|size| size.parse()).collect();
    let mut sizes = requests?;
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    sizes.sort_unstable();
    ensure!(sizes.first().is_some_and(|size| *size > 0), "at least one machine");
    Ok(sizes)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<ExitCode> {
    let mut ledger = Ledger::default();
    let mut smallest: Option<(u64, [u64; 3])> = None;
    for machines in sizes()? {
        let (whole, several) = (
            life(&mut ledger, machines, smallest.is_none()).await?,
            u64::from(machines),
        );
        if smallest.is_none() {
            zone(&mut ledger, machines, whole).await?;
        }
        remediation::rows(&mut ledger, machines, several == 1).await?;
        let (few, least) = *smallest.get_or_insert((several, whole));
        for (what, (now, then)) in NAMES.iter().zip(whole.into_iter().zip(least)) {
            let (each, goal) = (now.div_ceil(several), then.div_ceil(few));
            let phase = format!("growth, {few} to {machines}");
            row(
                &mut ledger,
                &phase,
                &format!("{what} per machine"),
                (each, goal),
                "the same",
            );
        }
    }
    println!("{ledger}");
    Ok(if ledger.within_goals() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
