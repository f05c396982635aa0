//! One run: starts the machines, runs the life cycles, prints the table, stops the machines.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, bail};
use metal3_sim_bmc::{
    identity::Number,
    profile::{self, Profile},
};
use tokio::time::Instant;

use crate::{
    Arguments, Machines, Session, faults,
    ironic::{Endpoint, Ironic},
    level::{Bmc, Level},
    life::{self, NAME, TestEnv},
    poller::NodePoller,
    processes::{HEARTBEAT_MS, Lab, Sushy, sushy_machines},
    times::Times,
    usage::Usage,
};

/// The machines behind the nodes.
enum Backend {
    Fake,
    Sushy(Sushy),
    Lab(Lab),
}

impl Backend {
    async fn start(arguments: &Arguments, level: Level, session: &Session, profile: &Profile) -> anyhow::Result<Self> {
        let port = arguments.place.port;
        Ok(match (level, arguments.bmc) {
            (Level::Fake, _) => Self::Fake,
            (Level::Redfish, Machines::Sushy) => {
                let machines = sushy_machines(profile, arguments.nodes);
                let python = Path::new(&session.ironic.endpoint().python);
                Self::Sushy(Sushy::start(python, &session.home, port, &machines).await?)
            }
            (Level::Redfish, Machines::Labhosts) | (Level::Agent, _) => {
                let machines = format!("{}={}", arguments.profile, arguments.nodes);
                // The number of heartbeats per minute does not grow with the number of agents.
                let heartbeat_ms = HEARTBEAT_MS.saturating_mul(u64::from(arguments.nodes.div_ceil(20)));
                Self::Lab(session.start_lab(machines, port, heartbeat_ms).await?)
            }
        })
    }

    const fn lab(&self) -> Option<&Lab> {
        match self {
            Self::Lab(lab) => Some(lab),
            Self::Fake | Self::Sushy(_) => None,
        }
    }

    fn bmcs(&self, nodes: u16) -> BTreeMap<Number, Bmc> {
        match self {
            Self::Fake => BTreeMap::new(),
            Self::Sushy(sushy) => (1..=nodes)
                .map(Number)
                .map(|number| (number, sushy.bmc(number)))
                .collect(),
            Self::Lab(lab) => {
                let places = lab.endpoint.machines.iter();
                places
                    .map(|place| (place.number, Bmc::of_lab(&lab.endpoint, place)))
                    .collect()
            }
        }
    }

    async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Fake => Ok(()),
            Self::Sushy(sushy) => sushy.stop().await,
            Self::Lab(lab) => lab.stop().await,
        }
    }
}

/// A profile by name.
///
/// # Errors
/// When there is no such profile.
pub fn built_in_profile(name: &str) -> anyhow::Result<Profile> {
    let mut profiles = profile::parse(profile::BUILT_IN)?;
    let known: Vec<_> = profiles.keys().cloned().collect();
    profiles
        .remove(name)
        .with_context(|| format!("--profile {name}: choose one of {}", known.join(", ")))
}

/// Runs all life cycles and prints the results.
///
/// # Errors
/// When a process does not start or a life cycle fails; the nodes of failed life cycles stay in Ironic.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let level = Level::parse(arguments.level)?;
    let profile = built_in_profile(&arguments.profile)?;
    let session = arguments.place.open(NAME).await?;
    let backend = Backend::start(arguments, level, &session, &profile).await?;
    let started = Instant::now();
    let outcome = run_all(arguments, level, &session, &profile, &backend).await;
    let usage = usage(&session.ironic, &backend, arguments.nodes);
    backend.stop().await?;
    let (times, failures) = outcome?;
    let nodes = usize::from(arguments.nodes);
    let Endpoint { entry, database, .. } = session.ironic.endpoint();
    println!("{}", times.table());
    println!(
        "level {}, {}/{nodes} life cycles in {:.1} s, {} requests; entry point {entry}, {database}; {usage}",
        level.number(),
        nodes - failures.len(),
        started.elapsed().as_secs_f64(),
        session.ironic.requests(),
    );
    if failures.is_empty() {
        return Ok(());
    }
    for failure in &failures {
        eprintln!("{failure:#}");
    }
    bail!("{} of {nodes} life cycles failed", failures.len())
}

async fn run_all(
    arguments: &Arguments,
    level: Level,
    session: &Session,
    profile: &Profile,
    backend: &Backend,
) -> anyhow::Result<(Times, Vec<anyhow::Error>)> {
    let bmcs = backend.bmcs(arguments.nodes);
    let poller = NodePoller::new(&session.ironic, arguments.nodes);
    let env = TestEnv {
        level,
        session,
        profile,
        lab: backend.lab(),
        poller: &poller,
    };
    let cycles = (1..=arguments.nodes)
        .map(Number)
        .map(|number| life::run(&env, number, bmcs.get(&number)));
    let mut times = Times::default();
    let mut failures = Vec::new();
    for outcome in futures::future::join_all(cycles).await {
        match outcome {
            Ok(spent) => times.extend(spent),
            Err(error) => failures.push(error),
        }
    }
    Ok((times, failures))
}

/// Injects the faults of the table and writes the page.
///
/// # Errors
/// When a process does not start or a case does not finish.
pub(crate) async fn tabulate_faults(arguments: &Arguments, page: &Path) -> anyhow::Result<()> {
    let session = arguments.place.open(NAME).await?;
    let machines = format!("small={}", faults::machines());
    let lab = session.start_lab(machines, arguments.place.port, HEARTBEAT_MS).await?;
    let outcome = faults::tabulate(&session, &lab, page).await;
    lab.stop().await?;
    outcome
}

/// The resources of Ironic and of the machines.
fn usage(ironic: &Ironic, backend: &Backend, nodes: u16) -> String {
    let Usage { mib, cpu_seconds } = Usage::of(ironic.endpoint().pid);
    let of_ironic = format!("Ironic {mib} MiB and {cpu_seconds} s of processor since its start");
    let Backend::Lab(lab) = backend else {
        return of_ironic;
    };
    let Usage { mib, cpu_seconds } = lab.usage();
    let each = mib.saturating_mul(1024) / u64::from(nodes.max(1));
    format!("{of_ironic}, machines {mib} MiB ({each} KiB each) and {cpu_seconds} s")
}
