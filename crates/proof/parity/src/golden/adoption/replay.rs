//! The moments of clusters and addresses, taken over: each is put into a server of its own as it was stored, our
//! controllers run on it until they rest, and nobody has lost anything.
//!
//! The hosts' controller is played: a host that is told to run nothing comes to rest. Cluster API is not there, so what
//! only it would let go stays.

use std::sync::Arc;

use anyhow::{Context, Result};
use metal3_capi::workload::{NodeList, WakeFn, Workloads};
use metal3_capm3::controller::standalone::Standalone;
use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::Fault;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Recording;
use super::hosts;
use super::losses::{NamespaceObjects, losses};
use super::snapshot::Snapshot;
use crate::golden::data::controllers::start_addresses;
use crate::golden::server::{PutError, Resource, TestServer, run_paused};

/// The recordings that the controllers of clusters and addresses take over. All others are of hosts.
const CLUSTERS: [&str; 3] = ["cluster", "mixed-cluster", "ip-addresses"];

/// What came of taking a recording over.
#[derive(Debug, Default)]
pub(in crate::golden) struct ReplayReport {
    /// Moments that were.
    pub(in crate::golden) snapshots: usize,
    /// Moments of which nobody saw the nodes, so that they could not be.
    pub(in crate::golden) skipped: usize,
    /// What went wrong, with its moment.
    pub(in crate::golden) errors: Vec<String>,
}

/// Takes every moment of a recording over.
pub(in crate::golden) fn replay_recording(recording: &Recording) -> Result<ReplayReport> {
    let mut report = ReplayReport::default();
    for (number, interval) in recording.intervals.iter().enumerate() {
        let disruptive = hosts::allowed_requests(recording.intervals.get(number..).unwrap_or_default());
        for snapshot in &interval.snapshots {
            let found = if CLUSTERS.contains(&recording.name.as_str()) {
                run_paused(replay(snapshot))?.map(Some)
            } else {
                run_paused(hosts::replay(snapshot, &disruptive))?
            };
            let Some(found) = found.with_context(|| snapshot.label.clone())? else {
                report.skipped += 1;
                continue;
            };
            report.snapshots += 1;
            let named = |what| format!("{} {}: {what}", recording.name, snapshot.label);
            report.errors.extend(found.into_iter().map(named));
        }
    }
    Ok(report)
}

/// What is wrong after a moment was taken over.
async fn replay(snapshot: &Snapshot) -> Result<Vec<String>> {
    let objects: Vec<&Value> = snapshot.objects.iter().map(|document| &document.value).collect();
    Ok(match take_over(&objects).await? {
        Err(refused) => vec![refused],
        Ok(Takeover { before, after }) => losses(&before, &after),
    })
}

/// What there was before our controllers took objects over, and what there is when they rest.
pub(in crate::golden) struct Takeover {
    pub(in crate::golden) before: NamespaceObjects,
    pub(in crate::golden) after: NamespaceObjects,
}

/// Objects of one namespace, taken over; or why our server does not have them.
pub(in crate::golden) async fn take_over(objects: &[&Value]) -> Result<Result<Takeover, String>> {
    let mut server = TestServer::new()?;
    let namespace = objects
        .iter()
        .find_map(|object| object.pointer("/metadata/namespace")?.as_str());
    let namespace = namespace.unwrap_or("default").to_owned();
    server.namespace(&namespace).await?;
    match server.put(objects).await {
        Ok(()) => {}
        Err(PutError::Rejected(why)) => return Ok(Err(format!("our server refuses it: {why}"))),
        Err(PutError::Other(error)) => return Err(error),
    }
    let before = NamespaceObjects::of(&server, &namespace).await?;
    let program = Standalone {
        client: server.cluster.client("machines"),
        clock: Arc::clone(&server.clock),
        workloads: Arc::new(NoWorkloads),
        with_data: true,
        nudges: false,
        metrics: Metrics::new(),
        workers: 1,
    };
    let mut tasks: JoinSet<()> = program.tasks().into_iter().collect();
    start_addresses(&server, &mut tasks);
    server
        .settle(async |server| {
            while server.cluster.collect_garbage() > 0 {}
            stop_hosts(server, &namespace).await
        })
        .await?;
    let after = NamespaceObjects::of(&server, &namespace).await?;
    Ok(Ok(Takeover { before, after }))
}

/// Hosts that are told to run nothing come to rest.
async fn stop_hosts(server: &TestServer, namespace: &str) -> Result<()> {
    let place = Resource::new("metal3.io", "v1alpha1", "BareMetalHost");
    for host in server.all(&place, namespace).await? {
        let at = |path: &str| host.pointer(path).cloned().unwrap_or_default();
        let runs = !at("/spec/image").is_null() || !at("/spec/customDeploy").is_null();
        let is_paused = !at("/metadata/annotations/baremetalhost.metal3.io~1paused").is_null();
        let is_busy = ["provisioned", "provisioning", "deprovisioning"]
            .contains(&at("/status/provisioning/state").as_str().unwrap_or_default());
        if !runs && !is_paused && is_busy {
            let path = place.path(namespace, at("/metadata/name").as_str().unwrap_or_default());
            let change = json!({ "status": { "poweredOn": false, "provisioning": { "state": "available" } } });
            server.send("PATCH", &format!("{path}/status"), &change).await?;
        }
    }
    Ok(())
}

/// Nobody can look into the workload clusters of a recording.
#[derive(Debug)]
struct NoWorkloads;

impl Workloads for NoWorkloads {
    fn set_wake(&self, _: WakeFn) {}

    fn nodes(&self, _: &Key, _: &Key) -> NodeList {
        NodeList::Unknown("the workload cluster is not part of the recording".to_owned())
    }

    fn remove_waiter(&self, _: &Key) {}

    fn set_provider_id<'a>(
        &'a self,
        _: &'a Key,
        _: &'a str,
        _: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        Box::pin(async { Ok(()) })
    }
}
