//! The decoded objects of a list, with the indexes by which explanations find them.
//!
//! A list is decoded once for a snapshot, and each object is found by an index: explaining all objects of a fleet looks at each a
//! few times. [`work`](crate::work) counts each look, which the private members make complete.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use metal3_api::kind::Kind;

use crate::read::NotRead;
use crate::values::name;
use crate::work;

/// The objects of a list that can be decoded.
#[derive(Debug)]
pub(crate) struct Listed<K> {
    objects: Vec<K>,
    /// Those that cannot be decoded.
    unreadable: Vec<NotRead>,
    by_name: OnceLock<BTreeMap<(String, String), usize>>,
    by_owner: OnceLock<BTreeMap<String, Vec<usize>>>,
}

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl<K> Listed<K> {
    pub(crate) const fn new(objects: Vec<K>, unreadable: Vec<NotRead>) -> Self {
        Self {
            objects,
            unreadable,
            by_name: OnceLock::new(),
            by_owner: OnceLock::new(),
        }
    }

    pub(crate) fn unreadable(&self) -> &[NotRead] {
        &self.unreadable
    }

    pub(crate) const fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.objects.iter().inspect(|_| work::visit())
    }
}

impl<K: Kind> Listed<K> {
    /// The object with this name.
    pub(crate) fn named(&self, namespace: &str, wanted: &str) -> Option<&K> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name = BTreeMap::new();
            for (at, object) in self.iter().enumerate() {
                let meta = object.meta();
                let key = (meta.namespace.clone().unwrap_or_default(), name(meta).to_owned());
                by_name.entry(key).or_insert(at);
            }
            by_name
        });
        work::visit();
        let at = by_name.get(&(namespace.to_owned(), wanted.to_owned()))?;
        self.objects.get(*at)
    }

    /// The objects that an object with this UID owns.
    pub(crate) fn owned_by(&self, uid: Option<&str>) -> impl Iterator<Item = &K> {
        let by_owner = self.by_owner.get_or_init(|| {
            let mut by_owner: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (at, object) in self.iter().enumerate() {
                let owners = object.meta().owner_references.as_deref().unwrap_or_default();
                for owner in owners {
                    by_owner.entry(owner.uid.clone()).or_default().push(at);
                }
            }
            by_owner
        });
        let owned = uid.and_then(|uid| by_owner.get(uid));
        let owned = owned.into_iter().flatten().filter_map(|at| self.objects.get(*at));
        owned.inspect(|_| work::visit())
    }
}
