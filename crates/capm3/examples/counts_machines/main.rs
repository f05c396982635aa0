//! Prints the ledger of a machine's life with all three products at work: what they ask of an API server and of Ironic
//! together, beside the goals.
//!
//! The real controllers run on the simulated API server and Ironic under paused time, so each figure is exact and the
//! same on every machine. A machine has metadata and network data with an address of one pool; its host has one network
//! card and is inspected by an agent. Events are not counted, nor is the change feed of Ironic, which is one for all
//! hosts. Fractions round up: one request too many shows. Other numbers of machines than the usual ones are given as
//! arguments.

mod nodes;
mod programs;
mod site;
mod tap;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use metal3_ledger::{Figure, Ledger};
use serde_json::json;

use site::{Asked, Site, What};

/// The same figures for all: the price of a machine does not depend on how many there are.
const SIZES: [u32; 2] = [1, 3];

/// What is counted.
const NAMES: [&str; 3] = ["API writes", "API reads", "Ironic requests"];

/// What a phase may cost at most, per machine: writes, reads, requests to Ironic.
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
/// What is accepted; `docs/counts.md` names each request above the aim.
const PROVISION: Goal = Goal {
    name: "provision",
    most: [27, 10, 6],
    least: ["17, aim 22", "3, aim 3", "4, aim 6"],
};
const LIFE: Goal = Goal {
    name: "life",
    most: [65, 20, 20],
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
fn enter(ledger: &mut Ledger, goal: &Goal, asked: &[u64; 3], machines: u64) {
    let phase = format!("{}, {machines}", goal.name);
    for (((what, measured), most), least) in NAMES.iter().zip(asked).zip(goal.most).zip(goal.least) {
        let each = measured.div_ceil(machines);
        row(ledger, &phase, &format!("{what} per machine"), (each, most), least);
    }
}

/// Each request by name, per machine.
fn detail(phase: &str, asked: &Asked, machines: u64) {
    for (kind, counts) in [
        ("write", &asked.writes),
        ("read", &asked.reads),
        ("Ironic", &asked.ironic),
    ] {
        for (what, number) in counts {
            let (whole, tenth) = (number / machines, number % machines * 10 / machines);
            println!("{phase:12} {kind:7} {whole:3}.{tenth}  {what}");
        }
    }
}

fn all(asked: &Asked) -> [u64; 3] {
    [sum(&asked.writes), sum(&asked.reads), sum(&asked.ironic)]
}

/// What is asked for while machines are enrolled, provisioned, idle, released, and their hosts go.
async fn phases(site: &Site, machines: u32) -> Result<[Asked; 5]> {
    let count = usize::try_from(machines)?;
    site.asked();
    for number in 1..=machines {
        site.enrol(number).await?;
    }
    site.until(What::Hosts, "/status/provisioning/state", &json!("available"), count)
        .await?;
    let enrolled = site.asked();
    for number in 1..=machines {
        site.machine(number).await?;
    }
    site.until(What::Hosts, "/status/provisioning/state", &json!("provisioned"), count)
        .await?;
    site.join_nodes().await?;
    site.until(
        What::Machines,
        "/status/initialization/provisioned",
        &json!(true),
        count,
    )
    .await?;
    let provisioned = site.asked();
    tokio::time::sleep(Duration::from_hours(24)).await;
    let idle = site.asked();
    for number in 1..=machines {
        site.delete_machine(number).await?;
    }
    site.until_left(What::Machines, 0).await?;
    let released = site.asked();
    for number in 1..=machines {
        site.delete_host(number).await?;
    }
    site.until_left(What::Hosts, 0).await?;
    Ok([enrolled, provisioned, idle, released, site.asked()])
}

/// Machines on hosts, from enrolment to the end. Gives what it cost in all.
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
    let whole = phases.iter().fold([0_u64; 3], |sum, asked| {
        let [writes, reads, ironic] = all(asked);
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
        phases.iter().map(|asked| asked.host_lists).sum(),
    );
    row(ledger, &phase, "lists of hosts after the start", (lists, 0), "0");
    if in_detail {
        for (phase, asked) in ["enrol", "provision", "idle", "release", "delete"].iter().zip(&phases) {
            detail(phase, asked, several);
        }
    }
    Ok(whole)
}

/// The numbers of machines that are asked for, from the smallest.
fn sizes() -> Result<Vec<u32>> {
    let asked: Result<Vec<u32>, _> = std::env::args().skip(1).map(|size| size.parse()).collect();
    let mut sizes = asked?;
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
