//! Runs a scenario on the simulators under paused time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sandbox::world::{Faults, NAMESPACE, Setup, World, collection, host_name, version_of};
use metal3_scenario::{
    Apply, Expectation, ExpectedNodes, ObservedStates, RequestCounts, Scenario, Step, kind_and_name, published,
};
use metal3_sim_capi::view::{Object, endpoint};
use metal3_sim_faults::Plan;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::explained::Explained;
use super::faults;
use super::journal::Journal;
use super::recorder::Recorder;
use crate::world::{PRODUCTS, apply_file, simulated_time};
use metal3_files::documents;

/// Journal lines shown with a failure.
const LAST: usize = 25;
/// The names of [`PRODUCTS`] in request counts.
const PRODUCT_NAMES: [&str; 3] = ["addresses", "hosts", "machines"];

/// A running scenario.
pub(super) struct Runner<'a> {
    world: World,
    files: Files<'a>,
    /// Namespace of hosts, and of objects without one.
    pub(super) namespace: String,
    pub(super) recorder: Recorder,
    hosts: u32,
    /// Seed of the faults, if any.
    faults: Option<u64>,
    injected: InjectedFaults,
    /// Whether what waits is explained once a minute: it looks at all objects for each object.
    pub(super) explains: bool,
    /// Resource version at the start of the recording.
    first_version: u64,
}

/// Numbers of injected faults: at the API server, and at Ironic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InjectedFaults {
    pub(super) at_server: u64,
    pub(super) at_ironic: u64,
}

impl InjectedFaults {
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

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) journal: Journal,
    /// Number of writes after which the invariants were checked.
    pub(super) checks: usize,
    /// Explanations of what waited.
    pub(super) explained: Explained,
    /// Reported states of objects.
    pub(super) observed: ObservedStates,
    /// Audit of all requests, including rejected ones and reads: of the API server, and of Ironic.
    pub(super) audits: (metal3_sim_cluster::Audit, metal3_sim_ironic::Audit),
    pub(super) injected: InjectedFaults,
}

impl Run {
    /// Request counts of the products, under the name of the scenario.
    pub(super) fn counts_in(&self, script: &str) -> RequestCounts {
        let mut counts = RequestCounts::default();
        let (server, ironic) = &self.audits;
        for ((user, verb, resource), number) in server.counts() {
            if let Some((_, product)) = PRODUCTS.iter().zip(PRODUCT_NAMES).find(|(name, _)| user == *name) {
                counts.count_api_request(script, product, (verb, resource), number);
            }
        }
        for ((method, path), number) in ironic.counts() {
            counts.count_ironic_request(script, method, path, number);
        }
        counts
    }
}

/// Options of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunOptions {
    pub(super) seed: u64,
    /// Whether requests of the products fail at random.
    pub(super) with_faults: bool,
    /// Whether the API server lacks v1beta1 of Cluster API, which its release 1.16 removes.
    pub(super) without_v1beta1: bool,
}

/// Folders of applied files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    /// Folder of the scenario.
    pub(super) own: &'a Path,
    /// Folder of published manifests, if given.
    pub(super) published: Option<&'a Path>,
}

/// Runs a scenario.
pub(super) fn run(scenario: &Scenario, files: Files<'_>, options: RunOptions) -> Result<Run> {
    let runtime = simulated_time()?;
    runtime.block_on(async {
        let mut runner = Runner::start(scenario, files, options).await?;
        for (number, step) in scenario.steps.iter().enumerate() {
            let result = match runner.perform(step).await {
                Ok(()) => runner.recorder.ensure_no_violation(),
                Err(failed) => runner.recorder.ensure_no_violation().and(Err(failed)),
            };
            result.with_context(|| runner.report(number, step))?;
        }
        runner.finish()
    })
}

impl<'a> Runner<'a> {
    async fn start(scenario: &Scenario, files: Files<'a>, options: RunOptions) -> Result<Self> {
        let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let mut setup = Setup::real_time(options.seed, clock);
        if let Some(namespace) = &scenario.namespace {
            setup.namespace.clone_from(namespace);
        }
        setup.serves_v1beta1 = !options.without_v1beta1;
        setup.looks_before_joins = scenario.looks_before_joins;
        let world = World::start(&setup)?;
        if setup.namespace != NAMESPACE {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": setup.namespace } });
            let path = "/api/v1/namespaces";
            world.send(Method::POST, path, "application/json", &namespace).await?;
        }
        let mut runner = Self {
            recorder: Recorder::of(&world),
            first_version: world.cluster.version(),
            world,
            files,
            namespace: setup.namespace,
            hosts: 0,
            faults: options.with_faults.then_some(options.seed),
            injected: InjectedFaults::default(),
            explains: true,
        };
        runner.inject_faults();
        runner.add_hosts(scenario.hosts).await?;
        Ok(runner)
    }

    /// Injects the faults of the seed, if any, from now on.
    fn inject_faults(&self) {
        if let Some(seed) = self.faults {
            self.world.cluster.inject_for(&PRODUCTS, faults::at_server(seed));
            self.world.ironic.inject(faults::at_ironic(seed));
        }
    }

    fn stop_faults(&mut self) {
        self.injected = self.injected.and(InjectedFaults {
            at_server: self.world.cluster.injected(),
            at_ironic: self.world.ironic.injected(),
        });
        self.world.cluster.inject(Plan::none());
        self.world.ironic.inject(Plan::none());
    }

