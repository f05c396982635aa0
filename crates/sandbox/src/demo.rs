//! The reference cluster on simulated machines.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use metal3_console::{Console, Notice, Options};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_sim_capi::view::endpoint;
use serde_json::json;

use super::admission;
use super::command::{access, print_ideas, stay_open};
use super::display::{Display, Head, Notices, Snapshot};
use super::flags::Flags;
use super::http_server::HttpServer;
use super::kubeconfig::{self, Kubeconfig};
use super::lab::Machines;
use super::steps::apply_text;
use super::variables::Variables;
use super::world::{NAMESPACE, Setup, World};

/// The objects of the reference cluster.
const TEMPLATE: &str = include_str!("../../../e2e/scenarios/objects/cluster.yaml");
/// The name of the reference cluster.
const CLUSTER: &str = "demo";
/// Machines of the reference cluster.
const MACHINES: usize = 3;
/// Timeout with `--once`. A fast machine needs a twentieth of it.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Hosts, if none are stated.
const HOSTS: u32 = 5;

/// Returns whether the cluster became ready, with `--once`.
pub(super) async fn live(flags: &Flags) -> Result<bool> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let world = Arc::new(World::start(&Setup::faster(
        flags.seed,
        Arc::clone(&clock),
        flags.speed,
    ))?);
    admission::install(&world.cluster);
    let serving = HttpServer::open(&world.cluster, &clock, flags.port).await;
    let serving = serving.context("--port: listen on loopback")?;
    let kubeconfig = Kubeconfig::write(&flags.kubeconfig, serving.url())?;
    let notices = Notices::default();
    let console = open_console(&world, &clock, &notices).await?;
    let mut access = access(&kubeconfig, serving.url());
    access.insert(0, format!("console     {}", console.url()));
    access.iter().for_each(|line| say!("{line}"));
    say!(
        "machines    {} times faster than real ones; new disks are not cleaned (automatedCleaningMode: disabled)\n",
        flags.speed
    );
    let hosts = flags.hosts.unwrap_or(HOSTS);
    if flags.bare {
        add_hosts(&world, hosts).await?;
        say!("{hosts} hosts are enrolling: kubectl get bmh -w");
        stay_open(flags).await;
        return Ok(true);
    }
    let title = format!("capm3 sandbox: machines {} times faster than real ones", flags.speed);
    let head = flags.is_screen.then(|| Head {
        title,
        access: access.clone(),
    });
    let mut display = Display::of(&world, Arc::clone(&clock), (head, notices), 1);
    display
        .during(create(&world, hosts))
        .await
        .context("create the reference cluster")?;
    let timeout = if flags.once { TIMEOUT } else { Duration::MAX };
    let is_ready = |snapshot: &Snapshot| snapshot.is_ready(CLUSTER, MACHINES);
    let ready = tokio::time::timeout(timeout, display.until(is_ready)).await.is_ok();
    let seconds = display.elapsed().as_secs_f64();
    display.close().await;
    let snapshot = display.snapshot();
    say!("\n{}", snapshot.tree(CLUSTER));
    if !ready {
        say!("not ready after {seconds:.0} s:\n{}", snapshot.problems());
        return Ok(false);
    }
    say!("ready after {seconds:.1} s");
    let _workload = open_workload(&world, snapshot, &clock, kubeconfig.path()).await?;
    if !flags.once {
        print_ideas(&access, &ideas(&kubeconfig));
    }
    stay_open(flags).await;
    Ok(true)
}

fn ideas(kubeconfig: &Kubeconfig) -> [(&'static str, String); 3] {
    let patch = r#"{"spec":{"replicas":3}}"#;
    // A file of its own: the commands above use that of this world.
    let script = kubeconfig.path().with_extension("script.kubeconfig");
    [
        (
            "scale the workers, and watch a host being claimed",
            format!(
                "kubectl patch machinedeployment {CLUSTER} --type merge -p '{patch}' && kubectl get baremetalhosts -w"
            ),
        ),
        (
            "see the cluster down to its hosts, and what each object waits for",
            format!("capm3 tree {CLUSTER}"),
        ),
        (
            "see a host break and how its wait is explained (other scripts: --scenario list)",
            format!(
                "capm3 sandbox --scenario broken-host --kubeconfig {}",
                kubeconfig::shown(&script)
            ),
        ),
    ]
}

/// The pages about this world, for one browser.
async fn open_console(world: &Arc<World>, clock: &Arc<dyn Clock>, notices: &Notices) -> Result<Console> {
    let options = Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        namespace: None,
        default_namespace: NAMESPACE.to_owned(),
        is_read_only: false,
        lab: Some(Arc::new(Machines(Arc::clone(world)))),
    };
    let notices = notices.clone();
    let say = move |notice: &Notice<'_>| match notice {
        Notice::NextUrl(url) => notices.say(format!("console, for a further browser: {url}")),
        Notice::Action(line) | Notice::Login(line) => notices.say(format!("console: {line}")),
    };
    let opened = Console::open(world.cluster.client("console"), Arc::clone(clock), &options, say).await;
    opened.context("the console: listen on loopback")
}

/// Creates hosts and the reference cluster.
pub(super) async fn create(world: &World, hosts: u32) -> Result<()> {
    add_hosts(world, hosts).await?;
    let name = Variables::from([("CLUSTER_NAME".to_owned(), CLUSTER.to_owned())]);
    apply_text(world, TEMPLATE, &name).await
}

/// Hosts with new disks: nothing is on them that cleaning would remove.
async fn add_hosts(world: &World, count: u32) -> Result<()> {
    for number in 1..=count {
        let spec = json!({ "automatedCleaningMode": "disabled" });
        world.add_host_with(number, &json!({}), &spec).await?;
    }
    Ok(())
}

/// Serves the API of the workload cluster, and writes its kubeconfig next to the first one.
async fn open_workload(
    world: &World,
    snapshot: &Snapshot,
    clock: &Arc<dyn Clock>,
    next_to: &Path,
) -> Result<Option<(HttpServer, Kubeconfig)>> {
    let at = snapshot.cluster(CLUSTER).and_then(endpoint);
    let Some(cluster) = at.and_then(|at| world.workloads.at(&at)) else {
        return Ok(None);
    };
    let serving = HttpServer::open(&cluster, clock, 0)
        .await
        .context("listen on loopback")?;
    let path: PathBuf = next_to.with_extension(format!("{CLUSTER}.kubeconfig"));
    let kubeconfig = Kubeconfig::write(&path, serving.url())?;
    say!(
        "its Nodes   kubectl --kubeconfig {} get nodes",
        kubeconfig::shown(kubeconfig.path())
    );
    Ok(Some((serving, kubeconfig)))
}

#[cfg(test)]
mod tests {
    use metal3_runtime::clock::TimerClock;

    use super::*;

    /// The time of machines and pauses without that of the processor: the same on each computer.
    #[tokio::test(start_paused = true)]
    async fn cluster_is_ready_within_ten_seconds_at_the_usual_speed() {
        let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let world = World::start(&Setup::faster(1, Arc::clone(&clock), 40)).unwrap();
        admission::install(&world.cluster);
        let mut display = Display::of(&world, clock, (None, Notices::default()), 1);
        create(&world, 5).await.unwrap();
        let ready = display.until(|snapshot| snapshot.is_ready(CLUSTER, MACHINES));
        let is_ready = tokio::time::timeout(Duration::from_secs(10), ready).await.is_ok();
        assert!(is_ready, "{}", display.snapshot().problems());
        assert!(display.snapshot().tree(CLUSTER).contains("BareMetalHost/"));
    }
}
