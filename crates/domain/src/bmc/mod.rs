//! Where a baseboard management controller is, and what Ironic must be told to speak to it.
//!
//! [`BmcAddress::parse`] reads the text of a host's `spec.bmc.address`; the answer knows the scheme's [`Profile`] (driver,
//! hardware interfaces, abilities) and writes the `driver_info` of the node. It does not resolve names, contact the
//! controller or look at credentials beyond copying them into [`DriverInfo`].
//!
//! Invariant: user info typed into an address is dropped while parsing. No type here prints a password, in `Debug` or
//! in `Display`, and no error repeats one.

mod address;
mod driver_info;
mod profile;

pub use address::{BmcAddress, BmcAddressError, BmcErrorClass};
pub use driver_info::{CertificateVerification, Credentials, DriverInfo};
pub use profile::{Interfaces, Kind, Profile, Transport};

pub use crate::uri::UriError;

#[cfg(test)]
mod tests;
