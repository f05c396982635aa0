//! Prints the ledger of hosts: what the controller asks of an API server and of Ironic in each phase of a host's life,
//! beside the goals.
//!
//! The real controller runs on the simulated API server and Ironic under paused time, so each figure is exact and the
//! same on every machine. The host has one network card and is inspected by an agent. Events are not counted, nor are
//! the requests of the change feed, which are one for all hosts. Fractions round up: one request too many shows.
#![expect(clippy::unwrap_used, reason = "a world that cannot be built ends the program")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use metal3_ledger::{Figure, Ledger};

#[path = "../tests/life/goals.rs"]
mod goals;
#[path = "../tests/life/lab.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod lab;
#[path = "../tests/life/story.rs"]
mod story;
#[path = "../tests/life/tap.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod tap;

use goals::Goal;
use lab::{Lab, Setup};
use story::Phase;

/// The same figures for both: the price of a host does not depend on how many there are.
const FEW: u32 = 1;
const MANY: u32 = 10;

const fn goal(phase: Phase) -> Goal {
    match phase {
        Phase::Enrol => goals::ENROL,
        Phase::Provision => goals::PROVISION,
        Phase::Deprovision => goals::DEPROVISION,
        Phase::Delete => goals::DELETE,
    }
}

/// What was asked for since the last time, by what it is.
#[derive(Default)]
struct Asked {
    writes: BTreeMap<String, u64>,
    reads: BTreeMap<String, u64>,
    ironic: BTreeMap<String, u64>,
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

fn asked(lab: &Lab) -> Asked {
    let mut asked = Asked::default();
    for ((user, verb, resource), number) in lab.cluster.audit().counts() {
        let counts = match *verb {
            _ if user != lab::US => continue,
            "list" | "watch" => continue,
            "get" => &mut asked.reads,
            _ => &mut asked.writes,
        };
        *counts.entry(format!("{verb} {resource}")).or_default() += number;
    }
    for what in lab.tap.book().asked.drain(..) {
        *asked.ironic.entry(what).or_default() += 1;
    }
    lab.cluster.reset_audit();
    asked
}

/// Takes hosts through a phase, all at once, and waits until nothing is asked for any more.
async fn pass(lab: &Lab, phase: Phase, hosts: u32) -> Asked {
    asked(lab);
    for number in 1..=hosts {
        phase.begin(lab, number).await;
    }
    for number in 1..=hosts {
        phase.end(lab, number).await;
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
    asked(lab)
}

/// Writes one row down.
fn enter(ledger: &mut Ledger, phase: &str, what: &str, (measured, goal): (u64, u64), least: &str) {
    ledger.enter(Figure {
        phase: phase.to_owned(),
        what: what.to_owned(),
        measured,
        goal,
        least: least.to_owned(),
    });
}

/// Each request by name, per host.
fn detail(text: &mut String, phase: Phase, asked: &Asked, hosts: u64) -> Result<()> {
    for (kind, counts) in [("API", &asked.writes), ("API", &asked.reads), ("Ironic", &asked.ironic)] {
        for (what, number) in counts {
            let (whole, tenth) = (number / hosts, number % hosts * 10 / hosts);
            writeln!(text, "{phase:12?} {kind:7} {whole:3}.{tenth}  {what}")?;
        }
    }
    Ok(())
}

async fn life(ledger: &mut Ledger, text: &mut String, hosts: u32) -> Result<()> {
    let slots = usize::try_from(hosts)?;
    let (lab, count) = (
        Lab::new(Setup {
            slots,
            ..Setup::default()
        }),
        u64::from(hosts),
    );
    for phase in Phase::ALL {
        let asked = pass(&lab, phase, hosts).await;
        let (goal, name) = (goal(phase), format!("{phase:?}, {hosts}").to_lowercase());
        let per_host = |counts| sum(counts).div_ceil(count);
        let [writes, reads, ironic] = goal.least;
        enter(
            ledger,
            &name,
            "API writes per host",
            (per_host(&asked.writes), goal.writes),
            writes,
        );
        enter(
            ledger,
            &name,
            "API reads per host",
            (per_host(&asked.reads), goal.reads),
            reads,
        );
        enter(
            ledger,
            &name,
            "Ironic requests per host",
            (per_host(&asked.ironic), goal.ironic),
            ironic,
        );
        if hosts == FEW {
            detail(text, phase, &asked, count)?;
        }
    }
    ensure!(lab.get(1).await.is_none(), "a host is left");
    Ok(())
}

/// A day in which nobody asks for anything of a host that runs an image.
async fn idle(ledger: &mut Ledger) {
    let lab = Lab::new(Setup::default());
    pass(&lab, Phase::Enrol, 1).await;
    pass(&lab, Phase::Provision, 1).await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    let (asked, phase) = (asked(&lab), "idle day");
    enter(ledger, phase, "API writes", (sum(&asked.writes), 0), "0");
    enter(ledger, phase, "API reads", (sum(&asked.reads), 0), "0");
    enter(ledger, phase, "Ironic requests", (sum(&asked.ironic), 0), "0");
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<ExitCode> {
    let (mut ledger, mut text) = (Ledger::default(), String::new());
    for hosts in [FEW, MANY] {
        life(&mut ledger, &mut text, hosts).await?;
    }
    idle(&mut ledger).await;
    println!("{text}\n{ledger}");
    Ok(if ledger.within_goals() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
