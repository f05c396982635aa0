use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::DateTime;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use metal3_sim_cluster::{Cluster, Options};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::cache::{Item, Key, SharedCache};
use crate::clock::TimerClock;
use crate::logs::tests::LogBuffer;
use crate::logs::{Format, subscriber};
use crate::metrics::Metrics;
use crate::reason::Reason;
use crate::version::ResourceVersion;
use crate::work::{Category, Controller, Fault, Next, Reconciler, Stopped};
use crate::write::{Mode, Writer};

crate::role! {
    struct Tester {
        ConfigMap: Create, Patch;
    }
}

const WAITS: Reason = Reason::new("WaitingForOther");

/// Executes the scripted steps of each name, and records the times.
#[derive(Default)]
struct Scripted {
    /// Steps of the reconciles of each name, in order; later reconciles return `Done`.
    script: Mutex<BTreeMap<String, Vec<Step>>>,
    seen: Mutex<Vec<(String, u128)>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    started: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Panic,
    Bug,
    /// The server requests a retry after two seconds.
    Throttled,
    Wait,
    QuietWait,
    RequeueAfter(u64),
    Requeue,
    /// Runs for these seconds, then returns `Done`.
    Take(u64),
    /// Creates an object of the same key.
    Write,
}

struct ScriptedReconciler(Arc<Scripted>, SharedCache<ConfigMap>);

impl Reconciler for ScriptedReconciler {
    type Key = Key;
    type Role = Tester;

    async fn reconcile(&self, key: &Key, writer: &Writer<Tester>) -> Result<Next, Fault> {
        let now = self.0.started.lock().get_or_insert_with(Instant::now).elapsed();
        self.0.seen.lock().push((key.name.clone(), now.as_millis()));
        let step = self.0.script.lock().get_mut(&key.name).and_then(Vec::pop);
        match step {
            Some(Step::Panic) => panic!("scripted"),
            Some(Step::Bug) => Err(Fault::bug("scripted")),
            Some(Step::Throttled) => Err(Fault::Transient {
                op: "get".to_owned(),
                category: Category::THROTTLED,
                after: Some(Duration::from_secs(2)),
                source: "slow down".into(),
            }),
            Some(Step::Wait) => Ok(Next::waiting(WAITS, "create the other")),
            Some(Step::QuietWait) => Ok(Next::waiting(WAITS, "create the other").quiet()),
            Some(Step::RequeueAfter(seconds)) => Ok(Next::RequeueAfter(Duration::from_secs(seconds))),
            Some(Step::Requeue) => Ok(Next::Requeue),
            Some(Step::Take(seconds)) => {
                let running = self.0.at_once.fetch_add(1, Ordering::SeqCst) + 1;
                self.0.most_at_once.fetch_max(running, Ordering::SeqCst);
                sleep(Duration::from_secs(seconds)).await;
                self.0.at_once.fetch_sub(1, Ordering::SeqCst);
                Ok(Next::Done)
            }
            Some(Step::Write) => {
                let mut object = ConfigMap::default();
                object.metadata.name = Some(format!("{}-copy", key.name));
                object.metadata.namespace = Some(key.namespace.clone());
                writer.create(&self.1, &object).await?;
                Ok(Next::Done)
            }
            None => Ok(Next::Done),
        }
    }
}

