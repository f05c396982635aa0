//! The cache, and the namespaces that a change concerns.

use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch};
use metal3_runtime::cache::{Cache, Change, Index, Indexes, Key, SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::Outputs;
use crate::live::Reading;
use crate::needs::Switches;
use crate::secret_use::secrets_of_host;

/// The switches by namespace, and by the Secret with their login.
#[derive(Default)]
pub struct SwitchIndexes {
    by_namespace: Index<String>,
    by_secret: Index<Key>,
}

impl SwitchIndexes {
    pub(super) fn in_namespace(&self, namespace: &str) -> bool {
        self.by_namespace.get(&namespace.to_owned()).next().is_some()
    }

    pub(super) fn names(&self, secret: &Key) -> bool {
        self.by_secret.get(secret).next().is_some()
    }
}

impl Indexes<BareMetalSwitch> for SwitchIndexes {
    fn replace(&mut self, key: &Key, old: Option<&BareMetalSwitch>, new: Option<&BareMetalSwitch>) {
        let namespace = |_: &BareMetalSwitch| key.namespace.clone();
        self.by_namespace.replace(key, old.map(namespace), new.map(namespace));
        let secret = |one: &BareMetalSwitch| Some(key.sibling(one.spec.credentials.as_ref()?.name.as_deref()?));
        self.by_secret.replace(key, old.and_then(secret), new.and_then(secret));
    }
}

/// Switches. Clones share them.
#[derive(Clone, Default)]
pub struct Caches {
    pub(super) switches: SharedCache<BareMetalSwitch, SharedIndexes<SwitchIndexes>>,
}

impl Caches {
    /// The watch. The kind need not be installed.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Switches> {
        WatchSet::new(config).optional(&self.switches)
    }
}

/// Whether all switches are in the cache. Otherwise one that is not there may exist.
pub(super) fn are_listed<I: Indexes<BareMetalSwitch>>(cache: &Cache<BareMetalSwitch, I>) -> bool {
    cache.synced() && cache.is_permitted() && cache.is_served()
}

/// The Secrets of switches, for a controller that sends the content of Secrets elsewhere.
#[derive(Clone)]
pub struct SecretsOfSwitches {
    /// The switches.
    pub caches: Caches,
    /// The Secrets that are written for Ironic.
    pub outputs: Outputs,
}

impl SecretsOfSwitches {
    /// Whether a switch names the Secret, or it is written for Ironic.
    pub(crate) fn have(&self, secret: &Key) -> Reading<bool> {
        if [&self.outputs.configs, &self.outputs.keys].contains(&&secret.name) {
            return Reading::Known(true);
        }
        self.caches.switches.read(|cache| {
            if cache.indexes().read(|indexes| indexes.names(secret)) {
                return Reading::Known(true);
            }
            if !are_listed(cache) {
                return Reading::Failed("BareMetalSwitches cannot be listed, and one may name it".to_owned());
            }
            let unreadable = cache.unreadable().find(|one| one.namespace == secret.namespace);
            unreadable.map_or(Reading::Known(false), |one| {
                Reading::Failed(format!(
                    "BareMetalSwitch {} cannot be decoded, and may name it",
                    one.name
                ))
            })
        })
    }
}

/// Whether a change of a switch is none of what is written. A switch that is touched costs no read.
pub(super) fn is_same(change: &Change<'_, BareMetalSwitch>) -> bool {
    change.is_same(|old, new| {
        let (old_meta, new_meta) = (&old.metadata, &new.metadata);
        let is_same_object = old_meta.uid == new_meta.uid && old_meta.deletion_timestamp == new_meta.deletion_timestamp;
        is_same_object && old.spec == new.spec && old.status == new.status
    })
}

/// The Secrets that a host begins or ceases to name: one that a host uses is no login of a switch. `None`: not known.
pub(super) fn secrets_of_change(change: &Change<'_, BareMetalHost>) -> Option<BTreeSet<String>> {
    let names = |host: &BareMetalHost| -> BTreeSet<String> { secrets_of_host(host).map(str::to_owned).collect() };
    match change {
        Change::Applied {
            old: Some(old),
            new,
            was_unreadable: false,
        } => Some(&names(old) ^ &names(new)),
        Change::Applied {
            old: None,
            new,
            was_unreadable: false,
        } => Some(names(new)),
        Change::Deleted {
            old: Some(old),
            was_unreadable: false,
            ..
        } => Some(names(old)),
        Change::Applied { .. } | Change::Deleted { .. } | Change::Unreadable { .. } => None,
        Change::Synced => Some(BTreeSet::new()),
    }
}
