//! An outage of Ironic.

use metal3_api::meta::Time;

use crate::ironics::Name;

/// Ironic serves no request of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The name of the Ironic, if it is one of several.
    pub ironic: Option<Name>,
    /// Why.
    pub kind: OutageKind,
    /// The start.
    pub since: Time,
    /// The reason, without secrets.
    pub reason: String,
}

/// Who has to end an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// Ironic does not respond, or not as expected.
    Unreachable,
    /// The `Ironic` resource is not ready. The reason says why, and changes with it.
    NotReady,
    /// Ironic refuses the login.
    Login,
    /// One of the two sides does not trust the certificate of the other.
    Certificate,
}