fn object(name: &str, version: u64) -> Item<ConfigMap> {
    Item::Object(ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("u-{name}")),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

fn at(version: u64) -> ResourceVersion {
    ResourceVersion::parse(&version.to_string()).unwrap()
}

struct Fixture {
    cache: SharedCache<ConfigMap>,
    scripted: Arc<Scripted>,
    metrics: Metrics,
    stop: CancellationToken,
    running: JoinSet<Stopped>,
    _cluster: Cluster,
}

impl Fixture {
    fn start(workers: usize, script: &[(&str, &[Step])]) -> Self {
        Self::in_mode(Mode::Perform, workers, script)
    }

    fn in_mode(mode: Mode, workers: usize, script: &[(&str, &[Step])]) -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        let cache = SharedCache::<ConfigMap>::default();
        let scripted = Arc::new(Scripted::default());
        for (name, steps) in script {
            let steps = steps.iter().rev().copied().collect();
            scripted.script.lock().insert((*name).to_owned(), steps);
        }
        let (metrics, stop) = (Metrics::new(), CancellationToken::new());
        let writer = Writer::new(cluster.client("tester"), mode);
        let clock = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let controller = Controller::new(
            "scripted",
            clock,
            writer,
            ScriptedReconciler(Arc::clone(&scripted), cache.clone()),
        )
        .watches(&cache, |change| {
            change.key().map(|key| Key {
                name: key.name.trim_end_matches("-copy").to_owned(),
                ..key
            })
        })
        .workers(workers)
        .metrics(&metrics);
        let mut running = JoinSet::new();
        running.spawn(controller.run(stop.clone()));
        Self {
            cache,
            scripted,
            metrics,
            stop,
            running,
            _cluster: cluster,
        }
    }

    fn listed(&self, names: &[&str]) {
        let items = names.iter().map(|name| object(name, 1)).collect();
        // Older than anything the cluster writes.
        self.cache.listed(items, at(1)).unwrap();
    }

    fn seen(&self, name: &str) -> Vec<u128> {
        let seen = self.scripted.seen.lock();
        seen.iter().filter(|(key, _)| key == name).map(|(_, at)| *at).collect()
    }

    /// The value of a counter of the controller.
    fn count(&self, metric: &str) -> String {
        count(&self.metrics, metric)
    }

    async fn stopped(mut self) -> Stopped {
        self.stop.cancel();
        self.running.join_next().await.unwrap().unwrap()
    }
}

fn count(metrics: &Metrics, metric: &str) -> String {
    let text = metrics.render();
    let line = text.lines().find_map(|line| line.strip_prefix(metric));
    line.unwrap_or_else(|| panic!("no {metric} in {text}"))
        .trim()
        .to_owned()
}

