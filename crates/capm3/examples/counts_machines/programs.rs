//! The three products side by side, each with a client of its own, as in one process.

use std::sync::Arc;

use metal3_capm3::controller::standalone::Standalone;
use metal3_domain::clock::Clock;
use metal3_hosts::controller::caches::Caches as HostHubs;
use metal3_hosts::controller::{DeprovisionBudget, Parts as HostParts, controller as hosts};
use metal3_hosts::settings::Settings as HostSettings;
use metal3_ipam::controller as ipam;
use metal3_ironic::Client;
use metal3_runtime::access::Role;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::Cluster;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::Joining;
use crate::tap::{Book, client};

/// As whom they ask.
const MACHINES: &str = "machines";
const HOSTS: &str = "hosts";
const ADDRESSES: &str = "addresses";
/// Keys of one controller that are worked on at once.
const WORKERS: usize = 4;

/// What they run on.
pub(crate) struct Ground<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) ironic: Client,
    pub(crate) nodes: &'a Joining,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) book: &'a Book,
}

fn run<R: Role>(tasks: &mut JoinSet<()>, fleet: WatchSet<R>) {
    for task in fleet.into_tasks() {
        tasks.spawn(task);
    }
}

/// Starts all. Dropping the set ends them.
pub(crate) fn start(ground: &Ground<'_>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    start_machines(ground, &mut tasks);
    start_hosts(ground, &mut tasks);
    start_addresses(ground, &mut tasks);
    tasks
}

fn start_machines(ground: &Ground<'_>, tasks: &mut JoinSet<()>) {
    let program = Standalone {
        client: client(ground.cluster, MACHINES, ground.book),
        clock: Arc::clone(ground.clock),
        workloads: Arc::new(ground.nodes.clone()),
        with_data: true,
        nudges: false,
        metrics: Metrics::new(),
        workers: WORKERS,
    };
    for task in program.tasks() {
        tasks.spawn(task);
    }
}

fn start_hosts(ground: &Ground<'_>, tasks: &mut JoinSet<()>) {
    let (client, stop) = (client(ground.cluster, HOSTS, ground.book), CancellationToken::new());
    let caches = HostHubs::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = HostParts {
        client: client.clone(),
        caches: caches.clone(),
        ironic: ground.ironic.clone(),
        permit: Arc::new(|| Ok(())),
        clock: Arc::clone(ground.clock),
        events,
        metrics: Metrics::new(),
        settings: HostSettings::default(),
        deprovision_budget: DeprovisionBudget::default(),
        slots: 1000,
        workers: WORKERS,
    };
    let running = hosts(parts, Writer::new(client.clone(), Mode::Perform));
    run(
        tasks,
        caches.watches(&WatchConfig::everywhere(&client, ground.clock, &stop)),
    );
    tasks.spawn(running.run(stop));
}

fn start_addresses(ground: &Ground<'_>, tasks: &mut JoinSet<()>) {
    let (client, stop) = (client(ground.cluster, ADDRESSES, ground.book), CancellationToken::new());
    let caches = ipam::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = ipam::Parts {
        caches: caches.clone(),
        clock: Arc::clone(ground.clock),
        events,
        metrics: Metrics::new(),
        identity: "addresses".to_owned(),
        watch_filter: None,
        workers: WORKERS,
    };
    let controller = ipam::controller(parts, Writer::new(client.clone(), Mode::Perform));
    run(
        tasks,
        caches.watches(&WatchConfig::everywhere(&client, ground.clock, &stop)),
    );
    tasks.spawn(async move {
        controller.run(stop).await;
    });
}
