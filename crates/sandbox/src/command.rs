//! `capm3 sandbox`: a world to look at, with a kubeconfig for it.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sim_capi::view::endpoint;
use serde_json::{Value, json};

use super::flags::{Flags, HELP};
use super::front::Front;
use super::picture::{Picture, Scene};
use super::variables::{Variables, substitute};
use super::way_in;
use super::world::{Setup, World, definitions};

/// The objects of the reference cluster.
const TEMPLATE: &str = include_str!("../../../e2e/scenarios/objects/cluster.yaml");
/// The name of the cluster that is shown.
const CLUSTER: &str = "demo";
/// Machines of the reference cluster.
const MACHINES: usize = 3;
/// With `--once`, how long it may take. A fast machine needs a tenth of it.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the command with its arguments.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let home = std::env::home_dir().unwrap_or_default();
    let flags = match Flags::parse(arguments, &home) {
        Ok(Some(flags)) => flags,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("capm3 sandbox: {why}");
            return ExitCode::from(2);
        }
    };
    match start(&flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("capm3 sandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("start the async runtime")?.block_on(live(flags))
}

/// Gives whether the cluster became ready, where that was asked for.
async fn live(flags: &Flags) -> Result<bool> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let begun = clock.monotonic();
    let world = World::begin(&Setup::faster(flags.seed, Arc::clone(&clock), flags.speed))?;
    let serving = Front::open(&world.cluster, &clock, definitions(), flags.port).await;
    let serving = serving.context("--port: listen on loopback")?;
    way_in::write(&flags.kubeconfig, serving.url())?;
    println!("API server  {}", serving.url());
    println!("kubeconfig  export KUBECONFIG={}\n", way_in::shown(&flags.kubeconfig));
    for number in 1..=flags.hosts {
        world.add_host(number, &json!({})).await?;
    }
    let since = || clock.monotonic().since(begun);
    let mut ready = true;
    if flags.bare {
        println!(
            "{} hosts are enrolling, and nothing else is here: kubectl get bmh -w",
            flags.hosts
        );
    } else {
        apply(&world).await?;
        let mut picture = Picture::of(&world, std::io::stdout().is_terminal());
        let patience = if flags.once { PATIENCE } else { Duration::MAX };
        let waiting = picture.until(|scene| scene.is_ready(CLUSTER, MACHINES), &since);
        let finished = tokio::select! {
            biased;
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("listen for Ctrl-C")?;
                return Ok(!flags.once);
            }
            finished = tokio::time::timeout(patience, waiting) => finished,
        };
        ready = finished.is_ok();
        let scene = picture.scene();
        println!("\n{}", scene.tree(CLUSTER));
        if ready {
            println!("ready after {:.1} s", since().as_secs_f64());
            let _workload = open_workload(&world, scene, &clock, &flags.kubeconfig).await?;
            return rest(flags, ready).await;
        }
        println!("not ready after {:.0} s:\n{}", since().as_secs_f64(), scene.troubles());
    }
    rest(flags, ready).await
}

/// Stays until it is told to stop, unless once is enough.
async fn rest(flags: &Flags, ready: bool) -> Result<bool> {
    if !flags.once {
        println!("Ctrl-C ends it, and everything in it is gone");
        tokio::signal::ctrl_c().await.context("listen for Ctrl-C")?;
    }
    Ok(ready)
}

async fn apply(world: &World) -> Result<()> {
    let values: Variables = [("CLUSTER_NAME".to_owned(), CLUSTER.to_owned())].into();
    let text = substitute(TEMPLATE, &values).map_err(|names| anyhow::anyhow!("no value for {}", names.join(", ")))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).context("read the reference cluster")?;
    for document in documents {
        world.apply(&document).await?;
    }
    Ok(())
}

/// Serves the API of the workload cluster, and writes the way into it beside the other.
async fn open_workload(world: &World, scene: &Scene, clock: &Arc<dyn Clock>, beside: &Path) -> Result<Option<Front>> {
    let at = scene.cluster(CLUSTER).and_then(endpoint);
    let Some(cluster) = at.and_then(|at| world.workloads.at(&at)) else {
        return Ok(None);
    };
    let serving = Front::open(&cluster, clock, Vec::new(), 0)
        .await
        .context("listen on loopback")?;
    let path: PathBuf = beside.with_extension(format!("{CLUSTER}.kubeconfig"));
    way_in::write(&path, serving.url())?;
    println!("its Nodes   kubectl --kubeconfig {} get nodes", way_in::shown(&path));
    Ok(Some(serving))
}
