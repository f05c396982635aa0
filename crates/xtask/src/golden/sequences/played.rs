//! A story, played: the stand-ins and our controllers on a simulated API server, and what the provider wrote there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use metal3_api::crd::Definition;
use metal3_capisim::kinds::{self, BYO_CLUSTER, KAMAJI_CONTROL_PLANE, Kind, SECRET, TENANT, find};
use metal3_capisim::site::Sites;
use metal3_capisim::view::Object;
use metal3_capisim::watch::{News, follow};
use metal3_capisim::{kamaji, program};
use metal3_capm3::controller::alone::Alone;
use metal3_domain::clock::Clock;
use metal3_runtime::metrics::Metrics;
use metal3_simcluster::{Cluster, Options, TokioClock, cluster_api};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Write;
use super::stories::Story;
use crate::golden::adoption::Closed;

/// Whose writes may be the provider's.
const WATCHED: [&Kind; 4] = [KAMAJI_CONTROL_PLANE, TENANT, BYO_CLUSTER, SECRET];
/// Before the message of a condition.
const APART: char = '\0';
/// Before users begin.
const MOMENT: Duration = Duration::from_secs(1);

/// Plays a story; its provider's writes, in order.
pub(super) async fn play_story(story: &Story) -> Result<Vec<Write>> {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(Options::seeded(1).clock.now()));
    let server = Cluster::start(&Options {
        clock: Arc::clone(&clock),
        ..Options::seeded(1)
    });
    server
        .install(&all_kinds())
        .map_err(|refusal| anyhow!("installing the kinds: {refusal:?}"))?;
    let (to, mut heard) = unbounded_channel();
    let mut tasks = everybody(&server, &clock);
    for kind in WATCHED {
        let say = move |news| (kind, news);
        tasks.spawn(follow(server.client("recorder"), kind.clone(), None, to.clone(), say));
    }
    sleep(MOMENT).await;
    let (user, began) = (server.client("user"), Instant::now());
    for object in (story.made)(story.name) {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let kind = find(kind).with_context(|| format!("{kind} is no kind of the stand-ins"))?;
        send(&user, "POST", &path(kind.group, kind.version, kind.plural), &object).await?;
    }
    for (second, plural, what) in story.done {
        sleep_until(began + Duration::from_secs(*second)).await;
        let kind = kinds::ALL.iter().find(|kind| kind.plural == *plural);
        let kind = kind.with_context(|| format!("{plural} are no kind of the stand-ins"))?;
        let object = format!("{}/{}", path(kind.group, kind.version, plural), story.name);
        send(&user, "PATCH", &object, &what()).await?;
    }
    sleep_until(began + story.lasts).await;
    Ok(writes(story, &mut heard))
}

/// Cluster API, Kamaji with its provider, and our controllers.
fn everybody(server: &Cluster, clock: &Arc<dyn Clock>) -> JoinSet<()> {
    let parts = |name: &str, sites: &Sites| program::Parts {
        client: server.client(name),
        sites: sites.clone(),
        clock: Arc::clone(clock),
    };
    let sites = Sites::new(1, Arc::clone(clock));
    let ours = Alone {
        client: server.client("machines"),
        clock: Arc::clone(clock),
        workloads: Arc::new(Closed),
        with_data: false,
        nudges: false,
        metrics: Metrics::new(),
        workers: 1,
    };
    let mut tasks: JoinSet<()> = ours.tasks().into_iter().collect();
    tasks.spawn(program::run(parts("cluster-api", &sites)));
    tasks.spawn(kamaji::run(parts("kamaji", &sites)));
    tasks
}

/// Those of the stand-ins, ours, and what both look at.
fn all_kinds() -> Vec<Definition> {
    let mut all = kinds::definitions();
    for mut kind in metal3_api::catalog::definitions().into_iter().chain(cluster_api()) {
        if all
            .iter()
            .all(|known| (known.group, known.kind) != (kind.group, kind.kind))
        {
            kind.versions.retain(|version| version.storage);
            kind.conversion = None;
            all.push(kind);
        }
    }
    all
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("/apis/{group}/{version}/namespaces/default/{plural}")
}

async fn send(user: &kube::Client, method: &str, path: &str, body: &Value) -> Result<()> {
    let media = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request
        .header("content-type", media)
        .body(body.to_string().into_bytes())?;
    user.request::<Value>(request)
        .await
        .with_context(|| format!("{method} {path}"))?;
    Ok(())
}

/// The writes, by the versions that the server gave them. What Cluster API and users write has none of these members.
fn writes(story: &Story, heard: &mut UnboundedReceiver<(&'static Kind, News)>) -> Vec<Write> {
    let mut seen: BTreeMap<u64, (&'static Kind, Object)> = BTreeMap::new();
    while let Ok((kind, news)) = heard.try_recv() {
        if let News::Seen(object) = news
            && let Ok(version) = object.text("/metadata/resourceVersion").parse()
        {
            seen.insert(version, (kind, object));
        }
    }
    let (mut last, mut writes) = (BTreeMap::new(), Vec::new());
    for (kind, object) in seen.into_values() {
        let write = match kind.kind {
            "Secret" if object.name() != format!("{}-kubeconfig", story.name) => continue,
            "Secret" | "TenantControlPlane" if last.contains_key(kind.kind) => continue,
            "Secret" | "TenantControlPlane" => Write::from([format!("{} made", kind.kind)]),
            _ => changed(kind.kind, last.get(kind.kind), &object),
        };
        if !write.is_empty() {
            writes.push(write);
        }
        last.insert(kind.kind, object);
    }
    writes
}

/// What is new in an object. As users make it, nothing is.
fn changed(kind: &str, before: Option<&Object>, after: &Object) -> Write {
    let Some(before) = before else { return Write::new() };
    let (before, after) = (members(before), members(after));
    let is_new = |(path, value): &(&String, &String)| before.get(*path) != Some(value);
    let told = |(path, value): (&String, &String)| match path.split('.').next() {
        Some("status") => format!("{kind} {path}={}", value.split(APART).next().unwrap_or_default()),
        _ => format!("{kind} {path}"),
    };
    after.iter().filter(is_new).map(told).collect()
}

/// The members that are compared, as a timeline calls them.
fn members(object: &Object) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (place, path) in [
        ("/metadata/finalizers", "metadata.finalizers"),
        ("/spec/controlPlaneEndpoint/host", "spec.controlPlaneEndpoint.host"),
        ("/spec/controlPlaneEndpoint/port", "spec.controlPlaneEndpoint.port"),
    ] {
        found.extend(object.at(place).map(|value| (path.to_owned(), value.to_string())));
    }
    if let Some(status) = object.at("/status") {
        leaves(status, "status", &mut found);
    }
    found
}

fn leaves(value: &Value, path: &str, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| *name != "conditions") {
                leaves(member, &format!("{path}.{name}"), into);
            }
            let conditions = members.get("conditions").and_then(Value::as_array);
            for condition in conditions.into_iter().flatten() {
                let text = |member| condition.get(member).and_then(Value::as_str).unwrap_or_default();
                // The message tells one failure from another, as the timeline does; it is in words of our own.
                into.insert(
                    format!("{path}.conditions[{}]", text("type")),
                    format!("{} {}{APART}{}", text("status"), text("reason"), text("message")),
                );
            }
        }
        Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}
