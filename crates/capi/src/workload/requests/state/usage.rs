//! The places that are held, counted by namespace and by cluster.

use std::collections::{BTreeMap, BTreeSet};

use metal3_runtime::cache::Key;
use tokio::time::Instant;

use super::State;

/// The places that are held.
#[derive(Default)]
pub(super) struct Usage<'a> {
    /// The servers that are known to be quick.
    quick: BTreeSet<&'a Key>,
    of_namespace: BTreeMap<&'a str, Near>,
    pub(super) of_cluster: BTreeMap<&'a Key, usize>,
    /// Those for servers that are not known to be quick.
    slow: usize,
}

impl Usage<'_> {
    pub(super) fn is_quick(&self, cluster: &Key) -> bool {
        self.quick.contains(cluster)
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
        let quick = self
            .servers
            .iter()
            .filter(|(_, server)| server.is_quick && server.until > now);
        let mut usage = Usage {
            quick: quick.map(|(cluster, _)| cluster).collect(),
            ..Usage::default()
        };
        // A server that makes a caller wait now is not quick.
        for held in self.held.values().filter(|held| held.is_late(now)) {
            usage.quick.remove(&held.cluster);
        }
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
