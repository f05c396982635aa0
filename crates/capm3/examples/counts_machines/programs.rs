//! The three products in one process, each with its own client.

use std::sync::Arc;

use metal3_capi::workload::{ConnectFn, Remote, Repairs};
use metal3_capm3::controller::caches::Caches as MachineCaches;
use metal3_capm3::controller::standalone::Standalone;
use metal3_capm3::needs::{Machines, Remediations};
use metal3_capm3::remediation::reconciler::{Parts as RemediationParts, controller as remediations, own_watches};
use metal3_domain::clock::Clock;
use metal3_hosts::reconciler::caches::Caches as HostCaches;
use metal3_hosts::reconciler::{DeprovisionBudget, Parts as HostParts, controller as hosts};
use metal3_hosts::settings::Settings as HostSettings;
use metal3_ipam::reconciler as ipam;
use metal3_ironic::Client;
use metal3_runtime::access::Role;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::Cluster;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::counting::{RequestCounts, client};
use crate::nodes::WorkloadNodes;

/// User names of the clients.
const MACHINES: &str = "machines";
const HOSTS: &str = "hosts";
const ADDRESSES: &str = "addresses";
const REMEDIATIONS: &str = "remediations";
/// User name in the workload cluster.
pub(crate) const WORKLOAD: &str = "workload";
/// Workers per controller.
const WORKERS: usize = 4;

/// The dependencies of the programs.
pub(crate) struct Environment<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) ironic: Client,
    pub(crate) nodes: &'a WorkloadNodes,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) counts: &'a RequestCounts,
}

fn run<R: Role>(tasks: &mut JoinSet<()>, watches: WatchSet<R>) {
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
}

/// Starts all. Dropping the set stops them.
pub(crate) fn start(environment: &Environment<'_>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    start_machines(environment, &mut tasks);
    start_hosts(environment, &mut tasks);
    start_addresses(environment, &mut tasks);
    start_remediations(environment, &mut tasks);
    tasks
}

fn start_machines(environment: &Environment<'_>, tasks: &mut JoinSet<()>) {
    let program = Standalone {
        client: client(environment.cluster, MACHINES, environment.counts),
        clock: Arc::clone(environment.clock),
        workloads: Arc::new(environment.nodes.clone()),
        with_data: true,
        touches_control_planes: false,
        join_checks: None,
        metrics: Metrics::new(),
        workers: WORKERS,
    };
    for task in program.tasks() {
        tasks.spawn(task);
    }
}

fn start_hosts(environment: &Environment<'_>, tasks: &mut JoinSet<()>) {
    let (client, stop) = (
        client(environment.cluster, HOSTS, environment.counts),
        CancellationToken::new(),
    );
    let caches = HostCaches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = HostParts {
        client: client.clone(),
        caches: caches.clone(),
        ironics: environment.ironic.clone().into(),
        permit: Arc::new(|| Ok(())),
        clock: Arc::clone(environment.clock),
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
        caches.watches(&WatchConfig::everywhere(&client, environment.clock, &stop)),
    );
    tasks.spawn(running.run(stop));
}

fn start_addresses(environment: &Environment<'_>, tasks: &mut JoinSet<()>) {
    let (client, stop) = (
        client(environment.cluster, ADDRESSES, environment.counts),
        CancellationToken::new(),
    );
    let caches = ipam::caches::Caches::default();
    let (events, _) = EventRecorder::bounded(1);
    let parts = ipam::Parts {
        caches: caches.clone(),
        clock: Arc::clone(environment.clock),
        events,
        metrics: Metrics::new(),
        identity: "addresses".to_owned(),
        watch_filter: None,
        workers: WORKERS,
    };
    let controller = ipam::controller(parts, Writer::new(client.clone(), Mode::Perform));
    run(
        tasks,
        caches.watches(&WatchConfig::everywhere(&client, environment.clock, &stop)),
    );
    tasks.spawn(async move {
        controller.run(stop).await;
    });
}

fn start_remediations(environment: &Environment<'_>, tasks: &mut JoinSet<()>) {
    let (client, workload) = (
        client(environment.cluster, REMEDIATIONS, environment.counts),
        client(environment.cluster, WORKLOAD, environment.counts),
    );
    let (caches, own, stop) = (
        MachineCaches::default(),
        SharedCache::default(),
        CancellationToken::new(),
    );
    let reader: Writer<Machines> = Writer::new(client.clone(), Mode::Perform);
    let open: ConnectFn = Box::new(move |_| {
        let client = workload.clone();
        Box::pin(async move { Ok(client) })
    });
    let workloads = Arc::new(Remote::new(reader, open, Arc::clone(environment.clock)));
    let (events, _) = EventRecorder::bounded(1);
    let parts = RemediationParts {
        remediations: own.clone(),
        caches: caches.clone(),
        workloads: Arc::new(Repairs::new(Arc::clone(&workloads))),
        clock: Arc::clone(environment.clock),
        events,
        metrics: Metrics::new(),
        watch_filter: None,
        workers: WORKERS,
    };
    let writer: Writer<Remediations> = Writer::new(client.clone(), Mode::Perform);
    let controller = remediations(parts, writer);
    let config = WatchConfig::everywhere(&client, environment.clock, &stop);
    run(tasks, caches.watches(&config));
    run(tasks, own_watches(&own, &config));
    let stopped = stop.clone();
    tasks.spawn(async move { workloads.run(stopped).await });
    tasks.spawn(async move {
        controller.run(stop).await;
    });
}
