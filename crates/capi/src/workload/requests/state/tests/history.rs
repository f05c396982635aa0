//! Invariants of the places in any history.

use proptest::prelude::*;

use super::*;

/// A step of a history. Numbers are of the keys or clusters that exist, in any order.
#[derive(Debug, Clone)]
enum Step {
    /// A key begins a reconcile with a request.
    Begin(u8),
    /// A reconcile that has a place ends with an answer.
    Answer(u8),
    /// A key disappears.
    Leave(u8),
    /// Milliseconds pass. Reconciles that last too long end.
    Pass(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u8>().prop_map(Step::Begin),
        3 => any::<u8>().prop_map(Step::Answer),
        1 => any::<u8>().prop_map(Step::Leave),
        3 => (0_u16..4000).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..300)
}

/// The longest reconcile.
const LONGEST: Duration = Duration::from_secs(10);
const NAMESPACES: u8 = 5;
/// Each has a quick cluster, a silent one, and one that answers sometimes.
const CLUSTERS: u8 = 3;

struct History {
    state: State,
    now: Instant,
    /// Reconciles with a place, and since when.
    running: BTreeMap<Key, (Key, Instant)>,
    waiting: BTreeMap<Key, Wait>,
    /// Those that were enqueued, and have not begun since.
    enqueued: BTreeMap<Key, Wait>,
    arrivals: u64,
}

#[derive(Clone)]
struct Wait {
    cluster: Key,
    arrival: u64,
    /// Whether the cluster has been quick since the arrival.
    is_quick: bool,
    /// When it has a place at the latest, if so and if not.
    due: [Instant; 2],
}

impl Wait {
    fn is_late(&self, now: Instant) -> bool {
        now > self.due[usize::from(!self.is_quick)]
    }
}

