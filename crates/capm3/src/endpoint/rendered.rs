//! Secrets with a rendered endpoint, as digests: their contents are read, compared and not kept.
//!
//! Digests are keyed per process and never leave it. A version is read once, so reconciles of an unchanged object send no
//! request for it.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

/// A digest of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

/// Computes digests; clones compute the same.
#[derive(Clone, Debug, Default)]
pub struct Digester(Arc<RandomState>);

impl Digester {
    /// The digest of a content.
    #[must_use]
    pub fn of(&self, content: &[u8]) -> Digest {
        Digest(self.0.hash_one(content))
    }
}

/// An existing Secret.
#[derive(Clone, Debug)]
pub struct RenderedSecret {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The digest of its content; `None` when the key is missing, or when the content belongs to another owner.
    pub content: Option<Digest>,
}

impl RenderedSecret {
    /// A Secret that was read.
    #[must_use]
    pub fn of(secret: &Secret, key: &str, digester: &Digester) -> Self {
        let content = secret.data.as_ref().and_then(|data| data.get(key));
        Self {
            metadata: secret.metadata.clone(),
            content: content.map(|content| digester.of(&content.0)),
        }
    }
}

/// The last Secret of each Metal3Cluster that was read.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) digester: Digester,
    /// With the key of its content.
    read: Mutex<BTreeMap<Key, (String, RenderedSecret)>>,
}

impl Rendered {
    /// The Secret, if this version and key of it were read.
    pub(crate) fn known(&self, cluster: &Key, metadata: &ObjectMeta, key: &str) -> Option<RenderedSecret> {
        let identity = |metadata: &ObjectMeta| (metadata.uid.clone(), metadata.resource_version.clone());
        let read = self.read.lock();
        let (of, known) = read.get(cluster)?;
        (of == key && identity(&known.metadata) == identity(metadata)).then(|| known.clone())
    }

    /// Stores the digest of a Secret that was read.
    pub(crate) fn store(&self, cluster: &Key, secret: &Secret, key: &str) -> RenderedSecret {
        let known = RenderedSecret::of(secret, key, &self.digester);
        self.read
            .lock()
            .insert(cluster.clone(), (key.to_owned(), known.clone()));
        known
    }

    /// Removes what is stored for a deleted Metal3Cluster.
    pub(crate) fn remove(&self, cluster: &Key) {
        self.read.lock().remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(uid: &str, version: &str) -> Secret {
        let content = k8s_openapi::ByteString(b"hush".to_vec());
        serde_json::from_value(json!({
            "metadata": { "uid": uid, "resourceVersion": version }, "data": { "vip.yaml": content },
        }))
        .unwrap()
    }

    #[test]
    fn a_version_is_known_by_its_digest_until_another_is_in_the_cache() {
        let (rendered, stored) = (Rendered::default(), secret("u", "3"));
        let key = |name: &str| Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        };
        assert!(rendered.known(&key("edge"), &stored.metadata, "vip.yaml").is_none());
        rendered.store(&key("edge"), &stored, "vip.yaml");
        let known = |cluster: &str, secret: &Secret, member: &str| {
            let known = rendered.known(&key(cluster), &secret.metadata, member);
            known.map(|known| known.content == Some(rendered.digester.of(b"hush")))
        };
        assert_eq!(known("edge", &stored, "vip.yaml"), Some(true));
        assert_eq!(known("edge", &stored, "other"), None);
        assert_eq!(known("other", &stored, "vip.yaml"), None);
        assert_eq!(known("edge", &secret("u", "4"), "vip.yaml"), None);
        assert_eq!(known("edge", &secret("v", "3"), "vip.yaml"), None);
        assert!(!format!("{rendered:?}").contains("hush"));
        rendered.remove(&key("edge"));
        assert_eq!(known("edge", &stored, "vip.yaml"), None);
    }
}
