//! The network data of agents, as far as this process has read them.
//!
//! The values of a Secret are not kept: a digest of each shows whether the node still has them. Digests are keyed per
//! process and never leave it.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::HostReconciler;
use super::observations::Observations;
use crate::facts::{FoundNode, Read, Secret};
use crate::node::AgentNetwork;

/// The last version that was read of the Secret that a host names.
struct Version {
    secret: Option<String>,
    version: String,
    digest: u64,
}

#[derive(Default)]
pub(super) struct AgentNetworks {
    hasher: RandomState,
    read: Mutex<BTreeMap<Key, Version>>,
}

impl AgentNetworks {
    /// Whether the node shows the network data of the Secret. Stores the digest when its values are read; a version
    /// that was not read is not known to be on the node.
    pub(super) fn is_on_node(&self, host: &Key, secret: Secret<'_>, node: &Node) -> bool {
        let mut read = self.read.lock();
        let wanted = secret.values.and_then(|values| AgentNetwork::of(values).ok()?.wanted());
        if let Some(wanted) = wanted {
            let version = Version {
                secret: secret.metadata.name.clone(),
                version: secret.version().to_owned(),
                digest: self.digest(&wanted),
            };
            read.insert(host.clone(), version);
        }
        read.get(host).is_some_and(|known| {
            known.secret == secret.metadata.name
                && known.version == secret.version()
                && known.digest == self.digest(&node.network_data.0)
        })
    }

    pub(super) fn remove(&self, host: &Key) {
        self.read.lock().remove(host);
    }

    fn digest(&self, network: &Map<String, Value>) -> u64 {
        self.hasher.hash_one(network)
    }
}

impl HostReconciler {
    pub(super) fn is_agent_network_on_node(&self, key: &Key, observed: &Observations) -> bool {
        match (observed.secret(Read::AgentNetwork), &observed.node) {
            (Observed::Present(secret), Observed::Present(FoundNode::Own(node, _))) => {
                self.agent_networks.is_on_node(key, secret, node)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;

    #[test]
    fn network_data_is_on_the_node_once_this_version_was_read_and_is_shown() {
        let networks = AgentNetworks::default();
        let host = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
        let is_on_node = |name: &str, version: &str, text: Option<&str>, shown: Value| {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            };
            let values = text.map(|text| BTreeMap::from([("networkData".to_owned(), ByteString(text.into()))]));
            let secret = Secret {
                metadata: &metadata,
                values: values.as_ref(),
            };
            let node = json!({ "uuid": "11111111-2222-4333-8444-555555555555", "provision_state": "available", "network_data": shown });
            networks.is_on_node(&host, secret, &serde_json::from_value(node).unwrap())
        };
        let (old, new) = (json!({ "links": [] }), json!({ "links": [], "services": [] }));
        assert!(!is_on_node("net", "1", None, old.clone()), "not read yet");
        assert!(is_on_node("net", "1", Some(r#"{"links":[]}"#), old.clone()));
        assert!(is_on_node("net", "1", None, old.clone()), "read before");
        assert!(!is_on_node("net", "1", None, new.clone()), "changed in Ironic");
        assert!(!is_on_node("net", "2", None, old.clone()), "another version");
        assert!(!is_on_node("other", "1", None, old.clone()), "another Secret");
        assert!(!is_on_node("net", "2", Some(r#"{"links":[],"services":[]}"#), old));
        assert!(is_on_node("net", "2", None, new));
    }
}
