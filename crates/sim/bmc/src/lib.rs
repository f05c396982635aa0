//! Simulated bare-metal machines for a real Ironic.
//!
//! Each machine is a Redfish BMC with an address of its own and, once Ironic has booted it, the deploy agent that would
//! run on it. What a BMC answers ([`redfish`]), what a machine does when its power changes ([`machine`]) and what an
//! agent sends next ([`agent`]) are pure functions of state and time; [`lab`] and [`server`] bring sockets and clock.
//!
//! Not here: IPMI, PXE, changes of BIOS settings, firmware, RAID or secure boot (they answer 501), and any code of the
//! product. The invariant: **a machine boots only what its BMC was told to boot**, and its disks hold only what an agent
//! wrote after checking it.

pub mod agent;
pub mod control;
pub mod disk;
pub mod endpoint;
pub mod fault;
pub mod identity;
pub mod image;
pub mod inventory;
pub mod iso;
pub mod lab;
pub mod machine;
pub mod profile;
pub mod redfish;
pub mod server;
pub mod store;
pub mod tls;