impl History {
    fn new(workers: usize) -> Self {
        Self {
            state: State::new(Limits::of(workers)),
            now: Instant::now(),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            enqueued: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Keys of each namespace and cluster; the last of each do not come when they are enqueued.
    fn key(number: u8) -> (Key, Key) {
        let namespace = (number % NAMESPACES).to_string();
        let cluster = number / NAMESPACES % CLUSTERS;
        (key(&namespace, number), key(&namespace, cluster))
    }

    fn comes(key: &Key) -> bool {
        key.name.parse::<u8>().unwrap() < 200
    }

    fn wake(&mut self, woken: Woken) {
        for key in woken {
            let wait = self.waiting.remove(&key).expect("it waited");
            assert!(!wait.is_late(self.now), "{key} waited too long");
            // The first of its cluster.
            let others = self.waiting.values().filter(|other| other.cluster == wait.cluster);
            assert!(
                others.map(|other| other.arrival).all(|other| other > wait.arrival),
                "{key}"
            );
            self.check_limits_of(&key, &wait.cluster);
            self.enqueued.insert(key, wait);
        }
    }

    /// A place for a slow server is given only below the limits. A quick server may become slow later.
    fn check_limits_of(&self, key: &Key, cluster: &Key) {
        if self.state.is_quick(cluster, self.now) {
            return;
        }
        let is_slow = |held: &&Held| !self.state.is_quick(&held.cluster, self.now);
        let all = self.state.held.values();
        assert!(all.clone().filter(is_slow).count() <= self.state.limits.slow);
        let near = all.filter(|held| held.cluster.namespace == key.namespace);
        assert!(near.filter(is_slow).count() <= self.state.limits.slow_of_namespace);
    }

    fn begin(&mut self, key: &Key, cluster: &Key) {
        if self.running.contains_key(key) {
            return;
        }
        let had_place = self.state.held.contains_key(key);
        let (has_place, woken) = self.state.begin(key, cluster, self.now);
        self.wake(woken);
        let before = self.enqueued.remove(key);
        if has_place {
            if !had_place {
                self.check_limits_of(key, cluster);
            }
            self.waiting.remove(key);
            self.running.insert(key.clone(), (cluster.clone(), self.now));
            self.state.asked(key, self.now);
            if cluster.name == "0" {
                self.answer(key);
            }
        } else if !self.waiting.contains_key(key) {
            self.arrivals += 1;
            let wait = Wait {
                cluster: cluster.clone(),
                // A caller that comes late waits where it waited.
                arrival: before.map_or(self.arrivals, |before| before.arrival),
                is_quick: self.state.is_quick(cluster, self.now),
                due: self.longest_waits(cluster).map(|longest| self.now + longest),
            };
            self.waiting.insert(key.clone(), wait);
        }
    }

    /// A place that could be had ends in time, and the clusters get it one after the other, for a quick server those of its
    /// namespace and for another one all. Of those in front some may come too late.
    fn longest_waits(&self, cluster: &Key) -> [Duration; 2] {
        let waiting = self.state.tickets.values().filter(|one| one.cluster == *cluster);
        let front = u32::try_from(1 + waiting.count()).unwrap();
        // With the times until the next steps, for its begin and for its end.
        let longest_wait = LONGEST + KEPT + Duration::from_secs(8);
        let clusters = u32::from(CLUSTERS);
        [clusters, clusters * (1 + u32::from(NAMESPACES))].map(|others| longest_wait * others * front)
    }

    fn answer(&mut self, key: &Key) {
        let woken = self.state.answered(key, self.now);
        self.wake(woken);
    }

    fn end(&mut self, key: &Key) {
        self.answer(key);
        self.running.remove(key);
        let woken = self.state.end(key, self.now);
        self.wake(woken);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let late = |(_, since): &(Key, Instant)| self.now.duration_since(*since) >= LONGEST;
        let late: Vec<Key> = self
            .running
            .iter()
            .filter(|(_, one)| late(one))
            .map(|(key, _)| key.clone())
            .collect();
        for key in late {
            self.end(&key);
        }
        let come = self.enqueued.iter().filter(|(key, _)| Self::comes(key));
        let come: Vec<(Key, Key)> = come.map(|(key, wait)| (key.clone(), wait.cluster.clone())).collect();
        for (key, cluster) in come {
            self.begin(&key, &cluster);
        }
        let woken = self.state.refresh(self.now);
        self.wake(woken);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Begin(number) => {
                let (key, cluster) = Self::key(number);
                self.begin(&key, &cluster);
            }
            Step::Answer(number) => {
                // The second cluster is silent.
                let answers = |(key, (cluster, _)): (&Key, &(Key, Instant))| (cluster.name != "1").then(|| key.clone());
                let running: Vec<Key> = self.running.iter().filter_map(answers).collect();
                if let Some(key) = running.get(usize::from(number) % running.len().max(1)) {
                    self.end(key);
                }
            }
            Step::Leave(number) => {
                let (key, _) = Self::key(number);
                self.waiting.remove(&key);
                self.enqueued.remove(&key);
                let woken = self.state.leave(&key, self.now);
                self.wake(woken);
            }
            Step::Pass(millis) => self.pass(Duration::from_millis(millis.into())),
        }
    }

    /// What holds after each step.
    fn check(&mut self) {
        let (state, limits) = (&self.state, self.state.limits);
        for namespace in (0..NAMESPACES).map(|number| number.to_string()) {
            let near = state.held.keys().filter(|key| key.namespace == namespace);
            assert!(near.count() <= limits.of_namespace);
        }
        // No one waits while a place that it may have is free.
        assert!(state.next(self.now).is_none());
        for (key, wait) in &mut self.waiting {
            wait.is_quick &= state.is_quick(&wait.cluster, self.now);
            assert!(!wait.is_late(self.now), "{key} waits too long");
        }
        // Nothing is held or waits that the history does not know.
        let queues = state.namespaces.values().flat_map(|one| one.clusters.values());
        let mut queued: Vec<&Key> = queues.flat_map(|queue| queue.keys.values()).collect();
        queued.sort();
        assert_eq!(queued, self.waiting.keys().collect::<Vec<_>>());
        let known = |key: &&Key| self.waiting.contains_key(key) || self.enqueued.contains_key(key);
        assert!(state.tickets.keys().all(|key| known(&key)));
        assert_eq!(state.tickets.len(), self.waiting.len() + self.enqueued.len());
        let has_reason = |key: &Key| self.running.contains_key(key) || self.enqueued.contains_key(key);
        assert!(state.held.keys().all(has_reason));
        assert!(self.running.keys().all(|key| state.held.contains_key(key)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn places_are_limited_and_given_in_order_and_in_time_in_any_history(workers in 1_usize..16, steps in steps()) {
        let mut history = History::new(workers);
        for step in &steps {
            history.take(step);
            history.check();
        }
        // In the end no one is left, except those that never come.
        for _ in 0..2000 {
            if history.state.held.is_empty() && history.waiting.is_empty() {
                break;
            }
            history.pass(Duration::from_secs(2));
            history.check();
        }
        prop_assert!(history.state.held.is_empty() && history.state.namespaces.is_empty());
        prop_assert!(history.enqueued.keys().all(|key| !History::comes(key)));
    }
}
