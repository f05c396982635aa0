//! What Ironic says of itself.

use serde::Deserialize;

use super::null_is_default;

/// A hardware type that a living conductor supports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Driver {
    /// `redfish`, `ipmi` and others.
    pub name: String,
    /// The conductors that have it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub hosts: Vec<String>,
}

/// A worker of Ironic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Conductor {
    /// Its name.
    pub hostname: String,
    /// The group of nodes it looks after.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conductor_group: String,
    /// Whether it was heard of lately. False for a while after its start.
    #[serde(default, deserialize_with = "null_is_default")]
    pub alive: bool,
}
