//! When this process first saw what a decision waits for: the clock of the API server may be ahead or behind.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use super::facts::HostView;
use crate::live::Reading;

struct Seen {
    /// Another object of the name is seen for the first time.
    uid: Option<String>,
    deleted: Monotonic,
    host_absent: Option<Monotonic>,
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
        });
        now.since(seen.deleted)
    }

    /// Since when the host of a deleted object is found absent.
    pub(super) fn host_absent_for(&self, key: &Key, host: &Reading<HostView>, now: Monotonic) -> Duration {
        let mut all = self.0.lock();
        let Some(seen) = all.get_mut(key) else {
            return Duration::ZERO;
        };
        match host {
            Reading::Known(HostView::Absent) => now.since(*seen.host_absent.get_or_insert(now)),
            Reading::Known(HostView::Present { .. }) => {
                seen.host_absent = None;
                Duration::ZERO
            }
            Reading::NotRead | Reading::Failed(_) => Duration::ZERO,
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(uid: &str, deleted: Value) -> DataImage {
        let metadata = json!({ "name": "h", "uid": uid, "deletionTimestamp": deleted });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "url": "http://a/" } })).unwrap()
    }

    #[test]
    fn deletion_of_an_object_says_nothing_of_one_that_replaces_it() {
        let key = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
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
            assert_eq!(seen.host_absent_for(&key, &absent, at(0)), Duration::ZERO);
            let deleted_for = seen.deleted_for(&key, &next, at(100));
            assert_eq!(deleted_for, Duration::from_secs(expected), "{next:?}");
            let absent_for = seen.host_absent_for(&key, &absent, at(100));
            assert_eq!(absent_for, Duration::from_secs(expected), "{next:?}");
        }
    }
}
