//! The versions of credentials Secrets that hold the same credentials, as far as this process has read them.
//!
//! Labels and owner references change the version of a Secret, and Ironic never shows its password. A digest of each
//! version that was read distinguishes new credentials from a mere metadata change. Digests are keyed per process and
//! never leave it. A process that has not read both versions sends the credentials again.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use crate::facts::Secret;

/// Digest and time of the first read, by version, of the Secret that a host names.
type Versions = BTreeMap<String, (u64, Monotonic)>;

#[derive(Default)]
pub(super) struct CredentialVersions {
    hasher: RandomState,
    read: Mutex<BTreeMap<Key, Versions>>,
}

impl CredentialVersions {
    /// How long the Secret is known to hold the same values as the recorded version; `None`: not known. Stores the
    /// digest of the present version.
    pub(super) fn unchanged_for(
        &self,
        host: &Key,
        recorded: &str,
        secret: Secret<'_>,
        now: Monotonic,
    ) -> Option<Duration> {
        let mut read = self.read.lock();
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
        // The new credentials are about to be sent, or were sent and the response is lost: what Ironic has is unknown
        // until the version is recorded.
        versions.remove(recorded);
        None
    }

    pub(super) fn remove(&self, host: &Key) {
        self.read.lock().remove(host);
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

    /// Whether this version of the Secret has the recorded credentials. `password` is `None` when the values are not
    /// read.
    fn is_unchanged(
        credential_versions: &CredentialVersions,
        recorded: &str,
        version: &str,
        password: Option<&str>,
    ) -> bool {
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
        credential_versions
            .unchanged_for(&key(), recorded, secret, now)
            .is_some()
    }

    #[test]
    fn another_version_with_the_same_credentials_is_no_change() {
        let credential_versions = CredentialVersions::default();
        assert!(is_unchanged(&credential_versions, "1", "1", Some("p")));
        assert!(!is_unchanged(&credential_versions, "1", "2", None), "not read yet");
        assert!(is_unchanged(&credential_versions, "1", "2", Some("p")));
        assert!(is_unchanged(&credential_versions, "1", "2", None), "read before");
        assert!(!is_unchanged(&credential_versions, "1", "3", Some("q")));
        assert!(
            !is_unchanged(&credential_versions, "1", "4", Some("p")),
            "put back after another may have been sent"
        );
    }

    #[test]
    fn unread_version_is_treated_as_changed() {
        let credential_versions = CredentialVersions::default();
        assert!(!is_unchanged(&credential_versions, "1", "2", Some("p")));
        assert!(
            !is_unchanged(&credential_versions, "", "2", Some("p")),
            "nothing recorded"
        );
        is_unchanged(&credential_versions, "2", "2", Some("p"));
        credential_versions.remove(&key());
        assert!(!is_unchanged(&credential_versions, "2", "3", Some("p")));
    }
}
