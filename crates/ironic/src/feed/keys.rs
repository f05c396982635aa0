//! Nodes by other keys than their UUID, for those who look for a node in the lists of several Ironics.

use std::collections::{BTreeMap, BTreeSet};

use metal3_domain::ids::NodeUuid;

use crate::model::node::Node;

/// The keys of a node.
pub type KeysOf = fn(&Node) -> Vec<String>;

/// The nodes of a feed by key.
#[derive(Debug)]
pub(super) struct NodesByKey {
    keys_of: KeysOf,
    nodes: BTreeMap<String, BTreeSet<NodeUuid>>,
}

impl NodesByKey {
    pub(super) const fn new(keys_of: KeysOf) -> Self {
        Self {
            keys_of,
            nodes: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, node: &Node) {
        for key in (self.keys_of)(node) {
            self.nodes.entry(key).or_default().insert(node.uuid.clone());
        }
    }

    pub(super) fn remove(&mut self, node: &Node) {
        for key in (self.keys_of)(node) {
            if let Some(nodes) = self.nodes.get_mut(&key) {
                nodes.remove(&node.uuid);
                if nodes.is_empty() {
                    self.nodes.remove(&key);
                }
            }
        }
    }

    pub(super) fn find(&self, key: &str) -> impl Iterator<Item = &NodeUuid> {
        self.nodes.get(key).into_iter().flatten()
    }
}
