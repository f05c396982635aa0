//! The decoded objects of a list, with the indexes by which explanations find them.
//!
//! A list is decoded once for a snapshot, and each object is found by an index: explaining all objects of a fleet looks at each a
//! few times. [`work`](crate::work) counts each look, which the private members make complete.

use std::sync::OnceLock;

use metal3_api::kind::Kind;

use crate::index::Index;
use crate::read::NotRead;
use crate::values::name;
use crate::work;

/// The objects of a list that can be decoded.
#[derive(Debug)]
pub(crate) struct Listed<K> {
    objects: Vec<K>,
    /// Those that cannot be decoded.
    unreadable: Vec<NotRead>,
    by_name: OnceLock<Index<(String, String), usize>>,
    by_owner: OnceLock<Index<String, usize>>,
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
            Index::of(self.iter().enumerate().map(|(at, object)| {
                let meta = object.meta();
                ((meta.namespace.clone().unwrap_or_default(), name(meta).to_owned()), at)
            }))
        });
        work::visit();
        let at = by_name.first(&(namespace.to_owned(), wanted.to_owned()))?;
        self.objects.get(*at)
    }

    /// The objects that an object with this UID owns.
    pub(crate) fn owned_by(&self, uid: Option<&str>) -> impl Iterator<Item = &K> {
        let by_owner = self.by_owner.get_or_init(|| {
            Index::of(self.iter().enumerate().flat_map(|(at, object)| {
                let owners = object.meta().owner_references.as_deref().unwrap_or_default();
                owners.iter().map(move |owner| (owner.uid.clone(), at))
            }))
        });
        let owned = uid.into_iter().flat_map(|uid| by_owner.all(uid));
        let owned = owned.filter_map(|at| self.objects.get(*at));
        owned.inspect(|_| work::visit())
    }
}
