//! Every request that the provider sends, as a value. [`crate::Client::send`] sends it.
//!
//! No other module of the project contains a path of the API.

pub mod hardware;
pub mod node;
pub mod patch;
pub mod port;
pub mod provision;
pub mod service;
pub mod state;

use metal3_domain::ids::NodeUuid;

/// Identifies a node in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRef {
    /// By UUID.
    Uuid(NodeUuid),
    /// By name.
    Name(String),
}

impl NodeRef {
    pub(crate) fn segment(&self) -> &str {
        match self {
            Self::Uuid(uuid) => uuid.as_str(),
            Self::Name(name) => name,
        }
    }
}

impl From<&NodeUuid> for NodeRef {
    fn from(uuid: &NodeUuid) -> Self {
        Self::Uuid(uuid.clone())
    }
}

#[cfg(test)]
mod tests;
