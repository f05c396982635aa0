//! A scenario on the simulated world, under time that costs nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use metal3_domain::clock::Clock;
use metal3_sandbox::variables::substitute;
use metal3_sandbox::world::{Faults, NAMESPACE, Setup, World, collection, version_of};
use metal3_runtime::clock::TimerClock;
use metal3_scenario::{Apply, Asked, Nodes, Observed, Scenario, Step, Wish, kind_and_name, published};
use metal3_sim_capi::view::{Object, endpoint};
use metal3_sim_faults::Plan;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::journal::Journal;
use super::seen::Seen;
use super::trouble;
use metal3_files::documents;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(3_600);
const GLANCE: Duration = Duration::from_secs(3);
/// Lines of the journal under a failure.
const LAST: usize = 25;
/// Who is watched where nothing may be written.
const PRODUCTS: [&str; 3] = ["ipam", "hosts", "capm3"];
/// What they are in counts.
const CALLED: [&str; 3] = ["addresses", "hosts", "machines"];

/// A world in which a scenario runs.
pub(super) struct Stage<'a> {
    world: World,
    files: Files<'a>,
    /// Where hosts and objects are that name no namespace.
    namespace: String,
    seen: Seen,
    hosts: u32,
    /// What goes wrong follows from it, where something is to.
    trouble: Option<u64>,
    struck: Struck,
    /// The server's version when the witness came.
    begun: u64,
}

/// Requests that failed on purpose: at the API server, and at Ironic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Struck {
    pub(super) at_server: u64,
    pub(super) at_ironic: u64,
}

impl Struck {
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            at_server: self.at_server.saturating_add(other.at_server),
            at_ironic: self.at_ironic.saturating_add(other.at_ironic),
        }
    }

    pub(super) const fn is_none(self) -> bool {
        self.at_server == 0 && self.at_ironic == 0
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) journal: Journal,
    /// Writes after which the invariants were checked.
    pub(super) checks: usize,
    /// What objects said of themselves.
    pub(super) observed: Observed,
    /// What was asked, refused requests and reads included: of the API server, and of Ironic.
    pub(super) asked: (metal3_sim_cluster::Audit, metal3_sim_ironic::Audit),
    pub(super) struck: Struck,
}

impl Run {
    /// What the products asked for, in the script of this name.
    pub(super) fn asked_in(&self, script: &str) -> Asked {
        let mut asked = Asked::default();
        let (server, ironic) = &self.asked;
        for ((user, verb, resource), number) in server.counts() {
            if let Some((_, product)) = PRODUCTS.iter().zip(CALLED).find(|(name, _)| user == *name) {
                asked.of_server(script, product, (verb, resource), number);
            }
        }
        for ((method, path), number) in ironic.counts() {
            asked.of_ironic(script, method, path, number);
        }
        asked
    }
}

/// How a scenario is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) seed: u64,
    /// Requests of the products fail at random.
    pub(super) troubled: bool,
}

/// Where the files are that a script applies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    /// Its own folder.
    pub(super) own: &'a Path,
    /// That of what others have published, where there is one.
    pub(super) published: Option<&'a Path>,
}

/// Runs a scenario.
pub(super) fn run(scenario: &Scenario, files: Files<'_>, setting: Setting) -> Result<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .context("start the async runtime")?;
    runtime.block_on(async {
        let mut stage = Stage::set(scenario, files, setting).await?;
        for (number, step) in scenario.steps.iter().enumerate() {
            let taken = match stage.take(step).await {
                Ok(()) => stage.seen.nothing_broken(),
                Err(failed) => stage.seen.nothing_broken().and(Err(failed)),
            };
            taken.with_context(|| stage.report(number, step))?;
        }
        stage.run()
    })
}

impl<'a> Stage<'a> {
    async fn set(scenario: &Scenario, files: Files<'a>, setting: Setting) -> Result<Self> {
        let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let mut setup = Setup::unhurried(setting.seed, clock);
        if let Some(namespace) = &scenario.namespace {
            setup.namespace.clone_from(namespace);
        }
        let world = World::begin(&setup)?;
        if setup.namespace != NAMESPACE {
            let room = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": setup.namespace } });
            let path = "/api/v1/namespaces";
            world.send(Method::POST, path, "application/json", &room).await?;
        }
        let mut stage = Self {
            seen: Seen::of(&world),
            begun: world.cluster.version(),
            world,
            files,
            namespace: setup.namespace,
            hosts: 0,
            trouble: setting.troubled.then_some(setting.seed),
            struck: Struck::default(),
        };
        stage.suffer();
        stage.add_hosts(scenario.hosts).await?;
        Ok(stage)
    }

    /// From here on requests fail as the seed says, if they are to.
    fn suffer(&self) {
        if let Some(seed) = self.trouble {
            self.world.cluster.inject_for(&PRODUCTS, trouble::at_server(seed));
            self.world.ironic.inject(trouble::at_ironic(seed));
        }
    }

