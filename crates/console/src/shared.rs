//! The objects that all watches fill and all pages ask about.

use std::collections::BTreeSet;

use metal3_explain::{ObjectId, Read, Snapshot};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::kinds;
use crate::objects::{Changed, Objects};

/// More rounds than an answer needs.
const ROUNDS: usize = 64;

/// The objects of all watches, for all pages.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    objects: RwLock<Objects>,
    /// Kinds of other providers that a page needs.
    wanted: Mutex<BTreeSet<ObjectId>>,
    /// For the one who computes batches.
    pub(crate) changed: Notify,
    /// For those who wait for the first lists.
    lists: Notify,
    pub(crate) wants: Notify,
    /// Objects that answers to reads had, so far.
    #[cfg(test)]
    pub(crate) handed: std::sync::atomic::AtomicUsize,
}

impl Shared {
    /// Reads from the objects.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Objects) -> T) -> T {
        look(&self.objects.read())
    }

    /// Changes the objects.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Objects)) {
        change(&mut self.objects.write());
        self.changed.notify_one();
        self.lists.notify_waiters();
    }

    /// What changed since the last call.
    pub(crate) fn take_changed(&self) -> BTreeSet<Changed> {
        self.objects.write().take_changed()
    }

    /// The kinds that pages need, so far.
    pub(crate) fn wanted(&self) -> BTreeSet<ObjectId> {
        self.wanted.lock().clone()
    }

    pub(crate) async fn listed(&self) {
        loop {
            // It counts from here, before the look.
            let changed = self.lists.notified();
            if self.read(Objects::is_listed) {
                return;
            }
            changed.await;
        }
    }

    /// Answers a question about a namespace. `None`: it never ends.
    pub(crate) fn ask<T>(
        &self,
        namespace: &str,
        question: impl Fn(&Snapshot) -> Result<T, BTreeSet<Read>>,
    ) -> Option<T> {
        let mut snapshot = Snapshot::default();
        self.ask_with(&mut snapshot, namespace, question)
    }

    /// The same, with what was read before for the same namespace.
    pub(crate) fn ask_with<T>(
        &self,
        snapshot: &mut Snapshot,
        namespace: &str,
        question: impl Fn(&Snapshot) -> Result<T, BTreeSet<Read>>,
    ) -> Option<T> {
        for _ in 0..ROUNDS {
            let wanted = match question(snapshot) {
                Ok(answer) => return Some(answer),
                Err(wanted) => wanted,
            };
            self.want(&wanted);
            let answers: Vec<_> =
                self.read(|objects| wanted.iter().map(|read| objects.answer(namespace, read)).collect());
            for (read, found) in answers {
                #[cfg(test)]
                self.handed
                    .fetch_add(found.iter().flatten().count(), std::sync::atomic::Ordering::Relaxed);
                snapshot.insert_shared(read, found);
            }
        }
        None
    }

    /// Has kinds of other providers watched that are not yet.
    fn want(&self, reads: &BTreeSet<Read>) {
        let kinds = reads.iter().filter_map(|read| match read {
            Read::Object(id) | Read::List { kind: id, .. } => Some(kinds::of(id)),
            Read::Events(_) => None,
        });
        let mut wanted = self.wanted.lock();
        for kind in kinds.filter(|kind| !kinds::is_secret(kind) && !kinds::first().contains(kind)) {
            if wanted.len() < kinds::MOST_FOREIGN && wanted.insert(kind) {
                self.wants.notify_one();
            }
        }
    }
}