    /// Checks that every write was checked, and returns the result.
    fn finish(mut self) -> Result<Run> {
        self.stop_faults();
        let writes = self.world.cluster.version().saturating_sub(self.first_version);
        let (journal, checks, observed) = self.recorder.results();
        anyhow::ensure!(
            u64::try_from(checks) == Ok(writes),
            "{checks} of {writes} writes were checked"
        );
        let explained = self.recorder.explained();
        let audits = (self.world.cluster.audit(), self.world.ironic.audit());
        let injected = self.injected;
        Ok(Run {
            journal,
            checks,
            explained,
            observed,
            audits,
            injected,
        })
    }

    async fn add_hosts(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            self.hosts = self.hosts.saturating_add(1);
            self.world.add_host(self.hosts, &json!({})).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, step: &Step) -> Result<()> {
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
            Step::DeleteMachineOf(host) => self.delete_machine_of(*host).await,
            Step::Wait(expectation) => self.wait(expectation).await,
            Step::Check(expectation) => self.check(expectation).await,
            Step::Holds { expectation, during } => self.holds(expectation, during.0).await,
            Step::Why(cause) => self.wait_for_cause(cause).await,
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
                    (1..=self.hosts).filter_map(|host| self.world.machine(host, |machine| machine.counts.written));
                let found: u32 = each.sum();
                anyhow::ensure!(found == *times, "disks were written {found} times, not {times}");
                Ok(())
            }
        }
    }

    /// Deletes the Machine that has a host: it has the name of the Metal3Machine.
    async fn delete_machine_of(&self, host: u32) -> Result<()> {
        let name = host_name(host);
        let mut hosts = self.list("BareMetalHost").await?.into_iter().map(Object);
        let host = hosts.find(|one| one.name() == name);
        let host = host.with_context(|| format!("there is no BareMetalHost {name}"))?;
        let machine = host.text("/spec/consumerRef/name");
        anyhow::ensure!(!machine.is_empty(), "{name} has no consumer");
        let (path, body) = (self.path_of(&format!("Machine/{machine}"))?, json!({}));
        let deleted = self.world.send(Method::DELETE, &path, "application/json", &body);
        Ok(deleted.await.map(drop)?)
    }

    /// Sets the faults of a machine.
    fn break_machine(&self, host: u32, has: &[Value]) -> Result<()> {
        let faults: Faults = serde_json::from_value(has.into())?;
        self.world.machine(host, |machine| machine.faults = faults);
        Ok(())
    }

    async fn apply(&self, apply: &Apply) -> Result<()> {
        apply_file(&self.world, &self.files.own.join(&apply.file), &apply.with).await
    }

    async fn publish(&self, file: &str) -> Result<()> {
        let folder = self.files.published;
        let folder = folder.context("no folder of published manifests: set it with --published")?;
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

    pub(super) async fn check(&self, expectation: &Expectation) -> Result<()> {
        let all = self.list(&expectation.kind).await?;
        expectation.check(&all)
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let path = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        let list = self
            .world
            .send(Method::GET, &path, "application/json", &Value::Null)
            .await?;
        Ok(items(&list))
    }

    async fn nodes(&self, expectation: &ExpectedNodes) -> Result<()> {
        let mut clusters = self.list("Cluster").await?.into_iter().map(Object);
        let cluster = clusters.find(|cluster| cluster.name() == expectation.cluster);
        let at = cluster
            .as_ref()
            .and_then(endpoint)
            .context("the Cluster has no endpoint")?;
        let workload = self
            .world
            .workloads
            .at(&at)
            .with_context(|| format!("no API server answers at {at}"))?;
        let request = http::Request::get("/api/v1/nodes").body(Vec::new())?;
        let list: Value = workload.client("scenario").request(request).await?;
        expectation.check(&items(&list))
    }

    async fn quiet(&mut self, span: Duration) -> Result<()> {
        // Requests in flight may finish; injected failures would cause writes.
        self.stop_faults();
        sleep(Duration::from_secs(300)).await;
        let before = self.world.cluster.audit();
        for product in PRODUCTS {
            anyhow::ensure!(
                before.counts().any(|((user, ..), _)| user == product),
                "{product} sends no request, so the absence of writes proves nothing"
            );
        }
        sleep(span).await;
        let audit = self.world.cluster.audit();
        let is_write = |verb: &str| ["create", "update", "patch", "delete"].contains(&verb);
        let writes: Vec<_> = audit
            .counts()
            .filter(|((user, verb, _), _)| PRODUCTS.contains(&user.as_str()) && is_write(verb))
            .filter(|((user, verb, kind), count)| *count > before.of(user, verb, kind))
            .map(|(what, _)| format!("{what:?}"))
            .collect();
        anyhow::ensure!(writes.is_empty(), "unexpected writes: {}", writes.join(", "));
        self.inject_faults();
        Ok(())
    }

    /// API path of `Kind/name`.
    fn path_of(&self, object: &str) -> Result<String> {
        let (kind, name) = kind_and_name(object)?;
        let place = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        Ok(format!("{place}/{name}"))
    }

    fn report(&self, number: usize, step: &Step) -> String {
        let last = self.recorder.last(LAST);
        format!("step {}: {step:?}\nlast events:\n{last}\n", number.saturating_add(1))
    }
}

fn version(kind: &str) -> Result<String> {
    version_of(kind).with_context(|| format!("unknown kind {kind}"))
}

/// The objects of a list.
fn items(list: &Value) -> Vec<Value> {
    list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod remediation;
#[cfg(test)]
mod reuse;
