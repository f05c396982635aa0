//! Which workload clusters of a namespace are watched at the same time.
//!
//! A watch takes memory that the cluster's server decides about, up to the limits for one cluster. So a namespace has a
//! number of places, whatever the number of its Clusters, and other namespaces have their own. While clusters wait for a
//! place, each is watched for the time of a turn, so that clusters that cannot be reached do not keep the others waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use metal3_runtime::cache::Key;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::waiter::Waiter;

/// Clusters of one namespace that are watched at the same time.
pub(super) const PLACES: usize = 20;
/// Pages of a namespace that are read and decoded at the same time: a page is the largest answer of a server.
const PAGES: usize = 4;
/// How long a cluster is watched while others wait: long enough to connect, list and see a new Node.
pub(super) const TURN: Duration = Duration::from_mins(2);

/// The places of all namespaces.
#[derive(Default)]
pub(super) struct Places(Mutex<State>);

/// Those to enqueue, because the place of their cluster changed.
pub(super) type Woken = Vec<Waiter>;

#[derive(Default)]
struct State {
    namespaces: BTreeMap<String, Namespace>,
    /// The cluster of each wait, so that its end visits no other.
    cluster_of: BTreeMap<Waiter, Key>,
}

struct Namespace {
    clusters: BTreeMap<Key, Cluster>,
    watched: BTreeSet<Key>,
    /// In the order of their arrival.
    queue: BTreeMap<Ticket, Key>,
    last: Ticket,
    pages: Arc<Semaphore>,
}

struct Cluster {
    waiters: BTreeSet<Waiter>,
    place: Place,
}

enum Place {
    /// Since when it is watched.
    Watched(Instant),
    Queued(Ticket),
}

/// A number in the queue of a namespace.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket(u64);

impl Default for Namespace {
    fn default() -> Self {
        Self {
            clusters: BTreeMap::new(),
            watched: BTreeSet::new(),
            queue: BTreeMap::new(),
            last: Ticket::default(),
            pages: Arc::new(Semaphore::new(PAGES)),
        }
    }
}

impl Places {
    /// Records that `waiter` waits for this cluster, and for no other. Returns whether the cluster has a place.
    pub(super) fn enter(&self, cluster: &Key, waiter: &Waiter, now: Instant) -> (bool, Woken) {
        let mut state = self.0.lock();
        let is_same = state.cluster_of.get(waiter) == Some(cluster);
        let woken = if is_same {
            Woken::new()
        } else {
            state.leave(waiter, now)
        };
        state.cluster_of.insert(waiter.clone(), cluster.clone());
        let namespace = state.namespaces.entry(cluster.namespace.clone()).or_default();
        (namespace.enter(cluster, waiter, now), woken)
    }

    /// Ends the wait of `waiter`.
    pub(super) fn leave(&self, waiter: &Waiter, now: Instant) -> Woken {
        self.0.lock().leave(waiter, now)
    }

    /// Ends the turns that are over while others wait, and those of clusters that cannot be reached. Returns those that lost
    /// their place, and those to enqueue. Removes namespaces that are not used.
    pub(super) fn rotate(&self, now: Instant, is_failing: impl Fn(&Key) -> bool) -> (Vec<Waiter>, Woken) {
        let (mut lost, mut woken) = (Vec::new(), Vec::new());
        let mut state = self.0.lock();
        state.namespaces.retain(|_, namespace| namespace.is_used());
        for namespace in state.namespaces.values_mut() {
            let ended = namespace.end_turns(now, &is_failing);
            woken.extend(ended.iter().cloned());
            lost.extend(ended);
            woken.extend(namespace.fill(now));
        }
        (lost, woken)
    }

    /// Held while a page of one of the clusters of a namespace is read.
    pub(super) fn pages(&self, namespace: &str) -> Arc<Semaphore> {
        let mut state = self.0.lock();
        Arc::clone(&state.namespaces.entry(namespace.to_owned()).or_default().pages)
    }
}

impl State {
    fn leave(&mut self, waiter: &Waiter, now: Instant) -> Woken {
        let cluster = self.cluster_of.remove(waiter);
        let left = cluster.and_then(|cluster| {
            let namespace = self.namespaces.get_mut(&cluster.namespace)?;
            Some(namespace.leave(&cluster, waiter, now))
        });
        left.unwrap_or_default()
    }
}

impl Namespace {
    fn enter(&mut self, cluster: &Key, waiter: &Waiter, now: Instant) -> bool {
        if let Some(entered) = self.clusters.get_mut(cluster) {
            entered.waiters.insert(waiter.clone());
            return self.watched.contains(cluster);
        }
        let place = Place::Queued(self.line_up(cluster));
        let waiters = BTreeSet::from([waiter.clone()]);
        self.clusters.insert(cluster.clone(), Cluster { waiters, place });
        // Without others in front of it, it gets a place at once.
        drop(self.fill(now));
        self.watched.contains(cluster)
    }

    fn leave(&mut self, cluster: &Key, waiter: &Waiter, now: Instant) -> Woken {
        if let Some(entered) = self.clusters.get_mut(cluster) {
            entered.waiters.remove(waiter);
            if entered.waiters.is_empty()
                && let Some(left) = self.clusters.remove(cluster)
            {
                match left.place {
                    Place::Watched(_) => drop(self.watched.remove(cluster)),
                    Place::Queued(ticket) => drop(self.queue.remove(&ticket)),
                }
            }
        }
        self.fill(now)
    }

