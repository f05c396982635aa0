//! Prints the ledger of hosts: the requests of the controller to the API server and to Ironic in each phase of a life
//! cycle, with their goals.
//!
//! The real controller runs on the simulated servers in paused time, so the counts are exact and reproducible. The host
//! has one network card and is inspected by an agent; lives with other images, another inspection and objects of users are rows of
//! their own. Events are not counted, nor are the requests of the change feed,
//! which are shared by all hosts. Fractions are rounded up.
#![expect(clippy::unwrap_used, reason = "a broken environment ends the program")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use metal3_ledger::{Figure, Ledger};

#[path = "../tests/life/env.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod env;
#[path = "counts_hosts/features.rs"]
mod features;
#[path = "../tests/life/goals.rs"]
mod goals;
#[path = "../tests/life/interceptor.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod interceptor;
#[path = "../tests/life/phases.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod phases;
#[path = "../tests/life/program.rs"]
mod program;
#[path = "../tests/life/waits.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod waits;

use env::{Setup, TestEnv};
use goals::Goal;
use phases::Phase;

/// The same counts for both: the cost of a host does not depend on the number of hosts.
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

#[derive(Default, PartialEq, Debug)]
struct Requests {
    writes: BTreeMap<String, u64>,
    reads: BTreeMap<String, u64>,
    ironic: BTreeMap<String, u64>,
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

fn requests_since_last(env: &TestEnv) -> Requests {
    let mut requests = Requests::default();
    for ((user, verb, resource), number) in env.cluster.audit().counts() {
        let counts = match *verb {
            _ if user != env::CONTROLLER_USER => continue,
            "list" | "watch" => continue,
            "get" => &mut requests.reads,
            _ => &mut requests.writes,
        };
        *counts.entry(format!("{verb} {resource}")).or_default() += number;
    }
    for what in env.interceptor.log().asked.drain(..) {
        *requests.ironic.entry(what).or_default() += 1;
    }
    env.cluster.reset_audit();
    requests
}

/// Takes hosts through a phase, all at once, and waits until there are no more requests.
async fn run_phase(env: &TestEnv, phase: Phase, hosts: u32) -> Requests {
    requests_since_last(env);
    for number in 1..=hosts {
        phase.begin(env, number).await;
    }
    for number in 1..=hosts {
        phase.end(env, number).await;
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
    requests_since_last(env)
}

fn record_host(ledger: &mut Ledger, name: &str, requests: &Requests, (goal, hosts): (&Goal, u64)) {
    let [writes, reads, ironic] = goal.least;
    for (what, counts, goal, least) in [
        ("API writes per host", &requests.writes, goal.writes, writes),
        ("API reads per host", &requests.reads, goal.reads, reads),
        ("Ironic requests per host", &requests.ironic, goal.ironic, ironic),
    ] {
        record(ledger, name, what, (sum(counts).div_ceil(hosts), goal), least);
    }
}

fn record(ledger: &mut Ledger, phase: &str, what: &str, (measured, goal): (u64, u64), least: &str) {
    ledger.add(Figure {
        phase: phase.to_owned(),
        what: what.to_owned(),
        measured,
        goal,
        least: least.to_owned(),
    });
}

fn detail(text: &mut String, phase: &str, requests: &Requests, hosts: u64) -> Result<()> {
    for (kind, counts) in [
        ("API", &requests.writes),
        ("API", &requests.reads),
        ("Ironic", &requests.ironic),
    ] {
        for (what, number) in counts {
            let (whole, tenth) = (number / hosts, number % hosts * 10 / hosts);
            writeln!(text, "{phase:12} {kind:7} {whole:3}.{tenth}  {what}")?;
        }
    }
    Ok(())
}

async fn run_lifecycle(ledger: &mut Ledger, text: &mut String, hosts: u32) -> Result<()> {
    let slots = usize::try_from(hosts)?;
    let (env, count) = (
        TestEnv::new(Setup {
            slots,
            ..Setup::default()
        }),
        u64::from(hosts),
    );
    for phase in Phase::ALL {
        let requests = run_phase(&env, phase, hosts).await;
        let (goal, name) = (goal(phase), format!("{phase:?}, {hosts}").to_lowercase());
        record_host(ledger, &name, &requests, (&goal, count));
        if hosts == FEW {
            detail(text, &format!("{phase:?}"), &requests, count)?;
        }
    }
    ensure!(env.get(1).await.is_none(), "a host is not deleted");
    Ok(())
}

/// A day without changes for a host that runs an image.
async fn idle(ledger: &mut Ledger) {
    let env = TestEnv::new(Setup::default());
    run_phase(&env, Phase::Enrol, 1).await;
    run_phase(&env, Phase::Provision, 1).await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    let (requests, phase) = (requests_since_last(&env), "idle day");
    record(ledger, phase, "API writes", (sum(&requests.writes), 0), "0");
    record(ledger, phase, "API reads", (sum(&requests.reads), 0), "0");
    record(ledger, phase, "Ironic requests", (sum(&requests.ironic), 0), "0");
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<ExitCode> {
    let (mut ledger, mut text) = (Ledger::default(), String::new());
    for hosts in [FEW, MANY] {
        run_lifecycle(&mut ledger, &mut text, hosts).await?;
    }
    idle(&mut ledger).await;
    features::run(&mut ledger, &mut text).await?;
    println!("{text}\n{ledger}");
    Ok(if ledger.within_goals() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
