//! `capm3 sandbox`: runs a simulated world and writes a kubeconfig for it.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sim_capi::view::endpoint;
use serde_json::{Value, json};

use super::display::{Display, Snapshot};
use super::flags::{Flags, HELP};
use super::http_server::HttpServer;
use super::kubeconfig;
use super::variables::{Variables, substitute};
use super::world::{Setup, World, definitions};

/// The objects of the reference cluster.
const TEMPLATE: &str = include_str!("../../../e2e/scenarios/objects/cluster.yaml");
/// The name of the reference cluster.
const CLUSTER: &str = "demo";
/// Machines of the reference cluster.
const MACHINES: usize = 3;
/// Timeout with `--once`. A fast machine needs a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(180);

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

/// Returns whether the cluster became ready, with `--once`.
async fn live(flags: &Flags) -> Result<bool> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let begun = clock.monotonic();
    let world = World::start(&Setup::faster(flags.seed, Arc::clone(&clock), flags.speed))?;
    let serving = HttpServer::open(&world.cluster, &clock, definitions(), flags.port).await;
    let serving = serving.context("--port: listen on loopback")?;
    kubeconfig::write(&flags.kubeconfig, serving.url())?;
    println!("API server  {}", serving.url());
    println!(
        "kubeconfig  export KUBECONFIG={}\n",
        kubeconfig::shown(&flags.kubeconfig)
    );
    for number in 1..=flags.hosts {
        world.add_host(number, &json!({})).await?;
    }
    let since = || clock.monotonic().since(begun);
    let mut ready = true;
    if flags.bare {
        println!("{} hosts are enrolling: kubectl get bmh -w", flags.hosts);
    } else {
        apply(&world).await?;
        let mut display = Display::of(&world, std::io::stdout().is_terminal());
        let timeout = if flags.once { TIMEOUT } else { Duration::MAX };
        let waiting = display.until(|snapshot| snapshot.is_ready(CLUSTER, MACHINES), &since);
        let finished = tokio::select! {
            biased;
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("listen for Ctrl-C")?;
                return Ok(!flags.once);
            }
            finished = tokio::time::timeout(timeout, waiting) => finished,
        };
        ready = finished.is_ok();
        let snapshot = display.snapshot();
        println!("\n{}", snapshot.tree(CLUSTER));
        if ready {
            println!("ready after {:.1} s", since().as_secs_f64());
            let _workload = open_workload(&world, snapshot, &clock, &flags.kubeconfig).await?;
            return wait_for_stop(flags, ready).await;
        }
        println!(
            "not ready after {:.0} s:\n{}",
            since().as_secs_f64(),
            snapshot.problems()
        );
    }
    wait_for_stop(flags, ready).await
}

/// Waits for Ctrl-C, unless `--once` is set.
async fn wait_for_stop(flags: &Flags, ready: bool) -> Result<bool> {
    if !flags.once {
        println!("Ctrl-C ends the sandbox and deletes everything in it");
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

/// Serves the API of the workload cluster, and writes its kubeconfig next to the first one.
async fn open_workload(
    world: &World,
    snapshot: &Snapshot,
    clock: &Arc<dyn Clock>,
    next_to: &Path,
) -> Result<Option<HttpServer>> {
    let at = snapshot.cluster(CLUSTER).and_then(endpoint);
    let Some(cluster) = at.and_then(|at| world.workloads.at(&at)) else {
        return Ok(None);
    };
    let serving = HttpServer::open(&cluster, clock, Vec::new(), 0)
        .await
        .context("listen on loopback")?;
    let path: PathBuf = next_to.with_extension(format!("{CLUSTER}.kubeconfig"));
    kubeconfig::write(&path, serving.url())?;
    println!(
        "its Nodes   kubectl --kubeconfig {} get nodes",
        kubeconfig::shown(&path)
    );
    Ok(Some(serving))
}
