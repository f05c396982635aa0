//! The caches, and which subscriptions a change concerns.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_runtime::cache::{Index, Indexes, Key, SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::needs::Subscriptions;

/// The subscriptions by host and by the Secret with their headers.
#[derive(Default)]
pub struct SubscriptionIndexes {
    by_host: Index<Key>,
    by_secret: Index<Key>,
}

impl SubscriptionIndexes {
    /// The subscriptions of a host.
    pub(super) fn of_host(&self, host: &Key) -> Vec<Key> {
        self.by_host.get(host).cloned().collect()
    }

    /// The subscriptions with the headers of a Secret.
    pub(super) fn of_secret(&self, secret: &Key) -> Vec<Key> {
        self.by_secret.get(secret).cloned().collect()
    }
}

impl Indexes<BMCEventSubscription> for SubscriptionIndexes {
    fn replace(&mut self, key: &Key, old: Option<&BMCEventSubscription>, new: Option<&BMCEventSubscription>) {
        let host = |one: &BMCEventSubscription| Some(key.sibling(one.spec.host_name.as_deref()?));
        self.by_host.replace(key, old.and_then(host), new.and_then(host));
        let secret = |one: &BMCEventSubscription| {
            let name = one.spec.http_headers_ref.as_ref()?.name.as_deref()?;
            Some(key.sibling(name))
        };
        self.by_secret.replace(key, old.and_then(secret), new.and_then(secret));
    }
}

/// Subscriptions. Clones share them.
#[derive(Clone, Default)]
pub struct Caches {
    pub(super) subscriptions: SharedCache<BMCEventSubscription, SharedIndexes<SubscriptionIndexes>>,
}

impl Caches {
    /// The watch. The kind need not be installed.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Subscriptions> {
        WatchSet::new(config).optional(&self.subscriptions)
    }

    /// The other subscriptions of a host.
    pub(super) fn siblings(&self, key: &Key, host: &Key) -> Vec<Arc<BMCEventSubscription>> {
        self.subscriptions.read(|cache| {
            let keys = cache.indexes().read(|indexes| indexes.of_host(host));
            let others = keys.iter().filter(|other| *other != key);
            others
                .filter_map(|other| cache.get(other).into_present().cloned())
                .collect()
        })
    }
}

/// The subscriptions of a host are reconciled one after the other: which of the BMC's is whose is decided from the list.
#[derive(Default)]
pub(super) struct Turns(Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// The turn of a subscription of the host. `None`: another one is reconciled.
    pub(super) fn take(&self, host: &Key) -> Option<OwnedMutexGuard<()>> {
        let mut all = self.0.lock();
        all.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = Arc::clone(all.entry(host.clone()).or_default());
        turn.try_lock_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subscription_is_found_by_its_host_and_its_secret_until_it_is_deleted() {
        let key = |name: &str| Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        };
        let spec = json!({ "hostName": "h", "httpHeadersRef": { "name": "s", "namespace": "elsewhere" } });
        let object: BMCEventSubscription = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
        let mut indexes = SubscriptionIndexes::default();
        indexes.replace(&key("events"), None, Some(&object));
        assert_eq!(indexes.of_host(&key("h")), [key("events")]);
        assert_eq!(indexes.of_secret(&key("s")), [key("events")], "of its own namespace");
        indexes.replace(&key("events"), Some(&object), None);
        assert!(indexes.of_host(&key("h")).is_empty() && indexes.of_secret(&key("s")).is_empty());
    }

    #[test]
    fn subscriptions_of_one_host_wait_for_each_other() {
        let turns = Turns::default();
        let host = |name: &str| Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        };
        let first = turns.take(&host("h"));
        assert!(first.is_some() && turns.take(&host("h")).is_none());
        assert!(turns.take(&host("other")).is_some());
        drop(first);
        assert!(turns.take(&host("h")).is_some());
    }
}