    fn calm_down(&mut self) {
        self.struck = self.struck.and(Struck {
            at_server: self.world.cluster.injected(),
            at_ironic: self.world.ironic.injected(),
        });
        self.world.cluster.inject(Plan::none());
        self.world.ironic.inject(Plan::none());
    }

    /// What it came to.
    fn run(mut self) -> Result<Run> {
        self.calm_down();
        let writes = self.world.cluster.version().saturating_sub(self.begun);
        let (journal, checks, observed) = self.seen.so_far();
        anyhow::ensure!(
            u64::try_from(checks) == Ok(writes),
            "{checks} of {writes} writes were checked"
        );
        let asked = (self.world.cluster.audit(), self.world.ironic.audit());
        let struck = self.struck;
        Ok(Run {
            journal,
            checks,
            observed,
            asked,
            struck,
        })
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
            Step::Published(file) => self.publish(file).await,
            Step::Change { object, patch } => {
                let path = self.path_of(object)?;
                let changed = self
                    .world
                    .send(Method::PATCH, &path, "application/merge-patch+json", patch);
                Ok(changed.await.map(drop)?)
            }
            Step::Delete(object) => {
                let (path, body) = (self.path_of(object)?, json!({}));
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
            Step::Fault { host, has } => self.break_machine(*host, has),
            Step::Mend(host) => self.break_machine(*host, &[]),
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

    /// Makes this all that is wrong with a machine.
    fn break_machine(&self, host: u32, has: &[Value]) -> Result<()> {
        let faults: Faults = serde_json::from_value(has.into())?;
        self.world.machine(host, |machine| machine.faults = faults);
        Ok(())
    }

    async fn apply(&self, apply: &Apply) -> Result<()> {
        let file = self.files.own.join(&apply.file);
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

    async fn publish(&self, file: &str) -> Result<()> {
        let folder = self.files.published;
        let folder = folder.context("no folder of what others have published is known: name it with --published")?;
        let file = folder.join(file);
        let objects = published(&documents::text(&file)?).with_context(|| file.display().to_string())?;
        for object in objects {
            self.world
                .apply(&object)
                .await
                .with_context(|| file.display().to_string())?;
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
        wish.judge(&all)
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let path = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        let list = self
            .world
            .send(Method::GET, &path, "application/json", &Value::Null)
            .await?;
        Ok(items(&list))
    }

    async fn nodes(&self, wish: &Nodes) -> Result<()> {
        let mut clusters = self.list("Cluster").await?.into_iter().map(Object);
        let cluster = clusters.find(|cluster| cluster.name() == wish.cluster);
        let at = cluster
            .as_ref()
            .and_then(endpoint)
            .context("the Cluster has no endpoint")?;
        let site = self
            .world
            .workloads
            .at(&at)
            .with_context(|| format!("nobody answers at {at}"))?;
        let request = http::Request::get("/api/v1/nodes").body(Vec::new())?;
        let list: Value = site.client("scenario").request(request).await?;
        wish.judge(&items(&list))
    }

    async fn quiet(&mut self, span: Duration) -> Result<()> {
        // What was under way may end, and who fails has something to write.
        self.calm_down();
        sleep(Duration::from_secs(300)).await;
        let heard = self.world.cluster.audit();
        for product in PRODUCTS {
            anyhow::ensure!(
                heard.counts().any(|((user, ..), _)| user == product),
                "nobody asks as {product}: its silence proves nothing"
            );
        }
        sleep(span).await;
        let audit = self.world.cluster.audit();
        let is_write = |verb: &str| ["create", "update", "patch", "delete"].contains(&verb);
        let writes: Vec<_> = audit
            .counts()
            .filter(|((user, verb, _), _)| PRODUCTS.contains(&user.as_str()) && is_write(verb))
            .filter(|((user, verb, kind), count)| *count > heard.of(user, verb, kind))
            .map(|(what, _)| format!("{what:?}"))
            .collect();
        anyhow::ensure!(writes.is_empty(), "it is not quiet: {}", writes.join(", "));
        self.suffer();
        Ok(())
    }

    /// Where an object is, of `Kind/name`.
    fn path_of(&self, object: &str) -> Result<String> {
        let (kind, name) = kind_and_name(object)?;
        let place = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        Ok(format!("{place}/{name}"))
    }

    fn report(&self, number: usize, step: &Step) -> String {
        let last = self.seen.last(LAST);
        format!(
            "step {}: {step:?}\nwhat happened last:\n{last}\n",
            number.saturating_add(1)
        )
    }
}

fn version(kind: &str) -> Result<String> {
    version_of(kind).with_context(|| format!("kind {kind}: nobody here knows it"))
}

/// The objects of a list.
fn items(list: &Value) -> Vec<Value> {
    list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}
