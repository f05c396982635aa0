//! Which requests may be sent, and who is enqueued, from arrivals and ends alone.
//!
//! - Places are limited, see [`Limits`]. A place is held from the first request of a reconcile to the end of the reconcile.
//! - A caller that finds no place waits. When a place is free, the first one that may have it is enqueued, and the place is kept
//!   for it for a short time. So no one waits while there is a place that it may have. One that comes later than that
//!   waits where it waited before.
//! - Among the namespaces that wait, the one with the fewest places for slow servers goes first, and of these the one that
//!   had a place longest ago. Among the clusters of a namespace it is the one with the fewest places, and the same. The keys
//!   of a cluster go in the order of their arrival.

mod usage;

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_runtime::cache::Key;
use tokio::time::Instant;

/// How long a place is kept for a key that is enqueued for it: longer than it usually waits for a worker.
pub(super) const KEPT: Duration = Duration::from_secs(5);
/// A server that takes longer for one response is slow.
pub(super) const QUICK: Duration = Duration::from_secs(1);
/// How long that is remembered of a server. A slow one does not become quick earlier, whatever it answers.
pub(super) const REMEMBERED: Duration = Duration::from_mins(5);

/// How many places there are for the requests of one controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// For the clusters of one namespace. All but one may be for quick servers.
    pub(super) of_namespace: usize,
    /// Of these, for servers that are not known to be quick, all but one at most.
    pub(super) slow_of_namespace: usize,
    /// For all servers that are not known to be quick.
    pub(super) slow: usize,
}

impl Limits {
    /// A request holds a worker until the server of a tenant answers: a namespace gets two fifths of the workers, and slow
    /// servers of all namespaces half of them.
    pub(super) fn of(workers: usize) -> Self {
        let of_namespace = (workers.saturating_mul(2) / 5).max(2);
        Self {
            of_namespace,
            slow_of_namespace: of_namespace.saturating_sub(1).min(2),
            slow: (workers / 2).max(1),
        }
    }
}

/// Those to enqueue, because a place is kept for them.
pub(super) type Woken = Vec<Key>;

/// The places of one controller, by the keys that it reconciles.
pub(super) struct State {
    pub(super) limits: Limits,
    held: BTreeMap<Key, Held>,
    /// The keys that have asked for a place and not used one since. Those for which none is kept are in a queue, except
    /// those that did not come in time, until they come.
    tickets: BTreeMap<Key, Ticket>,
    namespaces: BTreeMap<String, Namespace>,
    last: Order,
    servers: BTreeMap<Key, Server>,
}

/// A number in the order of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Order(u64);

#[derive(Clone)]
struct Ticket {
    cluster: Key,
    arrival: Order,
}

/// A namespace with clusters for which keys wait.
struct Namespace {
    /// The last time at which it had a place, or the beginning of its wait.
    served: Order,
    clusters: BTreeMap<Key, Queue>,
}

struct Queue {
    /// As of a namespace.
    served: Order,
    /// By arrival.
    keys: BTreeMap<Order, Key>,
}

struct Held {
    cluster: Key,
    until: Until,
}

impl Held {
    /// Whether its server lets it wait for longer than a quick one does.
    fn is_late(&self, now: Instant) -> bool {
        match self.until {
            Until::Reconciled { awaiting: Some(since) } => now.duration_since(since) > QUICK,
            Until::Reconciled { awaiting: None } | Until::Kept(_) => false,
        }
    }
}

enum Until {
    /// The end of a reconcile, and since when it has awaited a response.
    Reconciled { awaiting: Option<Instant> },
    /// This time, unless the key is reconciled.
    Kept(Instant),
}

/// What is remembered of a server.
struct Server {
    is_quick: bool,
    until: Instant,
}

