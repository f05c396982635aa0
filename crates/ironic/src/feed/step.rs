//! The results of the tracker: a page to request, a wait, events.

use std::time::Duration;

use metal3_domain::ids::NodeUuid;

use super::listed_node::ListedNode;
use crate::calls::node::{Order, list_with};
use crate::model::page::{self, Marker, Page};
use crate::request::Call;

/// A page to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The order.
    pub order: Order,
    /// The number of nodes.
    pub limit: u16,
    /// The node before the page.
    pub behind: Option<Marker>,
}

impl PageRequest {
    /// The call for it.
    #[must_use]
    pub fn call(&self) -> Call<Page<ListedNode>> {
        list_with(self.order, self.limit, self.behind.as_ref(), |body| {
            page::decode_with("nodes", body, ListedNode::of)
        })
    }
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Request a page.
    Fetch(PageRequest),
    /// Wait for this long.
    Wait(Duration),
}

/// A change that controllers have to handle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeedEvent {
    /// The record of this node is new or changed.
    Changed(NodeUuid),
    /// A complete list did not contain this node any more.
    Deleted(NodeUuid),
    /// This node exists and its record cannot be decoded.
    Unreadable(NodeUuid),
    /// A poll failed: [`Feed::failing_since`](super::Feed::failing_since) is since when.
    Failed,
    /// Ironic is available after an outage: reconcile everything.
    Resync,
}
