//! Keys enqueued by sources other than a cache.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::TimerClock;
use crate::metrics::Metrics;
use crate::queue::{Queue, Waker};
use crate::work::{Controller, Fault, Next, Reconciler};
use crate::write::{Mode, Writer};

crate::role! {
    struct Nothing {}
}

/// Records its keys; the key `x` enqueues `of-x` of the other controller, and `twice` enqueues itself once.
struct Neighbour {
    seen: Arc<Mutex<Vec<String>>>,
    own: Waker<String>,
    other: Waker<String>,
}

impl Reconciler for Neighbour {
    type Key = String;
    type Role = Nothing;

    async fn reconcile(&self, key: &String, _: &Writer<Nothing>) -> Result<Next, Fault> {
        let first = {
            let mut seen = self.seen.lock();
            seen.push(key.clone());
            seen.iter().filter(|name| *name == key).count() == 1
        };
        if key == "twice" && first {
            self.own.enqueue(key.clone());
        }
        if !key.starts_with("of-") {
            self.other.enqueue(format!("of-{key}"));
        }
        Ok(Next::Done)
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

struct Pair {
    hosts: (Waker<String>, Seen),
    machines: Seen,
    ready: Option<oneshot::Sender<()>>,
    _running: JoinSet<()>,
    _cluster: Cluster,
}

/// Two controllers with each other's wakers; the first waits for a feed.
fn pair() -> Pair {
    let cluster = Cluster::start(&Options::seeded(1));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let (hosts, machines) = (Queue::new(Arc::clone(&clock)), Queue::new(clock));
    let (ready, answered) = oneshot::channel();
    let mut running = JoinSet::new();
    let mut start = |name, own: &Queue<String>, other: &Queue<String>, answered: Option<oneshot::Receiver<()>>| {
        let seen = Seen::default();
        let neighbour = Neighbour {
            seen: Arc::clone(&seen),
            own: own.waker(),
            other: other.waker(),
        };
        let writer = Writer::new(cluster.client("tester"), Mode::Perform);
        let controller = Controller::with_queue(name, own.clone(), writer, neighbour).wait_for(async {
            if let Some(answered) = answered {
                let _ = answered.await;
            }
        });
        running.spawn(async move {
            controller.run(CancellationToken::new()).await;
        });
        seen
    };
    let seen = start("hosts", &hosts, &machines, Some(answered));
    Pair {
        machines: start("machines", &machines, &hosts, None),
        hosts: (hosts.waker(), seen),
        ready: Some(ready),
        _running: running,
        _cluster: cluster,
    }
}

fn names(seen: &Seen) -> Vec<String> {
    seen.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_enqueues_keys_of_another_controller_and_its_own() {
    let mut pair = pair();
    pair.ready.take().unwrap().send(()).unwrap();
    pair.hosts.0.enqueue("twice".to_owned());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&pair.hosts.1), ["twice", "twice"]);
    // Enqueued twice; a key that is already queued is not added again.
    assert!(names(&pair.machines).iter().all(|name| name == "of-twice"));
    assert!(!names(&pair.machines).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_runs_before_a_source_without_a_cache_is_ready() {
    let mut pair = pair();
    pair.hosts.0.enqueue_low_priority(["swept".to_owned()]);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(names(&pair.hosts.1), Vec::<String>::new());
    pair.hosts.0.enqueue("woken".to_owned());
    pair.ready.take().unwrap().send(()).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        names(&pair.hosts.1),
        ["woken", "swept"],
        "the high lane precedes the low lane"
    );
    assert_eq!(names(&pair.machines), ["of-woken", "of-swept"]);
}

/// The queue of a standby fills, and no worker takes from it.
#[tokio::test(start_paused = true)]
async fn wait_before_the_controller_runs_is_no_wait_for_a_worker() {
    let cluster = Cluster::start(&Options::seeded(1));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let (queue, metrics) = (Queue::new(clock), Metrics::new());
    let reconciler = Neighbour {
        seen: Seen::default(),
        own: queue.waker(),
        other: queue.waker(),
    };
    let writer = Writer::new(cluster.client("tester"), Mode::Perform);
    let controller = Controller::with_queue("hosts", queue.clone(), writer, reconciler)
        .wait_for(std::future::pending())
        .metrics(&metrics);
    queue.waker().enqueue("a".to_owned());
    sleep(Duration::from_hours(1)).await;
    let mut running = JoinSet::new();
    running.spawn(controller.run(CancellationToken::new()));
    for (pause, waited) in [(7, 7), (3600, 3607)] {
        sleep(Duration::from_secs(pause)).await;
        let text = metrics.render();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("metal3_workqueue_oldest_ready_seconds{"));
        let expected = format!("{{name=\"hosts\",controller=\"hosts\"}} {waited}.0");
        assert!(
            lines.clone().any(|line| line.ends_with(&expected)),
            "{:?}",
            lines.collect::<Vec<_>>()
        );
    }
}
