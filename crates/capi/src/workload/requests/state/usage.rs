//! The places that are held, counted by namespace and by cluster.

use std::collections::{BTreeMap, BTreeSet};

use metal3_runtime::cache::Key;
use tokio::time::Instant;

use super::{Server, State};

/// The places that are held.
pub(super) struct Usage<'a> {
    servers: &'a BTreeMap<Key, Server>,
    now: Instant,
    /// The servers that make a caller wait now.
    late: BTreeSet<&'a Key>,
    of_namespace: BTreeMap<&'a str, Near>,
    pub(super) of_cluster: BTreeMap<&'a Key, usize>,
    /// Those for servers that are not known to be quick.
    slow: usize,
}

impl Usage<'_> {
    /// Whether a server is known to be quick.
    pub(super) fn is_quick(&self, cluster: &Key) -> bool {
        let server = self.servers.get(cluster);
        server.is_some_and(|server| server.is_quick && server.until > self.now) && !self.late.contains(cluster)
    }
}

/// The places of one namespace, and how many of them are for servers that are not known to be quick.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Near {
    all: usize,
    slow: usize,
}

/// The places that a namespace may have.
pub(super) struct Room {
    /// Those for servers that are not known to be quick.
    pub(super) slow: usize,
    is_free_for_slow: bool,
    is_free_for_quick: bool,
}

impl Room {
    pub(super) const fn permits(&self, is_quick: bool) -> bool {
        if is_quick {
            self.is_free_for_quick
        } else {
            self.is_free_for_slow
        }
    }
}

impl State {
    /// The places that are held now, counted once.
    pub(super) fn usage(&self, now: Instant) -> Usage<'_> {
        let late = self.held.values().filter(|held| held.is_late(now));
        let mut usage = Usage {
            servers: &self.servers,
            now,
            late: late.map(|held| &held.cluster).collect(),
            of_namespace: BTreeMap::new(),
            of_cluster: BTreeMap::new(),
            slow: 0,
        };
        for (key, held) in &self.held {
            let is_slow = usize::from(!usage.is_quick(&held.cluster));
            let near = usage.of_namespace.entry(&key.namespace).or_default();
            near.all = near.all.saturating_add(1);
            near.slow = near.slow.saturating_add(is_slow);
            usage.slow = usage.slow.saturating_add(is_slow);
            let of_cluster = usage.of_cluster.entry(&held.cluster).or_default();
            *of_cluster = of_cluster.saturating_add(1);
        }
        usage
    }

    pub(super) fn room(&self, usage: &Usage<'_>, namespace: &str) -> Room {
        let near = usage.of_namespace.get(namespace).copied().unwrap_or_default();
        let limits = &self.limits;
        let (is_free, quick) = (near.all < limits.of_namespace, near.all.saturating_sub(near.slow));
        Room {
            slow: near.slow,
            is_free_for_slow: is_free && near.slow < limits.slow_of_namespace && usage.slow < limits.slow,
            // The last place is for one that is not known to be quick: it may have no other.
            is_free_for_quick: is_free && quick.saturating_add(1) < limits.of_namespace,
        }
    }
}
