//! Which changes of a cache the writer of a key made itself.
//!
//! The response to a write enters the cache, and the watch delivers the same version before or after it. Neither is a
//! reason to reconcile the key that wrote. But a response may also contain a change that another client made just
//! before, and that is a reason. Versions distinguish the two: the watch delivers each version, so a version that
//! is older than the own write, newer than the cached object before the response, and not an own write, is a change of
//! another client.
//!
//! Invariant: a change of another client that entered the cache with the response to an own write enqueues the source
//! of that write, at the latest when the watch delivers it.

use std::collections::BTreeMap;

use crate::queue::{Queue, RequestSource};
use crate::version::ResourceVersion;

use super::identity::{Identity, Key};

/// An own write that the watch has not delivered yet.
struct OwnWrite {
    uid: String,
    version: ResourceVersion,
    /// The cached version before the response: the source was notified of changes up to there.
    since: Option<ResourceVersion>,
    source: RequestSource,
}

/// An own request without a response.
struct InFlightWrite {
    id: u64,
    source: RequestSource,
    /// Versions that the watch delivered since, without a notification of the source.
    skipped: Vec<ResourceVersion>,
}

/// The origin of the change that the cache is delivering.
#[derive(Default)]
enum Origin {
    /// No known write.
    #[default]
    Anyone,
    List,
    /// The response to a write.
    Answer(RequestSource),
    /// The watch, which delivers own writes of these sources.
    Watch(Identity, Vec<RequestSource>),
}

/// The own writes of one cache that the watch has not delivered yet.
#[derive(Default)]
pub(super) struct OwnWrites {
    own: BTreeMap<Key, Vec<OwnWrite>>,
    in_flight: BTreeMap<Key, Vec<InFlightWrite>>,
    next_id: u64,
    origin: Origin,
}

impl OwnWrites {
    /// Whether the change in delivery is an own write of `key` of `queue`, or may be one.
    pub(super) fn is_own_write<Q: Ord + Clone + Send + Sync + 'static>(&mut self, queue: &Queue<Q>, key: &Q) -> bool {
        match &self.origin {
            Origin::Anyone | Origin::List => false,
            Origin::Answer(source) => source.is(queue, key),
            Origin::Watch(_, own_sources) if own_sources.iter().any(|source| source.is(queue, key)) => true,
            Origin::Watch(seen, _) => {
                let mut in_flight = self.in_flight.get_mut(&seen.key).into_iter().flatten();
                let own = in_flight.find(|write| write.source.is(queue, key));
                own.is_some_and(|write| {
                    write.skipped.push(seen.version.clone());
                    true
                })
            }
        }
    }

    /// Whether the change in delivery comes from a list.
    pub(super) const fn is_listing(&self) -> bool {
        matches!(self.origin, Origin::List)
    }

    /// The next changes come from the response to `source`.
    pub(super) fn begin_response(&mut self, source: &RequestSource) {
        self.origin = Origin::Answer(source.clone());
    }

    /// The next changes come from a list at `at`, or from a restored server without one. A list does not deliver
    /// intermediate versions. Returns the sources that may have missed a change.
    pub(super) fn listed(&mut self, at: Option<&ResourceVersion>) -> Vec<RequestSource> {
        self.origin = Origin::List;
        let mut missed = Vec::new();
        self.own.retain(|_, own| {
            missed.extend(
                own.extract_if(.., |own| at.is_none_or(|at| own.version <= *at))
                    .map(|own| own.source),
            );
            !own.is_empty()
        });
        missed
    }

    /// The delivery is complete.
    pub(super) fn end_delivery(&mut self) {
        self.origin = Origin::Anyone;
    }

    /// The watch will deliver this write of `source`. Before the response the cache had the object at `since`.
    pub(super) fn await_event(&mut self, source: RequestSource, written: &Identity, since: Option<ResourceVersion>) {
        self.own.entry(written.key.clone()).or_default().push(OwnWrite {
            uid: written.uid.clone(),
            version: written.version.clone(),
            since,
            source,
        });
    }

    /// The watch reached `version` without the writes before it: its scope does not contain their objects.
    pub(super) fn passed(&mut self, version: &ResourceVersion) {
        self.own.retain(|_, own| {
            own.retain(|own| own.version > *version);
            !own.is_empty()
        });
    }

    /// The number of own writes that the watch has not delivered yet.
    #[cfg(test)]
    pub(super) fn expected(&self) -> usize {
        self.own.values().map(Vec::len).sum()
    }

    /// The watch delivers this version. Returns the sources whose response contained it although another client wrote
    /// it.
    pub(super) fn watched(&mut self, seen: &Identity) -> Vec<RequestSource> {
        let mut own_sources = Vec::new();
        let mut foreign = Vec::new();
        if let Some(own) = self.own.get_mut(&seen.key) {
            // The watch does not go back: it has skipped older writes.
            own.retain(|own| own.version >= seen.version);
            let same = |own: &mut OwnWrite| own.version == seen.version && own.uid == seen.uid;
            own_sources.extend(own.extract_if(.., same).map(|own| own.source));
            if own_sources.is_empty() {
                let was_skipped = |own: &&OwnWrite| own.since.as_ref().is_none_or(|since| *since < seen.version);
                let of_it = own.iter().filter(|own| own.uid == seen.uid).filter(was_skipped);
                foreign.extend(of_it.map(|own| own.source.clone()));
            }
            if own.is_empty() {
                self.own.remove(&seen.key);
            }
        }
        self.origin = Origin::Watch(seen.clone(), own_sources);
        foreign
    }

    /// The watch reports the deletion of the object, so no write of it follows.
    pub(super) fn gone(&mut self, last: &Identity) {
        if let Some(own) = self.own.get_mut(&last.key) {
            own.retain(|own| own.uid != last.uid);
            if own.is_empty() {
                self.own.remove(&last.key);
            }
        }
        self.origin = Origin::Watch(last.clone(), Vec::new());
    }

    /// `source` sends a request about `key`.
    pub(super) fn begin_write(&mut self, source: RequestSource, key: Key) -> u64 {
        self.next_id = self.next_id.wrapping_add(1);
        let id = self.next_id;
        let skipped = Vec::new();
        self.in_flight
            .entry(key)
            .or_default()
            .push(InFlightWrite { id, source, skipped });
        id
    }

    /// The request has its response, or will never have one. Returns the versions that its source was not notified of.
    pub(super) fn complete(&mut self, key: &Key, id: u64) -> Vec<ResourceVersion> {
        let Some(in_flight) = self.in_flight.get_mut(key) else {
            return Vec::new();
        };
        let completed = in_flight.extract_if(.., |write| write.id == id);
        let skipped = completed.flat_map(|write| write.skipped).collect();
        if in_flight.is_empty() {
            self.in_flight.remove(key);
        }
        skipped
    }
}
