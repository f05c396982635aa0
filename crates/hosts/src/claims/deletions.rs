//! Since when this process sees a claim deleted: the clock of the API server may be ahead or behind. Lost with the process, which then
//! waits once more.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::HostClaim;
use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

/// The deleted claims, with their UIDs.
#[derive(Default)]
pub(super) struct Deletions(Mutex<BTreeMap<Key, (Option<String>, Monotonic)>>);

impl Deletions {
    /// How long; zero for a claim that is not deleted.
    pub(super) fn passed(&self, key: &Key, claim: &HostClaim, now: Monotonic) -> Duration {
        let (meta, mut all) = (&claim.metadata, self.0.lock());
        // Changes of a claim are delivered as one: nothing need have shown that the former object was gone.
        let is_another = all.get(key).is_some_and(|(uid, _)| *uid != meta.uid);
        if meta.deletion_timestamp.is_none() || is_another {
            all.remove(key);
        }
        if meta.deletion_timestamp.is_none() {
            return Duration::ZERO;
        }
        let (_, since) = all.entry(key.clone()).or_insert_with(|| (meta.uid.clone(), now));
        now.since(*since)
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(uid: &str, deleted: Value) -> HostClaim {
        let meta = json!({ "namespace": "tenant", "name": "c", "uid": uid, "deletionTimestamp": deleted });
        serde_json::from_value(json!({ "metadata": meta, "spec": { "poweredOn": true } })).unwrap()
    }

    #[test]
    fn deletion_counts_from_its_first_sight_whatever_its_time_says() {
        let (all, key) = (Deletions::default(), super::super::tests::key("tenant", "c"));
        let at = |second| Monotonic::new(Duration::from_secs(second));
        let passed = |claim: HostClaim, second| all.passed(&key, &claim, at(second)).as_secs();
        for year in ["1999", "2099"] {
            let deleted = || json!(format!("{year}-01-01T00:00:00Z"));
            assert_eq!(passed(claim("1", Value::Null), 0), 0);
            assert_eq!(passed(claim("1", deleted()), 10), 0);
            assert_eq!(passed(claim("1", deleted()), 70), 60);
            assert_eq!(passed(claim("2", deleted()), 80), 0, "another object");
            all.remove(&key);
            assert_eq!(passed(claim("2", deleted()), 90), 0, "it was gone");
        }
    }
}
