//! What the tracker says: a page to ask for, a rest, someone to wake.

use std::time::Duration;

use metal3_domain::ids::NodeUuid;

use super::listed_node::ListedNode;
use crate::calls::node::{Order, list};
use crate::model::page::{Marker, Page};
use crate::request::Call;

/// A page to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// In which order.
    pub order: Order,
    /// How many nodes.
    pub limit: u16,
    /// Behind which node.
    pub behind: Option<Marker>,
}

impl PageRequest {
    /// The call that asks for it.
    #[must_use]
    pub fn call(&self) -> Call<Page<ListedNode>> {
        list(self.order, self.limit, self.behind.as_ref())
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// PageRequest for a page.
    Fetch(PageRequest),
    /// Nothing for so long.
    Wait(Duration),
}

/// Someone has something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeedEvent {
    /// The record of this node is not what it was, or is new.
    Changed(NodeUuid),
    /// A full listing did not have this node any more.
    Deleted(NodeUuid),
    /// This node exists and its record cannot be read.
    Unreadable(NodeUuid),
    /// Ironic is back after an outage: look at everything.
    Resync,
}
