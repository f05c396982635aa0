//! Both controllers with their watches, and a workload cluster whose Nodes are always there.

use std::pin::Pin;
use std::sync::Arc;

use metal3_capi::workload::{Node, Nodes, Wake, Workloads};
use metal3_domain::clock::Clock;
use metal3_runtime::events::EventSink;
use metal3_runtime::hub::Key;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::Scope;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{Mode, Writer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::controller::clusters;
use crate::controller::hubs::Hubs;
use crate::controller::machines::{self, Parts};
use crate::controller::sources::Watched;
use crate::controller::watches::watches;
use crate::machine::facts::Settings;

/// A workload cluster with a Node for each machine `m0` to `m9` on host `h0` to `h9`.
#[derive(Debug)]
struct Joined;

impl Workloads for Joined {
    fn wake_with(&self, _: Wake) {}

    fn nodes(&self, cluster: &Key, _: &Key) -> Nodes {
        let node = |machine: usize, host: usize| Node {
            name: format!("node-{machine}-{host}"),
            provider_id: format!("metal3://{}/h{host}/m{machine}", cluster.namespace),
            ..Node::default()
        };
        let nodes: Vec<Node> = (0..10)
            .flat_map(|machine| (0..10).map(move |host| node(machine, host)))
            .collect();
        Nodes::Seen(nodes.into())
    }

    fn dismiss(&self, _: &Key) {}

    fn adopt<'a>(
        &'a self,
        _: &'a Key,
        _: &'a str,
        _: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        Box::pin(async { Ok(()) })
    }
}

/// Starts the program. Dropping the set kills it.
pub(super) fn start(client: &kube::Client, clock: &Arc<dyn Clock>) -> JoinSet<()> {
    let (hubs, stop, metrics) = (Hubs::default(), CancellationToken::new(), Metrics::new());
    let writer = Writer::new(client.clone(), Mode::Perform);
    // Nobody listens: an event that nobody takes is lost.
    let (events, _) = EventSink::bounded(1);
    let parts = Parts {
        hubs: hubs.clone(),
        workloads: Arc::new(Joined),
        clock: Arc::clone(clock),
        events: events.clone(),
        metrics: metrics.clone(),
        settings: Settings::default(),
        watch_filter: None,
        workers: 2,
    };
    let machines = machines::controller(parts, writer.clone());
    let sources = Arc::new(Watched::new(client.clone(), None, Arc::clone(clock)));
    let clusters = clusters::Parts {
        hubs: hubs.clone(),
        sources: sources.clone(),
        events,
        clock: Arc::clone(clock),
        metrics,
        watch_filter: None,
        adopts_namesakes: false,
        workers: 1,
    };
    let clusters = clusters::controller(clusters, writer);
    let watches = watches(&hubs, client, &Scope::everywhere(), clock, &stop);
    let mut tasks = JoinSet::new();
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    let ending = stop.clone();
    tasks.spawn(async move {
        sources.run(ending).await;
    });
    let ending = stop.clone();
    tasks.spawn(async move {
        machines.run(ending).await;
    });
    tasks.spawn(async move {
        clusters.run(stop).await;
    });
    tasks
}