    /// The last ticket of the queue, for this cluster.
    fn line_up(&mut self, cluster: &Key) -> Ticket {
        self.last = Ticket(self.last.0.wrapping_add(1));
        self.queue.insert(self.last, cluster.clone());
        self.last
    }

    /// Gives free places to the clusters that wait.
    fn fill(&mut self, now: Instant) -> Woken {
        let mut woken = Vec::new();
        while self.watched.len() < PLACES
            && let Some((_, name)) = self.queue.pop_first()
        {
            if let Some(cluster) = self.clusters.get_mut(&name) {
                woken.extend(cluster.waiters.iter().cloned());
                cluster.place = Place::Watched(now);
                self.watched.insert(name);
            }
        }
        woken
    }

    /// Moves as many clusters as wait from their places to the end of the queue, if their turns are over.
    fn end_turns(&mut self, now: Instant, is_failing: impl Fn(&Key) -> bool) -> Vec<Waiter> {
        let since = |name: &Key| match self.clusters.get(name)?.place {
            Place::Watched(since) => Some(since),
            Place::Queued(_) => None,
        };
        let is_over = |since: Instant| now.saturating_duration_since(since) >= TURN;
        let watched = self.watched.iter().filter_map(|name| Some((since(name)?, name)));
        let ended = watched.filter(|(since, name)| is_over(*since) || is_failing(name));
        let mut ended: Vec<(Instant, Key)> = ended.map(|(since, name)| (since, name.clone())).collect();
        ended.sort();
        ended.truncate(self.queue.len());
        let mut lost = Vec::new();
        for (_, name) in ended {
            self.watched.remove(&name);
            let place = Place::Queued(self.line_up(&name));
            if let Some(cluster) = self.clusters.get_mut(&name) {
                lost.extend(cluster.waiters.iter().cloned());
                cluster.place = place;
            }
        }
        lost
    }

    /// Whether it has clusters, or a page is being read, which counts until it ends.
    fn is_used(&self) -> bool {
        !self.clusters.is_empty() || Arc::strong_count(&self.pages) > 1
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

    fn machine(namespace: &str, name: impl ToString) -> Waiter {
        Waiter::Machine(key(namespace, name))
    }

    /// Places of a namespace with this number of clusters, each with one machine.
    fn crowded(places: &Places, clusters: usize, now: Instant) -> usize {
        let entered = (0..clusters).map(|number| places.enter(&key("one", number), &machine("one", number), now).0);
        entered.filter(|has_place| *has_place).count()
    }

    #[test]
    fn a_namespace_with_many_clusters_has_a_number_of_places_and_others_have_their_own() {
        let (places, now) = (Places::default(), Instant::now());
        assert_eq!(crowded(&places, 1000, now), PLACES);
        assert!(places.enter(&key("two", "edge"), &machine("two", "m"), now).0);
        assert_eq!(crowded(&places, 1000, now), PLACES, "asked again");
    }

    #[test]
    fn a_place_that_is_left_goes_to_the_cluster_that_waits_longest() {
        let (places, now) = (Places::default(), Instant::now());
        crowded(&places, PLACES + 2, now);
        assert_eq!(places.leave(&machine("one", 3), now), [machine("one", PLACES)]);
        assert!(places.leave(&machine("one", PLACES + 1), now).is_empty(), "it waited");
        assert!(places.enter(&key("one", PLACES), &machine("one", PLACES), now).0);
        // A machine that waits for another cluster leaves the first one.
        let (has_place, woken) = places.enter(&key("two", "edge"), &machine("one", 4), now);
        assert!(has_place && woken.is_empty());
        assert!(places.enter(&key("one", "new"), &machine("one", "new"), now).0);
        for number in 0..PLACES + 2 {
            places.leave(&machine("one", number), now);
        }
        places.leave(&machine("one", "new"), now);
        assert_eq!(places.rotate(now, |_| false), (vec![], vec![]));
        let state = places.0.lock();
        assert!(state.namespaces.is_empty() && state.cluster_of.is_empty());
    }

    #[test]
    fn page_that_is_read_counts_until_it_ends() {
        let (places, now) = (Places::default(), Instant::now());
        let running = places.pages("one");
        let pages = u32::try_from(PAGES).unwrap();
        let permit = running.try_acquire_many(pages).unwrap();
        // Another cluster of the namespace comes and goes.
        crowded(&places, 1, now);
        places.leave(&machine("one", 0), now);
        places.rotate(now, |_| false);
        assert!(places.pages("one").try_acquire().is_err());
        drop(permit);
        assert!(places.pages("one").try_acquire().is_ok());
        drop(running);
        places.rotate(now, |_| false);
        assert!(places.0.lock().namespaces.is_empty());
    }

    #[test]
    fn turns_end_only_while_others_wait() {
        let (places, now) = (Places::default(), Instant::now());
        crowded(&places, PLACES, now);
        assert_eq!(places.rotate(now + TURN, |_| false), (vec![], vec![]));
        crowded(&places, PLACES + 1, now);
        assert_eq!(places.rotate(now, |_| false), (vec![], vec![]));
        let (lost, woken) = places.rotate(now + TURN, |_| false);
        assert_eq!(lost, [machine("one", 0)]);
        assert_eq!(woken, [machine("one", 0), machine("one", PLACES)]);
        // Each has its turn.
        let (lost, _) = places.rotate(now + TURN, |_| false);
        assert_eq!(lost, [machine("one", 1)]);
    }
}
