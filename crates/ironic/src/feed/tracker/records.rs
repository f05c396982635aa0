//! The records of nodes: from pages of lists, from other responses, and of nodes that were deleted.

use std::sync::Arc;

use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;

use super::super::keys::{KeysOf, NodesByKey};
use super::super::listed_node::ListedNode;
use super::super::step::FeedEvent;
use super::super::timing::QUICK_AFTER_REQUEST;
use super::ChangeTracker;
use crate::model::node::Node;
use crate::model::page::Page;

#[derive(Debug)]
pub(super) struct CachedNode {
    pub(super) node: Arc<Node>,
    /// `None` when the record does not come from a list.
    pub(super) fingerprint: Option<u64>,
    /// The complete list during or after which it was seen.
    pub(super) listing: u64,
    /// When it was requested: it is at least as new as that.
    pub(super) as_of: Monotonic,
}

impl ChangeTracker {
    /// The same, which finds nodes by these keys, too.
    #[must_use]
    pub fn with_keys(self, keys_of: KeysOf) -> Self {
        Self {
            by_key: Some(NodesByKey::new(keys_of)),
            ..self
        }
    }

    /// The cached nodes with this key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Vec<NodeUuid> {
        let nodes = self.by_key.as_ref().map(|nodes| nodes.find(key).cloned());
        nodes.into_iter().flatten().collect()
    }

    pub(super) fn remove(&mut self, uuid: &NodeUuid) {
        if let (Some(removed), Some(by_key)) = (self.known.remove(uuid), &mut self.by_key) {
            by_key.remove(&removed.node);
        }
    }

    /// The node was deleted at this time. It is not known any more, and pages that were requested before do not bring it
    /// back.
    pub fn forget(&mut self, uuid: &NodeUuid, now: Monotonic) {
        self.managed.remove(uuid);
        self.remove(uuid);
        self.in_transition.remove(uuid);
        self.unreadable.remove(uuid);
        self.gone.insert(uuid.clone(), now);
    }

    /// Records a node from another response, which was requested at `asked`.
    pub fn observed(&mut self, node: Node, asked: Monotonic) {
        if !self.is_gone(&node.uuid, asked) {
            self.store(Arc::new(node), None, asked);
        }
    }

    /// Whether the node was deleted after a request that has it in its response.
    fn is_gone(&self, uuid: &NodeUuid, asked: Monotonic) -> bool {
        self.gone.get(uuid).is_some_and(|at| *at >= asked)
    }

    pub(super) fn process_page(&mut self, page: Page<ListedNode>) {
        for ListedNode { node, fingerprint } in page.items {
            let uuid = node.uuid.clone();
            if self.is_gone(&uuid, self.asked) {
                continue;
            }
            let before = self.known.get(&uuid).and_then(|known| known.fingerprint);
            if before != Some(fingerprint) {
                self.events.push(FeedEvent::Changed(uuid));
            }
            self.store(node, Some(fingerprint), self.asked);
        }
        for uuid in page.unreadable.iter().filter_map(|unreadable| unreadable.node_uuid()) {
            if let Some(known) = self.known.get_mut(&uuid) {
                known.listing = self.listing;
                // The next readable record is then reported as a change.
                known.fingerprint = None;
            }
            if self.unreadable.insert(uuid.clone()) {
                self.events.push(FeedEvent::Unreadable(uuid));
            }
        }
    }

    fn store(&mut self, node: Arc<Node>, fingerprint: Option<u64>, as_of: Monotonic) {
        let uuid = node.uuid.clone();
        if let Some(known) = self.known.get_mut(&uuid).filter(|known| known.as_of > as_of) {
            // Ironic may have read it later all the same: only the next list shows which of two records is newer.
            let is_same = known.node == node;
            known.fingerprint = fingerprint.filter(|_| is_same);
            if !is_same {
                self.quick_until = self.quick_until.max(as_of.after(QUICK_AFTER_REQUEST));
            }
            known.listing = self.listing;
            return;
        }
        if node.is_in_transition() {
            self.in_transition.insert(uuid.clone());
        } else {
            self.in_transition.remove(&uuid);
        }
        self.unreadable.remove(&uuid);
        let known = CachedNode {
            node,
            fingerprint,
            listing: self.listing,
            as_of,
        };
        let node = Arc::clone(&known.node);
        let before = self.known.insert(uuid, known);
        if let Some(by_key) = &mut self.by_key {
            if let Some(before) = before {
                by_key.remove(&before.node);
            }
            by_key.add(&node);
        }
    }
}
