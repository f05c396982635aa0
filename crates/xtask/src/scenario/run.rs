//! A scenario on the simulated world, under time that costs nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Method;
use metal3_capisim::view::{Object, endpoint};
use metal3_domain::clock::Clock;
use metal3_manager::sandbox::variables::substitute;
use metal3_manager::sandbox::world::{NAMESPACE, Setup, World, collection, version_of};
use metal3_runtime::clock::TimerClock;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::journal::Journal;
use super::script::{Apply, Nodes, Scenario, Step, Wish};
use crate::documents;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(3_600);
const GLANCE: Duration = Duration::from_secs(3);
/// Lines of the journal under a failure.
const LAST: usize = 25;
/// Who is watched where nothing may be written.
const PRODUCTS: [&str; 3] = ["ipam", "hosts", "capm3"];

/// A world in which a scenario runs.
pub(super) struct Stage<'a> {
    world: World,
    folder: &'a Path,
    journal: Journal,
    hosts: u32,
    _tasks: JoinSet<()>,
}

/// Runs a scenario; gives the journal.
pub(super) fn run(scenario: &Scenario, folder: &Path, seed: u64) -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .context("start the async runtime")?;
    runtime.block_on(async {
        let mut stage = Stage::set(scenario, folder, seed).await?;
        for (number, step) in scenario.steps.iter().enumerate() {
            stage.take(step).await.with_context(|| stage.report(number, step))?;
        }
        Ok(stage.journal.lines())
    })
}

impl<'a> Stage<'a> {
    async fn set(scenario: &Scenario, folder: &'a Path, seed: u64) -> Result<Self> {
        let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let world = World::begin(&Setup::unhurried(seed, clock))?;
        let mut tasks = JoinSet::new();
        let journal = Journal::keep(&world, &mut tasks);
        let mut stage = Self {
            world,
            folder,
            journal,
            hosts: 0,
            _tasks: tasks,
        };
        stage.add_hosts(scenario.hosts).await?;
        Ok(stage)
    }

