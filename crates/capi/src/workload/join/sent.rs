//! What is read of the objects that a machine needs to join. Of an object of a tenant's server its name is kept, and whether
//! some members exist: the server may send anything.

use std::fmt;

use kube_core::ObjectMeta;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The longest name of an object.
const LONGEST: usize = 253;

/// A ConfigMap, reduced to the keys that are looked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SentConfig {
    metadata: ObjectMeta,
    #[serde(skip)]
    keys: Keys,
}

/// The keys of a ConfigMap that are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Keys {
    /// Of `cluster-info`.
    pub(super) has_kubeconfig: bool,
    /// Of `kubeadm-config`.
    pub(super) has_cluster: bool,
    /// Of `kubelet-config`.
    pub(super) has_kubelet: bool,
}

impl SentConfig {
    pub(super) const fn keys(&self) -> Keys {
        self.keys
    }

    /// Whether it has a text of a kubeconfig, of the configuration of a cluster, and of kubelets.
    #[must_use]
    pub const fn has_keys(&self) -> (bool, bool, bool) {
        let keys = self.keys;
        (keys.has_kubeconfig, keys.has_cluster, keys.has_kubelet)
    }
}

/// An object whose existence is all that counts.
macro_rules! sent {
    ($($name:ident: $scope:ident, $group:literal, $kind:literal, $plural:literal;)*) => {$(
        #[doc = concat!("A ", $kind, " of which only the existence counts.")]
        #[derive(Debug, Clone, Default, PartialEq, Serialize)]
        pub struct $name {
            metadata: ObjectMeta,
        }

        metal3_runtime::resource!($name: $scope, $group, "v1", $kind, $plural);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let metadata = Sent::deserialize(deserializer)?.metadata()?;
                Ok(Self { metadata })
            }
        }
    )*};
}

sent! {
    SentNamespace: ClusterResourceScope, "", "Namespace", "namespaces";
    SentBinding: NamespaceResourceScope, "rbac.authorization.k8s.io", "RoleBinding", "rolebindings";
    SentClusterBinding: ClusterResourceScope, "rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings";
    SentLease: NamespaceResourceScope, "coordination.k8s.io", "Lease", "leases";
}
metal3_runtime::resource!(SentConfig: NamespaceResourceScope, "", "v1", "ConfigMap", "configmaps");

#[derive(Deserialize)]
struct Sent {
    metadata: SentMetadata,
    #[serde(default)]
    data: Keys,
}

#[derive(Deserialize)]
struct SentMetadata {
    name: String,
}

impl Sent {
    fn metadata<E: serde::de::Error>(self) -> Result<ObjectMeta, E> {
        let name = self.metadata.name;
        if name.len() > LONGEST {
            return Err(E::custom("the name is too long"));
        }
        Ok(ObjectMeta {
            name: Some(name),
            ..ObjectMeta::default()
        })
    }
}

impl<'de> Deserialize<'de> for SentConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = Sent::deserialize(deserializer)?;
        let keys = sent.data;
        Ok(Self {
            metadata: sent.metadata()?,
            keys,
        })
    }
}

/// Reads one entry after the other, and keeps none. The map may be null.
impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Wanted;

        impl<'de> Visitor<'de> for Wanted {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("texts by key")
            }

            fn visit_unit<E>(self) -> Result<Keys, E> {
                Ok(Keys::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Keys, A::Error> {
                let mut keys = Keys::default();
                while let Some(key) = entries.next_key::<String>()? {
                    let Text { is_empty } = entries.next_value()?;
                    match key.as_str() {
                        "kubeconfig" => keys.has_kubeconfig |= !is_empty,
                        "ClusterConfiguration" => keys.has_cluster |= !is_empty,
                        "kubelet" => keys.has_kubelet |= !is_empty,
                        _ => {}
                    }
                }
                Ok(keys)
            }
        }

        deserializer.deserialize_any(Wanted)
    }
}

/// A text of which only its emptiness is kept.
struct Text {
    is_empty: bool,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self {
            is_empty: text.trim().is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn keys(data: Value) -> Option<Keys> {
        let sent = json!({ "kind": "ConfigMap", "metadata": { "name": "n", "labels": { "a": "b" } }, "data": data });
        serde_json::from_value::<SentConfig>(sent).ok().map(|one| one.keys())
    }

    #[test]
    fn of_a_config_map_the_keys_with_a_text_count() {
        let all = json!({ "kubeconfig": "x", "ClusterConfiguration": "x", "kubelet": "x", "other": "x" });
        let every = Keys {
            has_kubeconfig: true,
            has_cluster: true,
            has_kubelet: true,
        };
        assert_eq!(keys(all), Some(every));
        for (data, expected) in [
            (json!(null), Some(Keys::default())),
            (json!({}), Some(Keys::default())),
            (json!({ "kubeconfig": " \n", "kubelet": "" }), Some(Keys::default())),
            (json!({ "kubeconfig": 7 }), None),
            (json!([]), None),
            (json!("kubeconfig"), None),
        ] {
            assert_eq!(keys(data.clone()), expected, "{data}");
        }
    }

    #[test]
    fn answer_without_a_name_or_with_one_that_is_too_long_is_no_object() {
        for (metadata, is_read) in [
            (json!({ "name": "n" }), true),
            (json!({ "name": "n".repeat(LONGEST) }), true),
            (json!({ "name": "n".repeat(LONGEST + 1) }), false),
            (json!({ "name": null }), false),
            (json!({}), false),
            (json!(null), false),
        ] {
            let sent = json!({ "metadata": metadata });
            assert_eq!(
                serde_json::from_value::<SentLease>(sent.clone()).is_ok(),
                is_read,
                "{metadata}"
            );
            assert_eq!(
                serde_json::from_value::<SentConfig>(sent).is_ok(),
                is_read,
                "{metadata}"
            );
        }
        assert!(serde_json::from_value::<SentLease>(json!({})).is_err());
    }
}
