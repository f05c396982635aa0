//! One run: machines up, lives lived, a table printed, machines down.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, bail};
use metal3_sim_bmc::{
    identity::Number,
    profile::{self, Profile},
};
use tokio::time::Instant;

use crate::{
    Arguments, Machines, faults,
    ironic::{Endpoint, Ironic},
    level::{Bmc, Level},
    life::{World, live, sweep},
    looks::Looks,
    order::{Image, images},
    processes::{BEAT, Lab, Sushy, Usage, Wish, sushy_machines},
    times::Times,
};

/// What stands behind the nodes.
enum Behind {
    Nothing,
    Sushy(Sushy),
    Lab(Lab),
}

impl Behind {
    async fn start(arguments: &Arguments, level: Level, ironic: &Endpoint, profile: &Profile) -> anyhow::Result<Self> {
        let home = arguments.place.home();
        Ok(match (level, arguments.bmc) {
            (Level::Fake, _) => Self::Nothing,
            (Level::Redfish, Machines::Sushy) => {
                let machines = sushy_machines(profile, arguments.nodes);
                Self::Sushy(Sushy::start(Path::new(&ironic.python), &home, arguments.place.port, &machines).await?)
            }
            (Level::Redfish, Machines::Labhosts) | (Level::Agent, _) => {
                let machines = vec![format!("{}={}", arguments.profile, arguments.nodes)];
                let wish = Wish {
                    machines,
                    port: arguments.place.port,
                    // As many heartbeats a minute in all, however many agents there are.
                    beat: BEAT.saturating_mul(u64::from(arguments.nodes.div_ceil(20))),
                };
                Self::Lab(Lab::start(Path::new(&ironic.ca), &home, &wish).await?)
            }
        })
    }

    const fn lab(&self) -> Option<&Lab> {
        match self {
            Self::Lab(lab) => Some(lab),
            Self::Nothing | Self::Sushy(_) => None,
        }
    }

    fn bmcs(&self, nodes: u16) -> BTreeMap<Number, Bmc> {
        match self {
            Self::Nothing => BTreeMap::new(),
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
            Self::Nothing => Ok(()),
            Self::Sushy(sushy) => sushy.stop().await,
            Self::Lab(lab) => lab.stop().await,
        }
    }
}

/// A profile by name.
///
/// # Errors
/// When there is none of that name.
pub fn built_in_profile(name: &str) -> anyhow::Result<Profile> {
    let mut profiles = profile::parse(profile::BUILT_IN)?;
    let known: Vec<_> = profiles.keys().cloned().collect();
    profiles
        .remove(name)
        .with_context(|| format!("--profile {name}: choose one of {}", known.join(", ")))
}

/// Lives all lives of a run and prints what came of them.
///
/// # Errors
/// When a part does not start or any life fails; the nodes that failed stay in Ironic.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let level = Level::parse(arguments.level)?;
    let profile = built_in_profile(&arguments.profile)?;
    let endpoint = Endpoint::read(&arguments.place.home().join("endpoint.json"))?;
    let _alone = arguments.place.alone()?;
    let images = images(Path::new(&endpoint.files_root), &endpoint.files_url)?;
    let ironic = Ironic::new(endpoint)?;
    sweep(&ironic)
        .await
        .context("cannot remove the nodes of an earlier run")?;
    let behind = Behind::start(arguments, level, ironic.endpoint(), &profile).await?;
    let begun = Instant::now();
    let outcome = live_all(arguments, level, &ironic, &profile, &images, &behind).await;
    let used = used(&ironic, &behind, arguments.nodes);
    behind.stop().await?;
    let (times, failures) = outcome?;
    let nodes = usize::from(arguments.nodes);
    let Endpoint { entry, database, .. } = ironic.endpoint();
    println!("{}", times.table());
    println!(
        "level {}, {}/{nodes} whole lives in {:.1} s, {} requests; entry point {entry}, {database}; {used}",
        level.number(),
        nodes - failures.len(),
        begun.elapsed().as_secs_f64(),
        ironic.requests(),
    );
    if failures.is_empty() {
        return Ok(());
    }
    for failure in &failures {
        eprintln!("{failure:#}");
    }
    bail!("{} of {nodes} lives failed", failures.len())
}

async fn live_all(
    arguments: &Arguments,
    level: Level,
    ironic: &Ironic,
    profile: &Profile,
    images: &[Image],
    behind: &Behind,
) -> anyhow::Result<(Times, Vec<anyhow::Error>)> {
    let bmcs = behind.bmcs(arguments.nodes);
    let looks = Looks::new(ironic, arguments.nodes);
    let world = World {
        level,
        ironic,
        profile,
        images,
        lab: behind.lab(),
        looks: &looks,
    };
    let lives = (1..=arguments.nodes)
        .map(Number)
        .map(|number| live(&world, number, bmcs.get(&number)));
    let mut times = Times::default();
    let mut failures = Vec::new();
    for outcome in futures::future::join_all(lives).await {
        match outcome {
            Ok(life) => times.extend(life),
            Err(error) => failures.push(error),
        }
    }
    Ok((times, failures))
}

/// Strikes the faults of the table and writes the page.
///
/// # Errors
/// When a part does not start or a row does not come to its end.
pub(crate) async fn tabulate_faults(arguments: &Arguments, page: &Path) -> anyhow::Result<()> {
    let home = arguments.place.home();
    let endpoint = Endpoint::read(&home.join("endpoint.json"))?;
    let _alone = arguments.place.alone()?;
    let images = images(Path::new(&endpoint.files_root), &endpoint.files_url)?;
    let image = images.first().context("no image")?;
    let ironic = Ironic::new(endpoint)?;
    sweep(&ironic)
        .await
        .context("cannot remove the nodes of an earlier run")?;
    let machines = vec![format!("small={}", faults::machines())];
    let wish = Wish {
        machines,
        port: arguments.place.port,
        beat: BEAT,
    };
    let lab = Lab::start(Path::new(&ironic.endpoint().ca), &home, &wish).await?;
    let outcome = faults::tabulate(&ironic, &lab, image, page).await;
    lab.stop().await?;
    outcome
}

/// What Ironic used, and what the machines did, together and each.
fn used(ironic: &Ironic, behind: &Behind, nodes: u16) -> String {
    let Usage { mib, cpu_seconds } = Usage::of(ironic.endpoint().pid);
    let of_ironic = format!("Ironic {mib} MiB and {cpu_seconds} s of processor since its start");
    let Behind::Lab(lab) = behind else {
        return of_ironic;
    };
    let Usage { mib, cpu_seconds } = lab.usage();
    let each = mib.saturating_mul(1024) / u64::from(nodes.max(1));
    format!("{of_ironic}, machines {mib} MiB ({each} KiB each) and {cpu_seconds} s")
}
