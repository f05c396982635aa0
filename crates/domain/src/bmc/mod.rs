//! Addresses of baseboard management controllers, and the node settings that Ironic needs for them.
//!
//! [`BmcAddress::parse`] reads the text of a host's `spec.bmc.address`; the result has the scheme's [`Profile`]
//! (driver, hardware interfaces, features) and builds the `driver_info` of the node. The module does not resolve names
//! or contact the controller, and only copies credentials into [`DriverInfo`].
//!
//! Invariant: user info in an address is dropped while parsing. No type here prints a password, in `Debug` or in
//! `Display`, and no error contains one.

mod address;
mod driver_info;
mod profile;

pub use address::{BmcAddress, BmcAddressError, BmcErrorClass};
pub use driver_info::{CertificateVerification, Credentials, DriverInfo};
pub use profile::{Interfaces, Kind, Profile, Transport};

#[cfg(test)]
mod tests;
