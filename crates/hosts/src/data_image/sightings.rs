//! When this process first saw what a decision waits for: the clock of the API server may be ahead or behind.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use super::facts::{HostView, Start};
use crate::live::Reading;

struct Seen {
    /// Another object of the name is seen for the first time.
    uid: Option<String>,
    deleted: Monotonic,
    host_absent: Option<Monotonic>,
    host_starting: Option<Monotonic>,
}

/// The sightings, by object.
#[derive(Default)]
pub(super) struct Sightings(Mutex<BTreeMap<Key, Seen>>);

impl Sightings {
    /// Since when the object is seen deleted; zero for one that is not.
    pub(super) fn deleted_for(&self, key: &Key, object: &DataImage, now: Monotonic) -> Duration {
        let (meta, mut all) = (&object.metadata, self.0.lock());
        // A change of many is delivered as one: nothing need have shown that the former object was gone.
        if meta.deletion_timestamp.is_none() || all.get(key).is_some_and(|seen| seen.uid != meta.uid) {
            all.remove(key);
        }
        if meta.deletion_timestamp.is_none() {
            return Duration::ZERO;
        }
        let seen = all.entry(key.clone()).or_insert_with(|| Seen {
            uid: meta.uid.clone(),
            deleted: now,
            host_absent: None,
            host_starting: None,
        });
        now.since(seen.deleted)
    }

    /// Since when the host of a deleted object is found absent, and since when about to start.
    pub(super) fn of_host(&self, key: &Key, host: &Reading<HostView>, now: Monotonic) -> (Duration, Duration) {
        let mut all = self.0.lock();
        let (Some(seen), Reading::Known(host)) = (all.get_mut(key), host) else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let lasts = |since: &mut Option<Monotonic>, holds: bool| match holds {
            true => now.since(*since.get_or_insert(now)),
            false => {
                *since = None;
                Duration::ZERO
            }
        };
        let is_starting = matches!(host, HostView::Present { start: Start::Soon, .. });
        (
            lasts(&mut seen.host_absent, *host == HostView::Absent),
            lasts(&mut seen.host_starting, is_starting),
        )
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        }
    }

    fn object(uid: &str, deleted: Value) -> DataImage {
        let metadata = json!({ "name": "h", "uid": uid, "deletionTimestamp": deleted });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "url": "http://a/" } })).unwrap()
    }

    #[test]
    fn deletion_of_an_object_says_nothing_of_one_that_replaces_it() {
        let key = key();
        let deleted = || json!("2026-11-22T09:44:19Z");
        let at = |seconds| Monotonic::new(Duration::from_secs(seconds));
        for (next, expected) in [
            (object("1", deleted()), 100),
            (object("2", deleted()), 0),
            (object("1", Value::Null), 0),
        ] {
            let seen = Sightings::default();
            assert_eq!(seen.deleted_for(&key, &object("1", deleted()), at(0)), Duration::ZERO);
            let absent = Reading::Known(HostView::Absent);
            assert_eq!(seen.of_host(&key, &absent, at(0)).0, Duration::ZERO);
            let deleted_for = seen.deleted_for(&key, &next, at(100));
            assert_eq!(deleted_for, Duration::from_secs(expected), "{next:?}");
            let absent_for = seen.of_host(&key, &absent, at(100)).0;
            assert_eq!(absent_for, Duration::from_secs(expected), "{next:?}");
        }
    }

    #[test]
    fn host_is_seen_absent_or_starting_without_interruption() {
        let view = |start| {
            Reading::Known(HostView::Present {
                bar: None,
                is_owner: true,
                start,
            })
        };
        let seen = Sightings::default();
        let at = |seconds| Monotonic::new(Duration::from_secs(seconds));
        let deleted = object("1", json!("2026-11-22T09:44:19Z"));
        assert_eq!(seen.deleted_for(&key(), &deleted, at(0)), Duration::ZERO);
        for (seconds, host, expected) in [
            (10, view(Start::Soon), (0, 0)),
            (20, Reading::Failed("no".to_owned()), (0, 0)),
            (30, view(Start::Soon), (0, 20)),
            (40, view(Start::AfterRestart), (0, 0)),
            (50, view(Start::Soon), (0, 0)),
            (60, Reading::Known(HostView::Absent), (0, 0)),
            (70, Reading::Known(HostView::Absent), (10, 0)),
            (80, view(Start::Soon), (0, 0)),
        ] {
            let (absent_for, starting_for) = seen.of_host(&key(), &host, at(seconds));
            assert_eq!((absent_for.as_secs(), starting_for.as_secs()), expected, "{seconds}");
        }
    }
}