impl State {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            held: BTreeMap::new(),
            tickets: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            last: Order::default(),
            servers: BTreeMap::new(),
        }
    }

    /// Whether `key` may send a request to `cluster` of its namespace, and others until the end of its reconcile. If not, it
    /// waits from now on.
    pub(super) fn begin(&mut self, key: &Key, cluster: &Key, now: Instant) -> (bool, Woken) {
        // A key has one place and one wait: its Cluster may change.
        if self.held.get(key).is_some_and(|held| held.cluster != *cluster) {
            self.held.remove(key);
        }
        if self.tickets.get(key).is_some_and(|ticket| ticket.cluster != *cluster) {
            self.stop_waiting(key);
        }
        let mut woken = Woken::new();
        if !self.held.contains_key(key) {
            woken = self.refresh(now);
            woken.retain(|one| one != key);
        }
        if let Some(held) = self.held.get_mut(key) {
            if let Until::Kept(_) = held.until {
                held.until = Until::Reconciled { awaiting: None };
            }
            self.tickets.remove(key);
            return (true, woken);
        }
        // A caller that waits for a free place has it by now, so this one goes in front of no other.
        let usage = self.usage(now);
        let is_free = self.room(&usage, &key.namespace).permits(usage.is_quick(cluster));
        if is_free {
            self.tickets.remove(key);
            self.hold(key, cluster, Until::Reconciled { awaiting: None }, now);
        } else {
            self.wait(key, cluster);
        }
        (is_free, woken)
    }

    /// The reconcile of `key` awaits a response.
    pub(super) fn asked(&mut self, key: &Key, now: Instant) {
        if let Some(Until::Reconciled { awaiting }) = self.held.get_mut(key).map(|held| &mut held.until) {
            *awaiting = Some(now);
        }
    }

    /// It does not any more: there is one, or the time for it is over.
    pub(super) fn answered(&mut self, key: &Key, now: Instant) -> Woken {
        let Some(held) = self.held.get_mut(key) else {
            return Woken::new();
        };
        if let Until::Reconciled { awaiting } = &mut held.until
            && let Some(since) = awaiting.take()
        {
            let cluster = held.cluster.clone();
            self.remember(cluster, now.duration_since(since) <= QUICK, now);
        }
        self.refresh(now)
    }

    /// The reconcile of `key` ends. A place that is kept for the next one stays, and so does its wait.
    pub(super) fn end(&mut self, key: &Key, now: Instant) -> Woken {
        if !self.is_kept(key)
            && let Some(held) = self.held.remove(key)
        {
            self.served(&held.cluster, now);
            return self.refresh(now);
        }
        // Most reconciles ask for nothing.
        Woken::new()
    }

    /// `key` does not wait any more.
    pub(super) fn leave(&mut self, key: &Key, now: Instant) -> Woken {
        if !self.tickets.contains_key(key) && !self.is_kept(key) {
            return Woken::new();
        }
        self.stop_waiting(key);
        self.refresh(now)
    }

    /// Ends the places that were kept for too long, and gives away those that are free.
    pub(super) fn refresh(&mut self, now: Instant) -> Woken {
        self.held
            .retain(|_, held| !matches!(held.until, Until::Kept(until) if until <= now));
        let mut woken = Woken::new();
        while let Some(key) = self.next(now) {
            let Some(ticket) = self.tickets.get(&key).cloned() else {
                break;
            };
            self.remove_from_queue(&key, &ticket);
            let until = now.checked_add(KEPT).unwrap_or(now);
            self.hold(&key, &ticket.cluster, Until::Kept(until), now);
            woken.push(key);
        }
        woken
    }

    /// Removes what was remembered of servers for long enough.
    pub(super) fn forget(&mut self, now: Instant) {
        self.servers.retain(|_, server| server.until > now);
    }

    /// The first that waits for a place that is free.
    fn next(&self, now: Instant) -> Option<Key> {
        if self.namespaces.is_empty() {
            return None;
        }
        let usage = self.usage(now);
        let first = |(name, namespace): (&String, &Namespace)| {
            let room = self.room(&usage, name);
            let is_next = |(cluster, _): &(&Key, &Queue)| room.permits(usage.is_quick(cluster));
            let queues = namespace.clusters.iter().filter(is_next);
            let held = |cluster: &Key| usage.of_cluster.get(cluster).copied().unwrap_or_default();
            let (_, queue) = queues.min_by_key(|(cluster, queue)| (held(cluster), queue.served))?;
            let (_, key) = queue.keys.first_key_value()?;
            Some((room.slow, namespace.served, key.clone()))
        };
        let firsts = self.namespaces.iter().filter_map(first);
        let next = firsts.min_by_key(|(slow, served, _)| (*slow, *served));
        next.map(|(.., key)| key)
    }

    fn hold(&mut self, key: &Key, cluster: &Key, until: Until, now: Instant) {
        let cluster = cluster.clone();
        self.served(&cluster, now);
        self.held.insert(key.clone(), Held { cluster, until });
    }

    /// The cluster gets a place, or has had one until now: others go first. Namespaces compete for the places of slow servers
    /// only, so a place for a quick one does not put its namespace behind others.
    fn served(&mut self, cluster: &Key, now: Instant) {
        if !self.namespaces.contains_key(&cluster.namespace) {
            return;
        }
        let order = self.next_order();
        let is_quick = self.usage(now).is_quick(cluster);
        if let Some(namespace) = self.namespaces.get_mut(&cluster.namespace) {
            if !is_quick {
                namespace.served = order;
            }
            if let Some(queue) = namespace.clusters.get_mut(cluster) {
                queue.served = order;
            }
        }
    }

    const fn next_order(&mut self) -> Order {
        self.last = Order(self.last.0.wrapping_add(1));
        self.last
    }

    fn is_kept(&self, key: &Key) -> bool {
        self.held
            .get(key)
            .is_some_and(|held| matches!(held.until, Until::Kept(_)))
    }

    fn wait(&mut self, key: &Key, cluster: &Key) {
        let order = self.next_order();
        let ticket = self.tickets.entry(key.clone()).or_insert_with(|| Ticket {
            cluster: cluster.clone(),
            arrival: order,
        });
        let arrival = ticket.arrival;
        let namespace = self.namespaces.entry(cluster.namespace.clone());
        let namespace = namespace.or_insert_with(|| Namespace {
            served: order,
            clusters: BTreeMap::new(),
        });
        let queue = namespace.clusters.entry(cluster.clone()).or_insert_with(|| Queue {
            served: order,
            keys: BTreeMap::new(),
        });
        queue.keys.insert(arrival, key.clone());
    }

    fn stop_waiting(&mut self, key: &Key) {
        if self.is_kept(key) {
            self.held.remove(key);
        }
        if let Some(ticket) = self.tickets.remove(key) {
            self.remove_from_queue(key, &ticket);
        }
    }

    fn remove_from_queue(&mut self, key: &Key, ticket: &Ticket) {
        let Some(namespace) = self.namespaces.get_mut(&key.namespace) else {
            return;
        };
        if let Some(queue) = namespace.clusters.get_mut(&ticket.cluster) {
            queue.keys.remove(&ticket.arrival);
        }
        namespace.clusters.retain(|_, queue| !queue.keys.is_empty());
        if namespace.clusters.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
    }

    fn remember(&mut self, cluster: Key, is_quick: bool, now: Instant) {
        let known = self.servers.get(&cluster);
        let was_slow = known.is_some_and(|server| !server.is_quick && server.until > now);
        if let Some(until) = now.checked_add(REMEMBERED)
            && !(is_quick && was_slow)
        {
            self.servers.insert(cluster, Server { is_quick, until });
        }
    }
}

#[cfg(test)]
mod tests;
