//! Every request that the provider makes, as a value. [`crate::Client::send`] carries them out.
//!
//! Reading this folder tells what is asked of Ironic and with which words; nothing else in the project spells a path.

pub mod hardware;
pub mod node;
pub mod patch;
pub mod port;
pub mod provision;
pub mod service;
pub mod state;

use metal3_domain::ids::NodeUuid;

/// Names a node in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRef {
    /// By identity.
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
