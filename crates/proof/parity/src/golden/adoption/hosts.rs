//! Replays snapshots of hosts: the objects are loaded into a server and the nodes into a simulated Ironic; the host
//! controller runs for some minutes. It may send only disruptive requests that upstream sent next, no host may lose its
//! spec, and only hosts being deleted may disappear.
//!
//! Credentials in recordings are dummies and always accepted. Work in progress succeeds here.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use metal3_hosts::reconciler::{DeprovisionBudget, Parts, caches::Caches, controller};
use metal3_hosts::settings::Settings;
use metal3_ironic::Client;
use metal3_ironic::endpoint::{Endpoint, Settings as Reach};
use metal3_ironic::transport::{ResponseFuture, Transport};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_ironic::{Ironic, Options, describe_request};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::intervals::Interval;
use super::snapshot::Snapshot;
use super::timeline::{RecordedValue, Request};
use crate::golden::server::{PutError, Resource, TestServer};
use crate::values::{at, text};

/// Run time of the controller: longer than all recorded reactions of upstream.
const RUN_TIME: Duration = Duration::from_mins(10);
/// Requests that cannot be undone, or that stop the machine.
const DISRUPTIVE: [&str; 9] = [
    "provision active",
    "provision rebuild",
    "provision deleted",
    "provision clean",
    "power power off",
    "power soft power off",
    "power rebooting",
    "power soft rebooting",
    "DELETE nodes/_",
];
/// Disruptive requests of any deletion.
const DELETION_REQUESTS: [&str; 2] = ["PUT nodes/_/states/power power off", "DELETE nodes/_"];

/// Disruptive requests of upstream, from an interval until the next user action.
pub(super) fn allowed_requests(intervals: &[Interval]) -> BTreeSet<String> {
    let mut disruptive = BTreeSet::new();
    for (number, interval) in intervals.iter().enumerate() {
        disruptive.extend(
            interval
                .requests
                .iter()
                .map(describe)
                .filter(|request| is_disruptive(request)),
        );
        if number > 0 && !interval.user_actions.is_empty() {
            break;
        }
    }
    disruptive
}

/// A request in the notation of the simulator.
fn describe(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    if let Some(name) = parts.get_mut(1) {
        *name = "_";
    }
    let target = match &request.body {
        RecordedValue::Whole(body) => body.get("target").and_then(Value::as_str).unwrap_or_default(),
        RecordedValue::Absent => "",
        // Only a deployment has such a long body.
        RecordedValue::Cut => "active",
    };
    format!("{} {} {target}", request.method, parts.join("/"))
        .trim_end()
        .to_owned()
}

fn is_disruptive(request: &str) -> bool {
    DISRUPTIVE.iter().any(|harm| request.ends_with(harm))
}

/// Errors after a replay; `None` without recorded nodes.
pub(super) async fn replay(snapshot: &Snapshot, allowed: &BTreeSet<String>) -> Result<Option<Vec<String>>> {
    let Some(machines) = &snapshot.nodes else {
        return Ok(None);
    };
    let objects: Vec<&Value> = snapshot.objects.iter().map(|document| &document.value).collect();
    let mut server = TestServer::at(latest(&objects))?;
    let namespace = objects
        .iter()
        .find_map(|object| object.pointer("/metadata/namespace")?.as_str());
    let namespace = namespace.unwrap_or("default").to_owned();
    server.namespace(&namespace).await?;
    match server.put(&objects).await {
        Ok(()) => {}
        Err(PutError::Rejected(why)) => return Ok(Some(vec![format!("the server rejects it: {why}")])),
        Err(PutError::Other(error)) => return Err(error),
    }
    logins(&server, &namespace).await?;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&server.clock)));
    for machine in machines {
        let node = server.with_local_uids(&machine.shown);
        let node = node.as_object().context("a node that is no object")?;
        ironic.restore(node, &machine.shown_ports).map_err(|why| anyhow!(why))?;
    }
    let before = hosts(&server, &namespace).await?;
    let transport = Arc::new(RecordingTransport {
        ironic,
        requests: Mutex::default(),
    });
    let metrics = Metrics::new();
    let running = start(&server, &transport, &metrics)?;
    tokio::time::sleep(RUN_TIME).await;
    drop(running);
    let after = hosts(&server, &namespace).await?;
    let mut errors = lost(&before, &after);
    errors.extend(check_progress(&metrics, before.len()));
    let requests = transport.requests.lock();
    let disruptive: BTreeSet<&String> = requests.iter().filter(|request| is_disruptive(request)).collect();
    // The recording of deletions is incomplete, and some machines were off.
    let has_deletion = before
        .iter()
        .any(|host| host.pointer("/metadata/deletionTimestamp").is_some());
    let is_expected =
        |request: &String| allowed.contains(request) || (has_deletion && DELETION_REQUESTS.contains(&request.as_str()));
    let unexpected = disruptive.into_iter().filter(|request| !is_expected(request));
    errors.extend(unexpected.map(|request| format!("{request}, which upstream did not send next")));
    Ok(Some(errors))
}

