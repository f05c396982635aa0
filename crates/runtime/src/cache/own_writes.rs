//! OwnWrites: which news are an source's own doing.
//!
//! The answer to a write enters the cache, and the watch repeats it later, or brings it before the answer. None of these
//! is a reason for its source to look again. But the answer may also carry what somebody else wrote just before, and
//! that *is* a reason. The two are told apart by versions: the watch brings every version, so one that is older than
//! our write, is newer than what the cache showed before the answer, and is not ours, was foreign.
//!
//! Invariant: a foreign change that reached the cache inside one of our answers wakes the source of that write, at the
//! latest when the watch passes it.

use std::collections::BTreeMap;

use crate::queue::{Queue, RequestSource};
use crate::version::ResourceVersion;

use super::identity::{Identity, Key};

/// A write of ours that the watch has not repeated yet.
#[derive(Debug)]
struct Own {
    uid: String,
    version: ResourceVersion,
    /// What the cache showed before the answer: up to there the source was told by other ways.
    since: Option<ResourceVersion>,
    source: RequestSource,
}

/// A request of ours without an answer yet.
#[derive(Debug)]
struct Flight {
    id: u64,
    source: RequestSource,
    /// What the watch brought meanwhile and the source was not told.
    untold: Vec<ResourceVersion>,
}

/// Where the news come from that the cache is just telling.
#[derive(Debug, Default)]
enum Origin {
    /// Nobody's write in particular.
    #[default]
    Anyone,
    List,
    /// The answer to a write.
    Answer(RequestSource),
    /// The watch, which may repeat writes of these.
    Watch(Identity, Vec<RequestSource>),
}

/// The writes of one cache that the watch has still to repeat.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    own: BTreeMap<Key, Vec<Own>>,
    flights: BTreeMap<Key, Vec<Flight>>,
    flown: u64,
    origin: Origin,
}

impl OwnWrites {
    /// Whether the news being told are the doing of `key` of `queue`, or may turn out to be.
    pub(super) fn own_doing<Q: Ord + Clone + Send + Sync + 'static>(&mut self, queue: &Queue<Q>, key: &Q) -> bool {
        match &self.origin {
            Origin::Anyone | Origin::List => false,
            Origin::Answer(source) => source.is(queue, key),
            Origin::Watch(_, repeated) if repeated.iter().any(|source| source.is(queue, key)) => true,
            Origin::Watch(seen, _) => {
                let mut flights = self.flights.get_mut(&seen.key).into_iter().flatten();
                let own = flights.find(|flight| flight.source.is(queue, key));
                own.is_some_and(|flight| {
                    flight.untold.push(seen.version.clone());
                    true
                })
            }
        }
    }

    /// Whether the news being told come from a list.
    pub(super) const fn listing(&self) -> bool {
        matches!(self.origin, Origin::List)
    }

    /// The news that follow come from an answer to `source`.
    pub(super) fn answering(&mut self, source: &RequestSource) {
        self.origin = Origin::Answer(source.clone());
    }

    /// The news that follow come from a list as it was at `at`; all of them if the server was put back. A list tells no
    /// versions in between. Gives the sources that it may have robbed of news.
    pub(super) fn listed(&mut self, at: Option<&ResourceVersion>) -> Vec<RequestSource> {
        self.origin = Origin::List;
        let mut robbed = Vec::new();
        self.own.retain(|_, own| {
            robbed.extend(
                own.extract_if(.., |own| at.is_none_or(|at| own.version <= *at))
                    .map(|own| own.source),
            );
            !own.is_empty()
        });
        robbed
    }

    /// The news are told.
    pub(super) fn quiet(&mut self) {
        self.origin = Origin::Anyone;
    }

    /// The watch will repeat this write of `source`. Before its answer the cache showed the object as it was at `since`.
    pub(super) fn expect(&mut self, source: RequestSource, written: &Identity, since: Option<ResourceVersion>) {
        self.own.entry(written.key.clone()).or_default().push(Own {
            uid: written.uid.clone(),
            version: written.version.clone(),
            since,
            source,
        });
    }

    /// The watch has come to `version` and said nothing of what is older: that never was in its sight.
    pub(super) fn passed(&mut self, version: &ResourceVersion) {
        self.own.retain(|_, own| {
            own.retain(|own| own.version > *version);
            !own.is_empty()
        });
    }

    /// How many writes the watch has still to repeat.
    #[cfg(test)]
    pub(super) fn expected(&self) -> usize {
        self.own.values().map(Vec::len).sum()
    }

    /// The watch brings this version. Gives the sources whose answer carried it although somebody else wrote it.
    pub(super) fn watched(&mut self, seen: &Identity) -> Vec<RequestSource> {
        let mut repeated = Vec::new();
        let mut carried = Vec::new();
        if let Some(own) = self.own.get_mut(&seen.key) {
            // What is older has been passed without a word: the watch does not go back.
            own.retain(|own| own.version >= seen.version);
            let same = |own: &mut Own| own.version == seen.version && own.uid == seen.uid;
            repeated.extend(own.extract_if(.., same).map(|own| own.source));
            if repeated.is_empty() {
                let is_untold = |own: &&Own| own.since.as_ref().is_none_or(|since| *since < seen.version);
                let of_it = own.iter().filter(|own| own.uid == seen.uid).filter(is_untold);
                carried.extend(of_it.map(|own| own.source.clone()));
            }
            if own.is_empty() {
                self.own.remove(&seen.key);
            }
        }
        self.origin = Origin::Watch(seen.clone(), repeated);
        carried
    }

    /// The watch says that this object is gone: nothing more of it is to come.
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
        self.flown = self.flown.wrapping_add(1);
        let id = self.flown;
        let untold = Vec::new();
        self.flights.entry(key).or_default().push(Flight { id, source, untold });
        id
    }

    /// The request got its answer, or never will. Gives what its source was not told.
    pub(super) fn land(&mut self, key: &Key, id: u64) -> Vec<ResourceVersion> {
        let Some(flights) = self.flights.get_mut(key) else {
            return Vec::new();
        };
        let landed = flights.extract_if(.., |flight| flight.id == id);
        let untold = landed.flat_map(|flight| flight.untold).collect();
        if flights.is_empty() {
            self.flights.remove(key);
        }
        untold
    }
}