    async fn add_hosts(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            self.hosts = self.hosts.saturating_add(1);
            self.world.add_host(self.hosts, &json!({})).await?;
        }
        Ok(())
    }

    async fn take(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Apply(apply) => self.apply(apply).await,
            Step::Change { object, patch } => {
                let path = path_of(object)?;
                let changed = self
                    .world
                    .send(Method::PATCH, &path, "application/merge-patch+json", patch);
                Ok(changed.await.map(drop)?)
            }
            Step::Delete(object) => {
                let (path, body) = (path_of(object)?, json!({}));
                let deleted = self.world.send(Method::DELETE, &path, "application/json", &body);
                Ok(deleted.await.map(drop)?)
            }
            Step::Wait(wish) => self.wait(wish).await,
            Step::Check(wish) => self.check(wish).await,
            Step::Holds { wish, during } => {
                let end = Instant::now() + during.0;
                while Instant::now() < end {
                    self.check(wish).await?;
                    sleep(GLANCE).await;
                }
                Ok(())
            }
            Step::Nodes(nodes) => self.nodes(nodes).await,
            Step::Hosts(count) => self.add_hosts(*count).await,
            Step::Fault { host, has } => {
                self.world
                    .machine(*host, |machine| machine.faults = has.iter().copied().collect());
                Ok(())
            }
            Step::Mend(host) => {
                self.world
                    .machine(*host, |machine| machine.faults = Vec::new().into_iter().collect());
                Ok(())
            }
            Step::IronicDown(span) => {
                self.world.ironic.restart(span.0);
                Ok(())
            }
            Step::Restart => {
                self.world.restart();
                Ok(())
            }
            Step::Quiet(span) => self.quiet(span.0).await,
            Step::Written(times) => {
                let each =
                    (1..=self.hosts).filter_map(|host| self.world.machine(host, |machine| machine.tally.written));
                let found: u32 = each.sum();
                anyhow::ensure!(found == *times, "disks were written {found} times, not {times}");
                Ok(())
            }
        }
    }

    async fn apply(&self, apply: &Apply) -> Result<()> {
        let file = self.folder.join(&apply.file);
        let text = documents::text(&file)?;
        let text = substitute(&text, &apply.with)
            .map_err(|missing| anyhow::anyhow!("{}: no value for {}", file.display(), missing.join(", ")))?;
        for document in documents::parse(&text, &file)? {
            self.world
                .apply(&document.value)
                .await
                .with_context(|| document.label())?;
        }
        Ok(())
    }

    async fn wait(&self, wish: &Wish) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let Err(why) = self.check(wish).await else {
                return Ok(());
            };
            if Instant::now() > end {
                return Err(why.context(format!("not within {PATIENCE:?}")));
            }
            sleep(GLANCE).await;
        }
    }

    async fn check(&self, wish: &Wish) -> Result<()> {
        let all = self.list(&wish.kind).await?;
        let meant: Vec<&Object> = all.iter().filter(|object| is_meant(wish, object)).collect();
        let found = meant.iter().filter(|object| is_so(wish, object)).count();
        let wanted = wish.count.unwrap_or(1);
        if found == wanted {
            return Ok(());
        }
        let shown: Vec<String> = meant.iter().map(|object| show(object)).collect();
        bail!("{found} of {} are so, not {wanted}:\n{}", meant.len(), shown.join("\n"));
    }

    async fn list(&self, kind: &str) -> Result<Vec<Object>> {
        let path = collection(&version(kind)?, kind, NAMESPACE).map_err(anyhow::Error::msg)?;
        let list = self
            .world
            .send(Method::GET, &path, "application/json", &Value::Null)
            .await?;
        let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(items.into_iter().map(Object).collect())
    }

    async fn nodes(&self, wish: &Nodes) -> Result<()> {
        let clusters = self.list("Cluster").await?;
        let cluster = clusters.iter().find(|cluster| cluster.name() == wish.cluster);
        let at = cluster.and_then(endpoint).context("the Cluster has no endpoint")?;
        let site = self
            .world
            .sites
            .at(&at)
            .with_context(|| format!("nobody answers at {at}"))?;
        let request = http::Request::get("/api/v1/nodes").body(Vec::new())?;
        let list: Value = site.client("scenario").request(request).await?;
        let nodes = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let nodes: Vec<Object> = nodes.into_iter().map(Object).collect();
        let fits = |node: &&Object| {
            wish.labels.iter().all(|label| node.label(label).is_some()) && !node.text("/spec/providerID").is_empty()
        };
        let found = nodes.iter().filter(fits).count();
        anyhow::ensure!(
            found == wish.count,
            "{found} of {} Nodes are so: {nodes:#?}",
            nodes.len()
        );
        Ok(())
    }

    async fn quiet(&self, span: Duration) -> Result<()> {
        // What was under way may end.
        sleep(Duration::from_secs(300)).await;
        let heard = self.world.cluster.audit();
        for product in PRODUCTS {
            anyhow::ensure!(
                heard.counts().any(|((user, ..), _)| user == product),
                "nobody asks as {product}: its silence proves nothing"
            );
        }
        self.world.cluster.reset_audit();
        sleep(span).await;
        let audit = self.world.cluster.audit();
        let is_write = |verb: &str| ["create", "update", "patch", "delete"].contains(&verb);
        let writes: Vec<_> = audit
            .counts()
            .filter(|((user, verb, _), _)| PRODUCTS.contains(&user.as_str()) && is_write(verb))
            .map(|(what, count)| format!("{what:?}: {count}"))
            .collect();
        anyhow::ensure!(writes.is_empty(), "it is not quiet: {}", writes.join(", "));
        Ok(())
    }

    fn report(&self, number: usize, step: &Step) -> String {
        let lines = self.journal.lines();
        let last = lines.iter().skip(lines.len().saturating_sub(LAST));
        let last: Vec<&str> = last.map(String::as_str).collect();
        format!(
            "step {}: {step:?}\nwhat happened last:\n{}\n",
            number.saturating_add(1),
            last.join("\n")
        )
    }
}

/// Where an object is, of `Kind/name`.
fn path_of(object: &str) -> Result<String> {
    let (kind, name) = object
        .split_once('/')
        .with_context(|| format!("{object:?}: write Kind/name"))?;
    let place = collection(&version(kind)?, kind, NAMESPACE).map_err(anyhow::Error::msg)?;
    Ok(format!("{place}/{name}"))
}

fn version(kind: &str) -> Result<String> {
    version_of(kind).with_context(|| format!("kind {kind}: nobody here knows it"))
}

fn is_meant(wish: &Wish, object: &Object) -> bool {
    let label = object.label("cluster.x-k8s.io/cluster-name");
    wish.name.as_deref().is_none_or(|name| object.name() == name)
        && wish.cluster.as_deref().is_none_or(|cluster| label == Some(cluster))
}

fn is_so(wish: &Wish, object: &Object) -> bool {
    let text = object.0.to_string();
    let has = |aspect: &str, status: &str| {
        let found = object.condition(aspect).and_then(|condition| condition.get("status"));
        found.and_then(Value::as_str) == Some(status)
    };
    wish.says.iter().all(|(at, value)| object.part(at) == *value)
        && wish.condition.iter().all(|(aspect, status)| has(aspect, status))
        && wish.mentions.iter().all(|word| text.contains(word.as_str()))
}

/// An object, as far as a reader of a failure wants to see it.
fn show(object: &Object) -> String {
    let spec = object.part("/spec").to_string();
    let spec: String = spec.chars().take(300).collect();
    format!(
        "  {} {}\n    spec {spec}\n    status {}",
        object.kind(),
        object.key(),
        object.part("/status")
    )
}