/// The latest timestamp of the objects; the snapshot is a little later.
fn latest(objects: &[&Value]) -> DateTime<Utc> {
    let fields = [
        "/status/lastUpdated",
        "/metadata/creationTimestamp",
        "/metadata/deletionTimestamp",
    ];
    let times = objects
        .iter()
        .flat_map(|object| fields.map(|place| object.pointer(place)));
    let times = times.filter_map(|time| DateTime::parse_from_rfc3339(time?.as_str()?).ok());
    let last = times.max().map_or(DateTime::UNIX_EPOCH, |time| time.to_utc());
    last.checked_add_signed(TimeDelta::seconds(2)).unwrap_or(last)
}

fn place() -> Resource {
    Resource::new("metal3.io", "v1alpha1", "BareMetalHost")
}

async fn hosts(server: &TestServer, namespace: &str) -> Result<Vec<Value>> {
    server.all(&place(), namespace).await
}

/// Hosts record the resource version of their credentials, and this server assigns its own.
async fn logins(server: &TestServer, namespace: &str) -> Result<()> {
    for host in hosts(server, namespace).await? {
        let name = text(&host, "/metadata/name");
        let mut status = Map::new();
        for sort in ["goodCredentials", "triedCredentials"] {
            let of = host.pointer(&format!("/status/{sort}/credentials/name"));
            let Some(secret) = of.and_then(Value::as_str) else {
                continue;
            };
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
            // A missing Secret was never sent to Ironic.
            let Ok(secret) = server.send("GET", &path, &json!({})).await else {
                continue;
            };
            let version = at(&secret, "/metadata/resourceVersion");
            status.insert(sort.to_owned(), json!({ "credentialsVersion": version }));
        }
        if status.is_empty() {
            continue;
        }
        let path = format!("{}/status", place().path(namespace, name));
        server.send("PATCH", &path, &json!({ "status": status })).await?;
    }
    Ok(())
}

/// Hosts with a changed spec, and hosts that disappeared without a deletion.
fn lost(before: &[Value], after: &[Value]) -> Vec<String> {
    let mut errors = Vec::new();
    for host in before {
        let name = at(host, "/metadata/name");
        match after.iter().find(|after| at(after, "/metadata/name") == name) {
            Some(after) if is_as_before(at(host, "/spec"), at(after, "/spec")) => {}
            Some(after) => errors.push(format!("the spec of {name} is {}", at(after, "/spec"))),
            None if at(host, "/metadata/deletionTimestamp").is_null() => errors.push(format!("{name} does not exist")),
            None => {}
        }
    }
    errors
}

/// Whether a spec is unchanged. The architecture may be added, as upstream does.
fn is_as_before(before: Value, mut after: Value) -> bool {
    if let (true, Some(members)) = (before.get("architecture").is_none(), after.as_object_mut()) {
        members.remove("architecture");
    }
    before == after
}

/// Records every write to Ironic.
struct RecordingTransport {
    ironic: Ironic,
    requests: Mutex<Vec<String>>,
}

impl fmt::Debug for RecordingTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingTransport").finish_non_exhaustive()
    }
}

impl Transport for RecordingTransport {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_> {
        if request.method() != http::Method::GET {
            self.requests.lock().extend(describe_request(&request));
        }
        self.ironic.exchange(request)
    }
}

/// Starts the controller. Dropping the set stops it.
fn start(server: &TestServer, ironic: &Arc<RecordingTransport>, metrics: &Metrics) -> Result<JoinSet<()>> {
    let (client, caches, stop) = (
        server.cluster.client("hosts"),
        Caches::default(),
        CancellationToken::new(),
    );
    let (events, _) = EventRecorder::bounded(1);
    let endpoint = Endpoint::parse("http://ironic.example")?;
    let wire: Arc<dyn Transport> = Arc::<RecordingTransport>::clone(ironic);
    let parts = Parts {
        client: client.clone(),
        caches: caches.clone(),
        ironics: Client::over(wire, Reach::new(endpoint), Arc::clone(&server.clock)).into(),
        permit: Arc::new(|| Ok(())),
        clock: Arc::clone(&server.clock),
        events,
        metrics: metrics.clone(),
        settings: Settings::default(),
        deprovision_budget: DeprovisionBudget::default(),
        slots: 20,
        workers: 2,
    };
    let running = controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &server.clock, &stop));
    let mut tasks: JoinSet<()> = watches.into_tasks().into_iter().collect();
    tasks.spawn(running.run(stop));
    Ok(tasks)
}

/// Fails when the controller did nothing or panicked: then the absence of requests proves nothing.
fn check_progress(metrics: &Metrics, hosts: usize) -> Option<String> {
    let text = metrics.render();
    let of = |series: &str| -> u64 {
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        found.unwrap_or_default()
    };
    let passes: u64 = ["success", "requeue", "requeue_after"]
        .iter()
        .map(|result| {
            of(&format!(
                "controller_runtime_reconcile_total{{controller=\"baremetalhost\",result=\"{result}\"}}"
            ))
        })
        .sum();
    let panics = of("controller_runtime_reconcile_panics_total{controller=\"baremetalhost\"}");
    (panics > 0 || (hosts > 0 && passes == 0))
        .then(|| format!("{passes} good passes over {hosts} hosts, and {panics} panics"))
}
