//! Drivers and conductors.

use serde::Deserialize;

use super::null_is_default;

/// A hardware type that a live conductor supports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Driver {
    /// `redfish`, `ipmi` and others.
    pub name: String,
    /// The conductors that support it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub hosts: Vec<String>,
}

/// A conductor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Conductor {
    /// Its name.
    pub hostname: String,
    /// Its conductor group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conductor_group: String,
    /// Whether it sent a heartbeat recently. False for a while after its start.
    #[serde(default, deserialize_with = "null_is_default")]
    pub alive: bool,
}
