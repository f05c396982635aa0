//! Which versions of a BMC's Secret hold the same login, as far as this process has read them.
//!
//! Labels and owners of a Secret change its version, and Ironic never shows the password that it has. A digest of each
//! version that was read tells a new login from an old one under a new label. Digests are keyed, made anew by each
//! process, and never leave it; a process that has not read both versions sends the login again.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;

use crate::facts::Secret;

/// Digests by version, of the Secret that a host names, and when each was read first.
type Versions = BTreeMap<String, (u64, Monotonic)>;

/// What was read of the hosts' logins.
#[derive(Default)]
pub(super) struct Logins {
    hasher: RandomState,
    read: Mutex<BTreeMap<Key, Versions>>,
}

impl Logins {
    /// For how long the Secret is known to hold what it held at the recorded version; nothing where that is not known. What
    /// is seen of it now is remembered.
    pub(super) fn unchanged_for(
        &self,
        host: &Key,
        recorded: &str,
        secret: Secret<'_>,
        now: Monotonic,
    ) -> Option<Duration> {
        let mut read = self.lock();
        let versions = read.entry(host.clone()).or_default();
        if let Some(values) = secret.values {
            let mut hasher = self.hasher.build_hasher();
            for (name, value) in values {
                (name, &value.0).hash(&mut hasher);
            }
            let known = versions.entry(secret.version().to_owned()).or_insert((0, now));
            known.0 = hasher.finish();
        }
        versions.retain(|version, _| version == recorded || version == secret.version());
        let (digest, since) = versions.get(secret.version()).copied()?;
        if versions.get(recorded).is_some_and(|(recorded, _)| *recorded == digest) {
            return Some(now.since(since));
        }
        // It is about to be sent, or was and the answer is lost: what Ironic has is not known until that is recorded.
        versions.remove(recorded);
        None
    }

    /// The host is gone.
    pub(super) fn forget(&self, host: &Key) {
        self.lock().remove(host);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Versions>> {
        // A digest that is missing costs a request.
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn key() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        }
    }

    /// A version of the Secret, with this password if it was read.
    fn is_unchanged(logins: &Logins, recorded: &str, version: &str, password: Option<&str>) -> bool {
        let metadata = ObjectMeta {
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let values = password.map(|text| BTreeMap::from([("password".to_owned(), ByteString(text.into()))]));
        let secret = Secret {
            metadata: &metadata,
            values: values.as_ref(),
        };
        let now = Monotonic::default();
        logins.unchanged_for(&key(), recorded, secret, now).is_some()
    }

    #[test]
    fn another_version_with_the_login_that_was_read_is_no_change() {
        let logins = Logins::default();
        assert!(is_unchanged(&logins, "1", "1", Some("p")));
        assert!(!is_unchanged(&logins, "1", "2", None), "not read yet");
        assert!(is_unchanged(&logins, "1", "2", Some("p")));
        assert!(is_unchanged(&logins, "1", "2", None), "read before");
        assert!(!is_unchanged(&logins, "1", "3", Some("q")));
        assert!(
            !is_unchanged(&logins, "1", "4", Some("p")),
            "put back after another may have been sent"
        );
    }

    #[test]
    fn version_that_this_process_never_read_may_hold_anything() {
        let logins = Logins::default();
        assert!(!is_unchanged(&logins, "1", "2", Some("p")));
        assert!(!is_unchanged(&logins, "", "2", Some("p")), "nothing recorded");
        is_unchanged(&logins, "2", "2", Some("p"));
        logins.forget(&key());
        assert!(!is_unchanged(&logins, "2", "3", Some("p")));
    }
}
