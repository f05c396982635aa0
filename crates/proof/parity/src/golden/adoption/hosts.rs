//! The moments of hosts, taken over: the objects are put into a server of their own and the nodes into a simulated Ironic,
//! both as they were; our controller runs on them for some minutes, and nothing was done to a machine that upstream would
//! not also have done next, no host lost its spec, and none is gone that was not on its way out.
//!
//! Logins are dummies in the recordings, and the machines take any. Whether work that was under way succeeded is not
//! told by a moment; here it does.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use metal3_hosts::controller::{DeprovisionBudget, Parts, caches::Caches, controller};
use metal3_hosts::settings::Settings;
use metal3_ironic::Client;
use metal3_ironic::endpoint::{Endpoint, Settings as Reach};
use metal3_ironic::transport::{ResponseFuture, Transport};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_ironic::{Ironic, Options, describe_request};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::moment::Moment;
use super::stretches::Stretch;
use super::timeline::{Request, Shown};
use crate::golden::site::{NotPut, Place, Site};

/// So long our controller runs: all that upstream was recorded to do next took less.
const WATCHED: Duration = Duration::from_mins(10);
/// What is done to a machine and cannot be undone, or stops what runs on it.
const HARMS: [&str; 9] = [
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
/// What the end of a host that goes is in any case.
const LEAVING: [&str; 2] = ["PUT nodes/_/states/power power off", "DELETE nodes/_"];

/// What upstream asked that harms, from a stretch on until a person did something else.
pub(super) fn next_harms(stretches: &[Stretch]) -> BTreeSet<String> {
    let mut harms = BTreeSet::new();
    for (number, stretch) in stretches.iter().enumerate() {
        harms.extend(stretch.requests.iter().map(said).filter(|words| is_harm(words)));
        if number > 0 && !stretch.acts.is_empty() {
            break;
        }
    }
    harms
}

/// A request in the words of the simulator.
fn said(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    if let Some(name) = parts.get_mut(1) {
        *name = "_";
    }
    let target = match &request.body {
        Shown::Whole(body) => body.get("target").and_then(Value::as_str).unwrap_or_default(),
        Shown::Absent => "",
        // Only a deployment carries so much.
        Shown::Cut => "active",
    };
    format!("{} {} {target}", request.method, parts.join("/"))
        .trim_end()
        .to_owned()
}

fn is_harm(words: &str) -> bool {
    HARMS.iter().any(|harm| words.ends_with(harm))
}

/// What is wrong after a moment was taken over. Nothing, where nobody had looked at the nodes.
pub(super) async fn replayed(moment: &Moment, allowed: &BTreeSet<String>) -> Result<Option<Vec<String>>> {
    let Some(machines) = &moment.nodes else { return Ok(None) };
    let objects: Vec<&Value> = moment.objects.iter().map(|document| &document.value).collect();
    let mut site = Site::at(latest(&objects))?;
    let namespace = objects
        .iter()
        .find_map(|object| object.pointer("/metadata/namespace")?.as_str());
    let namespace = namespace.unwrap_or("default").to_owned();
    site.namespace(&namespace).await?;
    match site.put(&objects).await {
        Ok(()) => {}
        Err(NotPut::Refused(why)) => return Ok(Some(vec![format!("our server refuses it: {why}")])),
        Err(NotPut::ConnectionBroken(error)) => return Err(error),
    }
    logins(&site, &namespace).await?;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&site.clock)));
    for machine in machines {
        let node = site.within(&machine.shown);
        let node = node.as_object().context("a node that is no object")?;
        ironic.restore(node, &machine.shown_ports).map_err(|why| anyhow!(why))?;
    }
    let before = hosts(&site, &namespace).await?;
    let heard = Arc::new(Heard {
        ironic,
        words: Mutex::default(),
    });
    let metrics = Metrics::new();
    let running = start(&site, &heard, &metrics)?;
    tokio::time::sleep(WATCHED).await;
    drop(running);
    let after = hosts(&site, &namespace).await?;
    let mut wrong = lost(&before, &after);
    wrong.extend(idle(&metrics, before.len()));
    let words = heard.words.lock().unwrap_or_else(PoisonError::into_inner);
    let harms: BTreeSet<&String> = words.iter().filter(|words| is_harm(words)).collect();
    // Upstream came to a stop for one of those who were to go, and found the machines of two off by chance.
    let leaves = before
        .iter()
        .any(|host| host.pointer("/metadata/deletionTimestamp").is_some());
    let is_asked = |words: &String| allowed.contains(words) || (leaves && LEAVING.contains(&words.as_str()));
    let unasked = harms.into_iter().filter(|words| !is_asked(words));
    wrong.extend(unasked.map(|words| format!("{words}, which upstream did not ask next")));
    Ok(Some(wrong))
}

