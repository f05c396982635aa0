//! What the tracker says: a page to ask for, a rest, someone to wake.

use std::time::Duration;

use metal3_domain::ids::NodeUuid;

use super::sighting::Sighting;
use crate::calls::node::{Order, list};
use crate::model::page::{Marker, Page};
use crate::request::Call;

/// A page to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// In which order.
    pub order: Order,
    /// How many nodes.
    pub limit: u16,
    /// Behind which node.
    pub behind: Option<Marker>,
}

impl Ask {
    /// The call that asks for it.
    #[must_use]
    pub fn call(&self) -> Call<Page<Sighting>> {
        list(self.order, self.limit, self.behind.as_ref())
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask for a page.
    Ask(Ask),
    /// Nothing for so long.
    Rest(Duration),
}

/// Someone has something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// The record of this node is not what it was, or is new.
    Changed(NodeUuid),
    /// A full listing did not have this node any more.
    Gone(NodeUuid),
    /// This node exists and its record cannot be read.
    Unreadable(NodeUuid),
    /// Ironic is back after an outage: look at everything.
    Everything,
}
