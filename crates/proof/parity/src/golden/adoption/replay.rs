//! Replays snapshots of clusters and addresses: each is loaded into a server of its own, the controllers of this
//! project run until they are idle, and no object may lose anything.
//!
//! The host controller is simulated: a host without a requested image becomes available. Cluster API does not run, so
//! its finalizers remain.

use std::sync::Arc;

use anyhow::{Context, Result};
use metal3_capi::workload::{LabelledNode, Node, Nodes, Reconciled, Request, WakeFn, Workloads};
use metal3_capm3::controller::standalone::Standalone;
use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Recording;
use super::hosts;
use super::losses::{NamespaceObjects, losses};
use super::snapshot::Snapshot;
use crate::golden::data::controllers::start_addresses;
use crate::golden::server::{PutError, Resource, TestServer, run_paused};
use crate::values::text;

/// Recordings of clusters and addresses; all others are of hosts.
const CLUSTERS: [&str; 3] = ["cluster", "mixed-cluster", "ip-addresses"];

/// Report of a recording.
#[derive(Debug, Default)]
pub(in crate::golden) struct ReplayReport {
    /// Replayed snapshots.
    pub(in crate::golden) snapshots: usize,
    /// Skipped snapshots, without recorded nodes.
    pub(in crate::golden) skipped: usize,
    /// Errors with their snapshot.
    pub(in crate::golden) errors: Vec<String>,
}

/// Replays every snapshot of a recording.
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

/// Errors after a replay.
async fn replay(snapshot: &Snapshot) -> Result<Vec<String>> {
    let objects: Vec<&Value> = snapshot.objects.iter().map(|document| &document.value).collect();
    Ok(match take_over(&objects).await? {
        Err(refused) => vec![refused],
        Ok(Takeover { before, after }) => losses(&before, &after),
    })
}

/// Objects before the controllers ran, and after.
pub(in crate::golden) struct Takeover {
    pub(in crate::golden) before: NamespaceObjects,
    pub(in crate::golden) after: NamespaceObjects,
}

/// Runs the controllers on the objects of one namespace. The inner error is a rejection by the server.
pub(in crate::golden) async fn take_over(objects: &[&Value]) -> Result<Result<Takeover, String>> {
    let mut server = TestServer::new()?;
    let namespace = objects
        .iter()
        .find_map(|object| object.pointer("/metadata/namespace")?.as_str());
    let namespace = namespace.unwrap_or("default").to_owned();
    server.namespace(&namespace).await?;
    match server.put(objects).await {
        Ok(()) => {}
        Err(PutError::Rejected(why)) => return Ok(Err(format!("the server rejects it: {why}"))),
        Err(PutError::Other(error)) => return Err(error),
    }
    let before = NamespaceObjects::of(&server, &namespace).await?;
    let program = Standalone {
        client: server.cluster.client("machines"),
        clock: Arc::clone(&server.clock),
        workloads: Arc::new(NoWorkloads),
        with_data: true,
        touches_control_planes: false,
        join_checks: None,
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

/// Makes hosts without a requested image available.
async fn stop_hosts(server: &TestServer, namespace: &str) -> Result<()> {
    let place = Resource::new("metal3.io", "v1alpha1", "BareMetalHost");
    for host in server.all(&place, namespace).await? {
        let has = |path: &str| host.pointer(path).is_some_and(|value| !value.is_null());
        let runs = has("/spec/image") || has("/spec/customDeploy");
        let is_paused = has("/metadata/annotations/baremetalhost.metal3.io~1paused");
        let is_busy =
            ["provisioned", "provisioning", "deprovisioning"].contains(&text(&host, "/status/provisioning/state"));
        if !runs && !is_paused && is_busy {
            let path = place.path(namespace, text(&host, "/metadata/name"));
            let change = json!({ "status": { "poweredOn": false, "provisioning": { "state": "available" } } });
            server.send("PATCH", &format!("{path}/status"), &change).await?;
        }
    }
    Ok(())
}

/// Workload clusters are not part of recordings.
#[derive(Debug)]
struct NoWorkloads;

impl Workloads for NoWorkloads {
    fn set_wake(&self, _: WakeFn, _: usize) {}

    fn reconciled(&self, _: &Key) -> Reconciled {
        Reconciled::default()
    }

    fn nodes(&self, _: &Key, _: &Key) -> Observed<Nodes> {
        let why = "the workload cluster is not part of the recording".to_owned();
        Observed::Unknown(UnknownReason::Unreadable(why))
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