const PANICS: &str = r#"controller_runtime_reconcile_panics_total{controller="scripted"}"#;
const ERRORS: &str = r#"controller_runtime_reconcile_errors_total{controller="scripted"}"#;
const SUCCESS: &str = r#"controller_runtime_reconcile_total{controller="scripted",result="success"}"#;

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_runs_before_the_first_list() {
    let fixture = Fixture::start(1, &[]);
    fixture.cache.observed(object("a", 1)).unwrap();
    seconds(60).await;
    assert!(fixture.seen("a").is_empty());
    fixture.listed(&["a", "b"]);
    seconds(1).await;
    assert_eq!((fixture.seen("a").len(), fixture.seen("b").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_its_key_is_retried_while_others_continue() {
    let fixture = Fixture::start(1, &[("a", &[Step::Panic, Step::Panic, Step::Bug])]);
    fixture.listed(&["a", "b"]);
    seconds(1).await;
    // The back-off of the queue: 5, 10, 20 milliseconds.
    assert_eq!(fixture.seen("a"), [0, 5, 15, 35]);
    assert_eq!(fixture.seen("b"), [0]);
    assert_eq!(
        [PANICS, ERRORS, SUCCESS].map(|metric| fixture.count(metric)),
        ["2", "3", "2"]
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_costs_no_reconcile_and_a_timer_exactly_its_own() {
    let script: [(&str, &[Step]); 3] = [
        ("waits", &[Step::Wait]),
        ("timed", &[Step::RequeueAfter(40)]),
        ("again", &[Step::Requeue]),
    ];
    let fixture = Fixture::start(2, &script);
    fixture.listed(&["waits", "timed", "again"]);
    seconds(3600).await;
    assert_eq!(fixture.seen("waits").len(), 1);
    assert_eq!(fixture.seen("timed"), [0, 40_000]);
    assert_eq!(fixture.seen("again"), [0, 0]);
    fixture.cache.observed(object("waits", 11)).unwrap();
    seconds(1).await;
    assert_eq!(fixture.seen("waits").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn metrics_show_the_reasons_of_waits_and_the_categories_of_faults() {
    let waits = r#"metal3_controller_waiting_keys{controller="scripted",reason="WaitingForOther"}"#;
    let fault = |category| format!(r#"metal3_controller_faults_total{{controller="scripted",category="{category}"}}"#);
    let script: [(&str, &[Step]); 2] = [
        ("a", &[Step::Wait, Step::Bug, Step::Wait]),
        ("b", &[Step::Wait, Step::Throttled, Step::Panic]),
    ];
    let fixture = Fixture::start(1, &script);
    fixture.listed(&["a", "b"]);
    seconds(1).await;
    assert_eq!(fixture.count(waits), "2");
    fixture.cache.observed(object("a", 11)).unwrap();
    fixture.cache.observed(object("b", 12)).unwrap();
    seconds(60).await;
    // A fault does not end the wait of "a"; "b" no longer waits.
    assert_eq!(fixture.count(waits), "1");
    assert_eq!(
        ["bug", "throttled", "panic"].map(|category| fixture.count(&fault(category))),
        ["1", "1", "1"]
    );
}

#[tokio::test(start_paused = true)]
async fn each_wait_is_logged_at_verbosity_four_and_counted_by_reason() {
    assert_eq!(logged_waits(Step::Wait).await, (3, 1, 2));
    assert_eq!(logged_waits(Step::QuietWait).await, (3, 0, 3));
}

/// Lines about three waits of one key for the same reason: all, those at info, and those at debug.
async fn logged_waits(wait: Step) -> (usize, usize, usize) {
    let log = LogBuffer::default();
    let writer = log.clone();
    let (subscriber, _verbosity) = subscriber(Format::Text, "4".parse().unwrap(), move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let fixture = Fixture::start(1, &[("a", &[wait, wait, wait])]);
    fixture.listed(&["a"]);
    for version in [11, 12] {
        seconds(1).await;
        fixture.cache.observed(object("a", version)).unwrap();
    }
    seconds(1).await;
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("create the other")).collect();
    let at = |level: &str| lines.iter().filter(|line| line.contains(level)).count();
    assert!(
        lines.iter().all(|line| line.contains("reason=WaitingForOther")),
        "{text}"
    );
    let waits = r#"metal3_controller_waiting_keys{controller="scripted",reason="WaitingForOther"}"#;
    assert_eq!(fixture.count(waits), "1");
    (lines.len(), at(" INFO "), at("DEBUG "))
}

#[tokio::test(start_paused = true)]
async fn workers_bound_concurrent_reconciles() {
    let names: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    let script: Vec<(&str, &[Step])> = names
        .iter()
        .map(|name| (name.as_str(), [Step::Take(1)].as_slice()))
        .collect();
    let fixture = Fixture::start(3, &script);
    fixture.listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    seconds(60).await;
    assert_eq!(fixture.scripted.most_at_once.load(Ordering::SeqCst), 3);
    assert_eq!(fixture.count(SUCCESS), "20");
}

#[tokio::test(start_paused = true)]
async fn writes_of_a_reconcile_do_not_enqueue_its_own_key() {
    let fixture = Fixture::start(1, &[("a", &[Step::Write])]);
    fixture.listed(&["a"]);
    seconds(60).await;
    assert_eq!(fixture.seen("a").len(), 1);
    assert_eq!(fixture.cache.read(|cache| cache.objects().count()), 2);
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_reconciles_finish_within_the_grace_period() {
    for (takes, stopped, finished) in [(5, Stopped::Drained, "1"), (60, Stopped::Abandoned(1), "0")] {
        let fixture = Fixture::start(2, &[("a", &[Step::Take(takes)])]);
        fixture.listed(&["a"]);
        seconds(1).await;
        let metrics = fixture.metrics.clone();
        let began = Instant::now();
        assert_eq!(fixture.stopped().await, stopped);
        assert!(began.elapsed() <= Duration::from_secs(10));
        assert_eq!(count(&metrics, SUCCESS), finished);
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_before_the_first_list_stops_at_once() {
    let fixture = Fixture::start(1, &[]);
    seconds(1).await;
    assert_eq!(fixture.stopped().await, Stopped::Drained);
}

#[tokio::test(start_paused = true)]
async fn dry_run_does_not_requeue_after_writes_that_were_not_sent() {
    let fixture = Fixture::in_mode(Mode::ObserveOnly, 1, &[("a", &[Step::Requeue, Step::RequeueAfter(40)])]);
    fixture.listed(&["a"]);
    seconds(3600).await;
    assert_eq!(fixture.seen("a"), [0]);
    fixture.cache.observed(object("a", 11)).unwrap();
    seconds(60).await;
    assert_eq!(fixture.seen("a").len(), 3, "a timer still triggers");
}

#[tokio::test(start_paused = true)]
async fn throttling_does_not_reset_the_count_of_failures() {
    let fixture = Fixture::start(1, &[("a", &[Step::Bug, Step::Throttled, Step::Bug])]);
    fixture.listed(&["a"]);
    seconds(60).await;
    // 5 ms for the first failure, the delay of the server for the second, 20 ms for the third.
    assert_eq!(fixture.seen("a"), [0, 5, 2005, 2025]);
}
