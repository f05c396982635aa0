//! Runs a scenario on the simulators under paused time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sandbox::steps::{Performed, Performer};
use metal3_sandbox::world::Setup;
use metal3_scenario::{ObservedStates, RequestCounts, Scenario, Step, published};
use metal3_sim_faults::Plan;
use tokio::time::sleep;

use super::explained::Explained;
use super::faults;
use super::journal::Journal;
use super::recorder::Recorder;
use crate::world::{PRODUCTS, simulated_time};
use metal3_files::documents;

/// Journal lines shown with a failure.
const LAST: usize = 25;
/// The names of [`PRODUCTS`] in request counts.
const PRODUCT_NAMES: [&str; 3] = ["addresses", "hosts", "machines"];

/// A running scenario.
pub(super) struct Runner<'a> {
    pub(super) performer: Performer,
    files: Files<'a>,
    pub(super) recorder: Recorder,
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
        let folder = files.own.to_owned();
        let read = move |file: &str| documents::text(&folder.join(file));
        let performer = Performer::start(&setup, Box::new(read)).await?;
        let mut runner = Self {
            recorder: Recorder::of(&performer.world),
            first_version: performer.world.cluster.version(),
            performer,
            files,
            faults: options.with_faults.then_some(options.seed),
            injected: InjectedFaults::default(),
            explains: true,
        };
        runner.inject_faults();
        runner.performer.add_hosts(scenario.hosts).await?;
        Ok(runner)
    }

    /// Injects the faults of the seed, if any, from now on.
    fn inject_faults(&self) {
        if let Some(seed) = self.faults {
            self.performer
                .world
                .cluster
                .inject_for(&PRODUCTS, faults::at_server(seed));
            self.performer.world.ironic.inject(faults::at_ironic(seed));
        }
    }

    fn stop_faults(&mut self) {
        self.injected = self.injected.and(InjectedFaults {
            at_server: self.performer.world.cluster.injected(),
            at_ironic: self.performer.world.ironic.injected(),
        });
        self.performer.world.cluster.inject(Plan::none());
        self.performer.world.ironic.inject(Plan::none());
    }

    /// Checks that every write was checked, and returns the result.
    fn finish(mut self) -> Result<Run> {
        self.stop_faults();
        let writes = self
            .performer
            .world
            .cluster
            .version()
            .saturating_sub(self.first_version);
        let (journal, checks, observed) = self.recorder.results();
        anyhow::ensure!(
            u64::try_from(checks) == Ok(writes),
            "{checks} of {writes} writes were checked"
        );
        let explained = self.recorder.explained();
        let audits = (
            self.performer.world.cluster.audit(),
            self.performer.world.ironic.audit(),
        );
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

    async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Published(file) => self.publish(file).await,
            Step::Wait(expectation) => self.wait(expectation).await,
            Step::Holds { expectation, during } => self.holds(expectation, during.0).await,
            Step::Why(cause) => self.wait_for_cause(cause).await,
            Step::Quiet(span) => self.quiet(span.0).await,
            step => match self.performer.perform(step).await? {
                Performed::Yes => Ok(()),
                Performed::ByCaller => bail!("no player performs this step"),
            },
        }
    }

    async fn publish(&self, file: &str) -> Result<()> {
        let folder = self.files.published;
        let folder = folder.context("no folder of published manifests: set it with --published")?;
        let file = folder.join(file);
        let objects = published(&documents::text(&file)?).with_context(|| file.display().to_string())?;
        for object in objects {
            self.performer
                .world
                .apply(&object)
                .await
                .with_context(|| file.display().to_string())?;
        }
        Ok(())
    }

    async fn quiet(&mut self, span: Duration) -> Result<()> {
        // Requests in flight may finish; injected failures would cause writes.
        self.stop_faults();
        sleep(Duration::from_secs(300)).await;
        let before = self.performer.world.cluster.audit();
        for product in PRODUCTS {
            anyhow::ensure!(
                before.counts().any(|((user, ..), _)| user == product),
                "{product} sends no request, so the absence of writes proves nothing"
            );
        }
        sleep(span).await;
        let audit = self.performer.world.cluster.audit();
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

    fn report(&self, number: usize, step: &Step) -> String {
        let last = self.recorder.last(LAST);
        format!("step {}: {step:?}\nlast events:\n{last}\n", number.saturating_add(1))
    }
}

#[cfg(test)]
mod remediation;
#[cfg(test)]
mod reuse;
