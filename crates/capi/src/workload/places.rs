//! Which workload clusters of a namespace are watched at the same time.
//!
//! A watch takes memory that the cluster's server decides about, up to the limits for one cluster. So a namespace has a
//! number of places, whatever the number of its Clusters, and other namespaces have their own. While clusters wait for a
//! place, each is watched for the time of a turn, so that clusters that cannot be reached do not keep the others waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use metal3_runtime::cache::Key;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Clusters of one namespace that are watched at the same time.
pub(super) const PLACES: usize = 20;
/// Pages of a namespace that are read and decoded at the same time: a page is the largest answer of a server.
const PAGES: usize = 4;
/// How long a cluster is watched while others wait: long enough to connect, list and see a new Node.
pub(super) const TURN: Duration = Duration::from_mins(2);

/// The places of all namespaces.
#[derive(Default)]
pub(super) struct Places(Mutex<BTreeMap<String, Namespace>>);

/// Keys to enqueue, because the place of their cluster changed.
pub(super) type Woken = Vec<Key>;

struct Namespace {
    watched: BTreeMap<Key, Watched>,
    /// In the order of their arrival.
    queue: VecDeque<(Key, BTreeSet<Key>)>,
    pages: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

struct Watched {
    since: Instant,
    waiters: BTreeSet<Key>,
}

impl Default for Namespace {
    fn default() -> Self {
        Self {
            watched: BTreeMap::new(),
            queue: VecDeque::new(),
            pages: Arc::new(Semaphore::new(PAGES)),
            requests: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Places {
    /// Records that `waiter` waits for this cluster, and for no other. Returns whether the cluster has a place.
    pub(super) fn enter(&self, cluster: &Key, waiter: &Key, now: Instant) -> (bool, Woken) {
        let mut namespaces = self.0.lock();
        let woken = leave(&mut namespaces, waiter, Some(cluster), now);
        let namespace = namespaces.entry(cluster.namespace.clone()).or_default();
        (namespace.enter(cluster, waiter, now), woken)
    }

    /// Ends the wait of `waiter`.
    pub(super) fn leave(&self, waiter: &Key, now: Instant) -> Woken {
        leave(&mut self.0.lock(), waiter, None, now)
    }

    /// Ends the turns that are over while others wait, and those of clusters that cannot be reached. Returns the keys that lost
    /// their place, and those to enqueue.
    pub(super) fn rotate(&self, now: Instant, is_failing: impl Fn(&Key) -> bool) -> (Vec<Key>, Woken) {
        let (mut lost, mut woken) = (Vec::new(), Vec::new());
        for namespace in self.0.lock().values_mut() {
            let ended = namespace.end_turns(now, &is_failing);
            woken.extend(ended.iter().cloned());
            lost.extend(ended);
            woken.extend(namespace.fill(now));
        }
        (lost, woken)
    }

    /// Held while a page of one of the clusters of a namespace is read.
    pub(super) fn pages(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.0.lock();
        Arc::clone(&namespaces.entry(namespace.to_owned()).or_default().pages)
    }

    /// Held while a worker waits for a request to one of them.
    pub(super) fn requests(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.0.lock();
        Arc::clone(&namespaces.entry(namespace.to_owned()).or_default().requests)
    }
}

fn leave(namespaces: &mut BTreeMap<String, Namespace>, waiter: &Key, except: Option<&Key>, now: Instant) -> Woken {
    let mut woken = Vec::new();
    namespaces.retain(|_, namespace| {
        namespace.watched.retain(|cluster, watched| {
            if Some(cluster) != except {
                watched.waiters.remove(waiter);
            }
            !watched.waiters.is_empty()
        });
        namespace.queue.retain_mut(|(cluster, waiters)| {
            if Some(&*cluster) != except {
                waiters.remove(waiter);
            }
            !waiters.is_empty()
        });
        woken.extend(namespace.fill(now));
        !namespace.watched.is_empty() || !namespace.queue.is_empty()
    });
    woken
}

impl Namespace {
    fn enter(&mut self, cluster: &Key, waiter: &Key, now: Instant) -> bool {
        if let Some(watched) = self.watched.get_mut(cluster) {
            watched.waiters.insert(waiter.clone());
            return true;
        }
        if let Some((_, waiters)) = self.queue.iter_mut().find(|(queued, _)| queued == cluster) {
            waiters.insert(waiter.clone());
            return false;
        }
        self.queue
            .push_back((cluster.clone(), BTreeSet::from([waiter.clone()])));
        // Without others in front of it, it gets a place at once.
        drop(self.fill(now));
        self.watched.contains_key(cluster)
    }

    /// Gives free places to the clusters that wait.
    fn fill(&mut self, now: Instant) -> Woken {
        let mut woken = Vec::new();
        while self.watched.len() < PLACES
            && let Some((cluster, waiters)) = self.queue.pop_front()
        {
            woken.extend(waiters.iter().cloned());
            self.watched.insert(cluster, Watched { since: now, waiters });
        }
        woken
    }

    /// Moves as many clusters as wait from their places to the end of the queue, if their turns are over.
    fn end_turns(&mut self, now: Instant, is_failing: impl Fn(&Key) -> bool) -> Vec<Key> {
        let over = |watched: &Watched| now.saturating_duration_since(watched.since) >= TURN;
        let mut ended: Vec<(Instant, Key)> = self
            .watched
            .iter()
            .filter(|(cluster, watched)| over(watched) || is_failing(cluster))
            .map(|(cluster, watched)| (watched.since, cluster.clone()))
            .collect();
        ended.sort();
        ended.truncate(self.queue.len());
        let mut lost = Vec::new();
        for (_, cluster) in ended {
            if let Some(watched) = self.watched.remove(&cluster) {
                lost.extend(watched.waiters.iter().cloned());
                self.queue.push_back((cluster, watched.waiters));
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: impl ToString) -> Key {
        Key {
            namespace: namespace.to_owned(),
            name: name.to_string(),
        }
    }

    /// Places of a namespace with this number of clusters, each with one machine.
    fn crowded(places: &Places, clusters: usize, now: Instant) -> usize {
        let entered = (0..clusters).map(|number| places.enter(&key("one", number), &key("one", number), now).0);
        entered.filter(|has_place| *has_place).count()
    }

    #[test]
    fn a_namespace_with_many_clusters_has_a_number_of_places_and_others_have_their_own() {
        let (places, now) = (Places::default(), Instant::now());
        assert_eq!(crowded(&places, 1000, now), PLACES);
        assert!(places.enter(&key("two", "edge"), &key("two", "m"), now).0);
        assert_eq!(crowded(&places, 1000, now), PLACES, "asked again");
    }

    #[test]
    fn a_place_that_is_left_goes_to_the_cluster_that_waits_longest() {
        let (places, now) = (Places::default(), Instant::now());
        crowded(&places, PLACES + 2, now);
        assert_eq!(places.leave(&key("one", 3), now), [key("one", PLACES)]);
        assert!(places.leave(&key("one", PLACES + 1), now).is_empty(), "it waited");
        assert!(places.enter(&key("one", PLACES), &key("one", PLACES), now).0);
        // A machine that waits for another cluster leaves the first one.
        let (has_place, woken) = places.enter(&key("two", "edge"), &key("one", 4), now);
        assert!(has_place && woken.is_empty());
        assert!(places.enter(&key("one", "new"), &key("one", "new"), now).0);
        for number in 0..PLACES + 2 {
            places.leave(&key("one", number), now);
        }
        places.leave(&key("one", "new"), now);
        assert!(places.0.lock().is_empty());
    }

    #[test]
    fn turns_end_only_while_others_wait() {
        let (places, now) = (Places::default(), Instant::now());
        crowded(&places, PLACES, now);
        assert_eq!(places.rotate(now + TURN, |_| false), (vec![], vec![]));
        crowded(&places, PLACES + 1, now);
        assert_eq!(places.rotate(now, |_| false), (vec![], vec![]));
        let (lost, woken) = places.rotate(now + TURN, |_| false);
        assert_eq!(lost, [key("one", 0)]);
        assert_eq!(woken, [key("one", 0), key("one", PLACES)]);
        // Each has its turn.
        let (lost, _) = places.rotate(now + TURN, |_| false);
        assert_eq!(lost, [key("one", 1)]);
    }
}
