//! One run of a test environment, from an empty server to a settled one.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options, TokioClock};
use metal3_sim_faults::Random;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::env::{Instance, TestEnv};
use crate::fault::WriteFault;
use crate::interceptor::{Interceptor, WriteLog};
use crate::state::State;

/// Number of checks in a row without a write that counts as settled: longer than the longest backoff.
const QUIET_CHECKS: usize = 3;
/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_mins(6);
/// A run that needs more checks never settles.
const MAX_CHECKS: usize = 330;

/// Options of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOptions {
    pub(crate) fault: Option<(usize, WriteFault)>,
    /// Seed of the delays; also starts a second program.
    pub(crate) interleaved: Option<u64>,
    /// Limit of writes.
    pub(crate) max_writes: usize,
}

impl RunOptions {
    /// No faults, one program.
    pub(crate) const fn fault_free() -> Self {
        Self {
            fault: None,
            interleaved: None,
            max_writes: 2000,
        }
    }
}

/// Result of a run.
pub(crate) struct Outcome {
    pub(crate) effects: Vec<String>,
    pub(crate) injected: bool,
    pub(crate) checks: usize,
    /// All violations and errors.
    pub(crate) errors: Vec<String>,
    pub(crate) state: State,
}

/// Returns the violations of a state.
type Check = dyn Fn(&State) -> Vec<String> + Send + Sync;

/// Reads the server without faults and checks the invariants.
#[derive(Clone)]
pub(crate) struct Checker {
    client: kube::Client,
    kinds: Arc<[String]>,
    violations: Arc<Check>,
}

impl Checker {
    pub(crate) async fn violations(&self) -> Vec<String> {
        match self.state().await {
            Ok(state) => (self.violations)(&state),
            Err(why) => vec![why],
        }
    }

    pub(crate) async fn state(&self) -> Result<State, String> {
        let mut state = State::default();
        for path in self.kinds.iter() {
            let request = http::Request::get(path.as_str()).body(Vec::new());
            let request = request.map_err(|error| format!("{path}: {error}"))?;
            let list = self.client.request::<Value>(request).await;
            let list = list.map_err(|error| format!("{path}: {error}"))?;
            let items = list.get("items").and_then(Value::as_array).cloned();
            state.objects.insert(path.clone(), items.unwrap_or_default());
            let version = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            version.unwrap_or_default().clone_into(&mut state.version);
        }
        Ok(state)
    }
}

/// A test environment on a server, with its running programs.
pub(crate) struct TestRun<W: TestEnv> {
    env: Arc<W>,
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    crashes: watch::Receiver<u64>,
    pub(crate) log: Arc<Mutex<WriteLog>>,
    pub(crate) checker: Checker,
    options: RunOptions,
    programs: JoinSet<()>,
    collector: JoinSet<()>,
    /// Aborted when the run is dropped.
    _background: JoinSet<()>,
}

impl<W: TestEnv> TestRun<W> {
    /// The server of which every run gets a copy.
    pub(crate) fn prepare(env: &W) -> Cluster {
        let cluster = Cluster::start(&Options::seeded(1));
        env.install(&cluster);
        cluster
    }

    pub(crate) fn new(env: &Arc<W>, prepared: &Cluster, options: RunOptions) -> Self {
        let server = Options::seeded(1);
        let cluster = prepared.fork(&server.clock);
        let watching = Arc::clone(env);
        let checker = Checker {
            client: cluster.client("checker"),
            kinds: env.kinds().into(),
            violations: Arc::new(move |state| watching.violations(state)),
        };
        let mut collector = JoinSet::new();
        let collected = cluster.clone();
        collector.spawn(async move { collected.run_collector().await });
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(server.clock.now()));
        Self {
            env: Arc::clone(env),
            _background: env.background(&cluster, &clock),
            clock,
            crashes: cluster.crashes(),
            cluster,
            log: WriteLog::new(options.fault, options.max_writes),
            checker,
            options,
            programs: JoinSet::new(),
            collector,
        }
    }

    /// Runs all stages, each until the programs stop writing.
    pub(crate) async fn run(&mut self) -> Outcome {
        let mut errors = Vec::new();
        let mut state = State::default();
        for stage in 0..self.env.stages() {
            self.env.stage(stage, self.cluster.client("user")).await;
            if self.programs.is_empty() {
                self.start();
            }
            match self.settle().await {
                Ok(settled) => state = settled,
                Err(why) => errors.push(format!("stage {stage}: {why}")),
            }
            if !errors.is_empty() || !self.log.lock().violations.is_empty() {
                break;
            }
        }
        errors.extend(
            self.env
                .unfinished(&state)
                .into_iter()
                .map(|what| format!("unfinished: {what}")),
        );
        self.collector.abort_all();
        let log = self.log.lock();
        Outcome {
            effects: log.effects.clone(),
            injected: log.injected,
            checks: log.checks,
            errors: log.violations.iter().cloned().chain(errors).collect(),
            state,
        }
    }

    /// Starts the programs of the options.
    pub(crate) fn start(&mut self) {
        let seeds: &[u64] = if self.options.interleaved.is_some() {
            &[1, 2]
        } else {
            &[1]
        };
        for seed in seeds {
            let delays = self.options.interleaved.map(|chosen| {
                let seed = chosen.wrapping_mul(2).wrapping_add(*seed);
                Arc::new(Mutex::new(Random::seeded(seed)))
            });
            let interceptor = Interceptor {
                service: self.cluster.service("program"),
                cluster: self.cluster.clone(),
                log: Arc::clone(&self.log),
                checker: self.checker.clone(),
                delays,
            };
            let instance = Instance {
                client: kube::Client::new(interceptor, "default"),
                clock: Arc::clone(&self.clock),
                seed: *seed,
            };
            self.programs.spawn(self.env.run(instance));
        }
    }

    /// Kills the programs.
    pub(crate) async fn kill(&mut self) {
        self.programs.shutdown().await;
    }

    /// Waits until the programs stop writing; restarts them after an injected crash.
    pub(crate) async fn settle(&mut self) -> Result<State, String> {
        let (mut version, mut quiet) = (self.cluster.version(), 0_usize);
        for _ in 0..MAX_CHECKS {
            self.advance(CHECK_INTERVAL).await?;
            let now = self.cluster.version();
            quiet = if now == version { quiet.saturating_add(1) } else { 0 };
            version = now;
            if quiet == QUIET_CHECKS {
                return self.checker.state().await;
            }
        }
        Err("it never stops writing".to_owned())
    }

    /// Advances the time; restarts the programs after an injected crash.
    pub(crate) async fn advance(&mut self, time: Duration) -> Result<(), String> {
        let end = sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                crash = self.crashes.changed() => {
                    crash.map_err(|error| error.to_string())?;
                    self.kill().await;
                    self.start();
                }
                ended = self.programs.join_next() => {
                    return Err(match ended {
                        Some(Err(error)) => format!("the program panicked: {error}"),
                        Some(Ok(())) | None => "the program ended".to_owned(),
                    });
                }
                () = &mut end => return Ok(()),
            }
        }
    }
}
