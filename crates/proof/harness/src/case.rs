//! One run of a world, from an empty server to a settled one.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metal3_domain::clock::Clock;
use metal3_sim_faults::Random;
use metal3_sim_cluster::{Cluster, Options, TokioClock};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::blow::Blow;
use crate::state::State;
use crate::tap::{Book, Tap, open};
use crate::world::{Instance, World};

/// Nothing written for so many looks in a row is settled: longer than the longest back-off.
const QUIET: usize = 3;
/// From one look to the next.
const LOOK: Duration = Duration::from_mins(6);
/// What does not settle within so many looks never does.
const PATIENCE: usize = 330;

/// How a case is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) blow: Option<(usize, Blow)>,
    /// The seed of delays; also runs a second program.
    pub(crate) interleaved: Option<u64>,
    /// More writes than this are too many.
    pub(crate) most: usize,
}

impl Setting {
    /// No faults, one program.
    pub(crate) const fn calm() -> Self {
        Self {
            blow: None,
            interleaved: None,
            most: 2000,
        }
    }
}

/// How it went.
pub(crate) struct Ended {
    pub(crate) effects: Vec<String>,
    pub(crate) struck: bool,
    pub(crate) checks: usize,
    /// Everything that was found wrong.
    pub(crate) wrong: Vec<String>,
    pub(crate) state: State,
}

/// Says what is wrong with a state.
type Look = dyn Fn(&State) -> Vec<String> + Send + Sync;

/// Reads the server past all faults, and looks for violations.
#[derive(Clone)]
pub(crate) struct Judge {
    client: kube::Client,
    kinds: Arc<[String]>,
    violations: Arc<Look>,
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

impl Judge {
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

/// A world in a server, with the programs that run in it.
pub(crate) struct Case<W: World> {
    world: Arc<W>,
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    crashes: watch::Receiver<u64>,
    pub(crate) book: Arc<Mutex<Book>>,
    pub(crate) judge: Judge,
    setting: Setting,
    programs: JoinSet<()>,
    collector: JoinSet<()>,
    /// They live as long as the run.
    _neighbours: JoinSet<()>,
}

impl<W: World> Case<W> {
    /// The server that every run begins with a copy of.
    pub(crate) fn prepare(world: &W) -> Cluster {
        let cluster = Cluster::start(&Options::seeded(1));
        world.install(&cluster);
        cluster
    }

    pub(crate) fn new(world: &Arc<W>, prepared: &Cluster, setting: Setting) -> Self {
        let options = Options::seeded(1);
        let cluster = prepared.fork(&options.clock);
        let watching = Arc::clone(world);
        let judge = Judge {
            client: cluster.client("judge"),
            kinds: world.kinds().into(),
            violations: Arc::new(move |state| watching.violations(state)),
        };
        let mut collector = JoinSet::new();
        let collected = cluster.clone();
        collector.spawn(async move { collected.run_collector().await });
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(options.clock.now()));
        Self {
            world: Arc::clone(world),
            _neighbours: world.neighbours(&cluster, &clock),
            clock,
            crashes: cluster.crashes(),
            cluster,
            book: Book::new(setting.blow, setting.most),
            judge,
            setting,
            programs: JoinSet::new(),
            collector,
        }
    }

    /// Runs all acts, each until nothing is written any more.
    pub(crate) async fn play(&mut self) -> Ended {
        let mut wrong = Vec::new();
        let mut state = State::default();
        for act in 0..self.world.acts() {
            self.world.act(act, self.cluster.client("user")).await;
            if self.programs.is_empty() {
                self.start();
            }
            match self.settle().await {
                Ok(settled) => state = settled,
                Err(why) => wrong.push(format!("act {act}: {why}")),
            }
            if !wrong.is_empty() || !open(&self.book).violations.is_empty() {
                break;
            }
        }
        wrong.extend(
            self.world
                .unfinished(&state)
                .into_iter()
                .map(|what| format!("unfinished: {what}")),
        );
        self.collector.abort_all();
        let book = open(&self.book);
        Ended {
            effects: book.effects.clone(),
            struck: book.struck,
            checks: book.checks,
            wrong: book.violations.iter().cloned().chain(wrong).collect(),
            state,
        }
    }

    /// Starts the programs that the setting asks for, from nothing.
    pub(crate) fn start(&mut self) {
        let seeds: &[u64] = if self.setting.interleaved.is_some() {
            &[1, 2]
        } else {
            &[1]
        };
        for seed in seeds {
            let delays = self.setting.interleaved.map(|chosen| {
                let seed = chosen.wrapping_mul(2).wrapping_add(*seed);
                Arc::new(Mutex::new(Random::seeded(seed)))
            });
            let tap = Tap {
                door: self.cluster.service("program"),
                cluster: self.cluster.clone(),
                book: Arc::clone(&self.book),
                judge: self.judge.clone(),
                delays,
            };
            let instance = Instance {
                client: kube::Client::new(tap, "default"),
                clock: Arc::clone(&self.clock),
                seed: *seed,
            };
            self.programs.spawn(self.world.run(instance));
        }
    }

    /// Kills the programs.
    pub(crate) async fn kill(&mut self) {
        self.programs.shutdown().await;
    }

    /// Waits until nothing is written any more; where a blow kills the program, starts it again.
    pub(crate) async fn settle(&mut self) -> Result<State, String> {
        let (mut version, mut quiet) = (self.cluster.version(), 0_usize);
        for _ in 0..PATIENCE {
            self.pass(LOOK).await?;
            let now = self.cluster.version();
            quiet = if now == version { quiet.saturating_add(1) } else { 0 };
            version = now;
            if quiet == QUIET {
                return self.judge.state().await;
            }
        }
        Err("it goes on writing for ever".to_owned())
    }

    /// Lets time pass.
    pub(crate) async fn pass(&mut self, time: Duration) -> Result<(), String> {
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
                        Some(Ok(())) | None => "the program ended by itself".to_owned(),
                    });
                }
                () = &mut end => return Ok(()),
            }
        }
    }
}
