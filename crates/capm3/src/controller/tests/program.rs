//! The controllers with their watches, and a workload cluster whose Nodes always exist.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use metal3_capi::workload::join::Requisite;
use metal3_capi::workload::{LabelledNode, Node, Nodes, Reconciled, Request, WakeFn, Workloads};
use metal3_domain::clock::Clock;
use metal3_harness::Instance;
use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use tokio::task::JoinSet;

use super::shared::joins::Lacking;
use crate::controller::standalone::Standalone;

/// A workload cluster with a Node for each machine `m0` to `m9` on host `h0` to `h9`.
struct StaticNodes;

impl Workloads for StaticNodes {
    fn set_wake(&self, _: WakeFn, _: usize) {}

    fn reconciled(&self, _: &Key) -> Reconciled {
        Reconciled::default()
    }

    fn nodes(&self, cluster: &Key, _: &Key) -> Observed<Nodes> {
        let node = |machine: usize, host: usize| {
            Arc::new(Node {
                name: format!("node-{machine}-{host}"),
                provider_id: format!("metal3://{}/h{host}/m{machine}", cluster.namespace),
                ..Node::default()
            })
        };
        let nodes: Vec<Arc<Node>> = (0..10)
            .flat_map(|machine| (0..10).map(move |host| node(machine, host)))
            .collect();
        Observed::Present(nodes.into())
    }

    fn node(&self, _: &Key, _: &str, _: &Key) -> Observed<Arc<Node>> {
        Observed::Absent
    }

    fn remove_waiter(&self, _: &Key) {}

    fn set_provider_id<'a>(&'a self, _: &'a Key, _: &'a str, _: &'a str, _: &'a Key) -> Request<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn read_labels<'a>(&'a self, _: &'a Key, _: &'a str, _: &'a Key) -> Request<'a, Option<LabelledNode>> {
        Box::pin(async { Ok(None) })
    }

    fn patch_labels<'a>(&'a self, _: &'a Key, _: &'a str, _: MergePatch, _: &'a Key) -> Request<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}

/// The program before it starts, without triggering control planes. Its metrics are discarded.
pub(super) fn standalone(client: &kube::Client, clock: &Arc<dyn Clock>) -> Standalone {
    Standalone {
        client: client.clone(),
        clock: Arc::clone(clock),
        workloads: Arc::new(StaticNodes),
        with_data: false,
        touches_control_planes: false,
        join_checks: None,
        metrics: Metrics::new(),
        workers: 2,
    }
}

/// Starts the program. Dropping the set stops it.
pub(super) fn start(client: &kube::Client, clock: &Arc<dyn Clock>, with_data: bool, metrics: &Metrics) -> JoinSet<()> {
    let alone = Standalone {
        with_data,
        metrics: metrics.clone(),
        ..standalone(client, clock)
    };
    alone.tasks().into_iter().collect()
}

/// Runs the program of a crash sweep.
pub(super) fn run(instance: Instance, with_data: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut alone = standalone(&instance.client, &instance.clock);
        alone.with_data = with_data;
        // Clusters of kubeadm, of which most sweeps are, are not looked at.
        alone.join_checks = Some(Lacking::new(Some(Requisite::Scheduler)));
        let _tasks: JoinSet<()> = alone.tasks().into_iter().collect();
        pending().await
    })
}
