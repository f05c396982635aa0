//! Simulated bare-metal machines for a real Ironic.
//!
//! Each machine is a Redfish BMC with its own address and, after Ironic boots it, the deploy agent. The responses of a
//! BMC ([`redfish`]), the power changes of a machine ([`machine`]) and the requests of an agent ([`agent`]) are pure
//! functions of state and time; [`lab`] and [`server`] have sockets and clock.
//!
//! Not implemented: IPMI, PXE, changes of firmware, RAID or secure boot (the response is 501). It uses
//! no code of the product. Invariant: **a machine boots only the configured target of its BMC**, and its disks hold
//! only images that an agent wrote after checking them.

#[cfg(feature = "lab")]
pub mod agent;
#[cfg(feature = "lab")]
pub mod bios;
#[cfg(feature = "lab")]
pub mod boot;
#[cfg(feature = "lab")]
pub mod control;
#[cfg(feature = "lab")]
pub mod disk;
#[cfg(feature = "lab")]
pub mod endpoint;
pub mod fault;
#[cfg(feature = "lab")]
pub mod firmware;
pub mod hints;
pub mod identity;
#[cfg(feature = "lab")]
pub mod image;
pub mod inventory;
#[cfg(feature = "lab")]
pub mod iso;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "lab")]
pub mod machine;
pub mod profile;
#[cfg(feature = "lab")]
pub mod redfish;
#[cfg(feature = "lab")]
pub mod server;
#[cfg(feature = "lab")]
pub mod store;
pub mod tls;