/// The last time that an object tells of itself: the moment is a little later.
fn latest(objects: &[&Value]) -> DateTime<Utc> {
    let told = [
        "/status/lastUpdated",
        "/metadata/creationTimestamp",
        "/metadata/deletionTimestamp",
    ];
    let times = objects
        .iter()
        .flat_map(|object| told.map(|place| object.pointer(place)));
    let times = times.filter_map(|time| DateTime::parse_from_rfc3339(time?.as_str()?).ok());
    let last = times.max().map_or(DateTime::UNIX_EPOCH, |time| time.to_utc());
    last.checked_add_signed(TimeDelta::seconds(2)).unwrap_or(last)
}

fn place() -> Place {
    Place::new("metal3.io", "v1alpha1", "BareMetalHost")
}

async fn hosts(site: &Site, namespace: &str) -> Result<Vec<Value>> {
    site.all(&place(), namespace).await
}

/// A host knows by its version which login Ironic has, and this server gives its own versions.
async fn logins(site: &Site, namespace: &str) -> Result<()> {
    for host in hosts(site, namespace).await? {
        let name = host
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut status = json!({});
        for sort in ["goodCredentials", "triedCredentials"] {
            let of = host.pointer(&format!("/status/{sort}/credentials/name"));
            let Some(secret) = of.and_then(Value::as_str) else {
                continue;
            };
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
            // A login that is gone is one that Ironic may not have.
            let Ok(secret) = site.send("GET", &path, &json!({})).await else {
                continue;
            };
            let version = secret.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
            if let Some(members) = status.as_object_mut() {
                members.insert(sort.to_owned(), json!({ "credentialsVersion": version }));
            }
        }
        if status == json!({}) {
            continue;
        }
        let path = format!("{}/status", place().path(namespace, name));
        site.send("PATCH", &path, &json!({ "status": status })).await?;
    }
    Ok(())
}

/// Hosts that were changed in what their owner says, or are gone without having been on their way.
fn lost(before: &[Value], after: &[Value]) -> Vec<String> {
    let at = |host: &Value, place: &str| host.pointer(place).cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for host in before {
        let name = at(host, "/metadata/name");
        match after.iter().find(|after| at(after, "/metadata/name") == name) {
            Some(after) if is_as_before(at(host, "/spec"), at(after, "/spec")) => {}
            Some(after) => wrong.push(format!("the spec of {name} is {}", at(after, "/spec"))),
            None if at(host, "/metadata/deletionTimestamp").is_null() => wrong.push(format!("{name} is gone")),
            None => {}
        }
    }
    wrong
}

/// Whether a spec says what it said. Once the hardware is known its architecture is written down, as upstream does.
fn is_as_before(before: Value, mut after: Value) -> bool {
    if let (true, Some(members)) = (before.get("architecture").is_none(), after.as_object_mut()) {
        members.remove("architecture");
    }
    before == after
}

/// Ironic, and every change that was asked of it.
struct Heard {
    ironic: Ironic,
    words: Mutex<Vec<String>>,
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heard").finish_non_exhaustive()
    }
}

impl Transport for Heard {
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_> {
        if request.method() != http::Method::GET {
            let mut heard = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            heard.extend(describe_request(&request));
        }
        self.ironic.exchange(request)
    }
}

/// Starts our controller. Dropping the set ends it.
fn start(site: &Site, ironic: &Arc<Heard>, metrics: &Metrics) -> Result<JoinSet<()>> {
    let (client, caches, stop) = (
        site.cluster.client("hosts"),
        Caches::default(),
        CancellationToken::new(),
    );
    let (events, _) = EventRecorder::bounded(1);
    let mut tasks = JoinSet::new();
    let endpoint = Endpoint::parse("http://ironic.example")?;
    let wire: Arc<dyn Transport> = Arc::<Heard>::clone(ironic);
    let parts = Parts {
        client: client.clone(),
        caches: caches.clone(),
        ironic: Client::over(wire, Reach::new(endpoint), Arc::clone(&site.clock)),
        permit: Arc::new(|| Ok(())),
        clock: Arc::clone(&site.clock),
        events,
        metrics: metrics.clone(),
        settings: Settings::default(),
        deprovision_budget: DeprovisionBudget::default(),
        slots: 20,
        workers: 2,
    };
    let running = controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &site.clock, &stop));
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    tasks.spawn(running.run(stop));
    Ok(tasks)
}

/// What is wrong where nobody looked, or somebody fell over: then it proves nothing that no harm was done.
fn idle(metrics: &Metrics, hosts: usize) -> Option<String> {
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
