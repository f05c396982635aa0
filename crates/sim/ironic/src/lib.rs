//! An in-process Ironic for the sandbox and for fast, deterministic tests with fault injection.
//!
//! [`Ironic`] is the server. [`Ironic::client`] returns a client without sockets, so that tests can pause time;
//! [`Ironic::serve`] serves HTTPS with a login. The core is a state machine of requests, times and timers; [`life`] has
//! its table of transitions.
//!
//! Nodes of `fake-hardware` behave as in Ironic: they skip wait states. Nodes of other drivers have a BMC, and each BMC
//! has a [`Machine`] that boots ramdisks, has power and disks, and can have faults. All simulators share the hardware
//! profiles. A machine is not part of the database and outlives its node.
//!
//! # How to use it in a test of a controller
//!
//! `tests/fleet.rs` is an example: a controller that deploys two machines at a time, with lost answers, a broken
//! machine and a lost database.
//!
//! | Need | API |
//! |---|---|
//! | simulated time | `#[tokio::test(start_paused = true)]`, and one clock that follows the runtime's timers for [`Options::new`], the feed and the controller |
//! | a client | [`Ironic::client`]; over HTTPS with a login [`Ironic::serve`] |
//! | a machine before its host | [`Ironic::machine_at`] with the host's BMC address: its profile, MAC addresses, power, faults |
//! | many nodes | [`Ironic::enrol`] |
//! | the change feed | `Feed::new` with that client; spawn `Feed::run` |
//! | a failing inspection, cleaning, deployment | [`Machine::faults`]: `InspectionError`, `NoBoot`, `CleanStepFails`, `ChecksumMismatch`, `DiskTooSmall`, `NoHeartbeat`; without the fault the next attempt succeeds |
//! | a machine that reports other BIOS settings than it was asked for | [`Machine::bios_reports`] |
//! | an update of the firmware that fails or never ends, and the updates that were made | [`Machine::firmware_updates`], [`Machine::flashed`] |
//! | a BMC that accepts one account only | [`Machine::account`] |
//! | a failing BMC | `DeadBmc`, `SlowBmc(30)`, `WrongPassword`, `BmcStatus(503)`, `PowerStuck`; `docs/ironic-faults.md` has the resulting states |
//! | a locked node, a lost answer, an error | [`Ironic::inject`] with a plan: `Conflict`, `ReplyLost`, `Refused`, by verb and resource |
//! | a restart, a lost database | [`Ironic::restart`], [`Ironic::lose_database`] |
//! | the state of a machine | [`Machine::power`], [`Machine::disk`] with image, checksum and config-drive, [`Machine::media`] for a live image, [`Machine::counts`] for operations that must not repeat |
//! | request counts | [`Ironic::audit`]: requests by method and resource; [`meter`]: also bytes and requests per second |
//! | a process of its own | the program `sim-ironic` |
//!
//! # Limits
//!
//! It does **not** approximate: an unsupported request gets 501. Not supported are rescue, holds, inspection by the
//! BMC, allocations, runbooks, volumes, consoles, tenants, microversions below the client's minimum,
//! and the agent's API (the ramdisk is simulated inside). Images are not downloaded: every URL is valid, and
//! [`Machine::faults`] determines whether a checksum matches. The claims of `metal3-conformance-ironic` hold on this
//! server and on a real one.
//!
//! Invariant: the same seed, requests and times produce the same answers and UUIDs.
#![warn(missing_docs)]

mod account;
mod audit;
mod bios;
mod bmc;
mod client;
mod core;
mod describe;
mod disks;
mod firmware;
mod http;
pub mod life;
mod machine;
pub mod meter;
mod node;
mod options;
mod refusal;
mod request;
mod simulator;
mod work;

pub use account::BmcAccount;
pub use audit::{Audit, Count};
pub use bios::BiosReports;
pub use bmc::bmc_address;
pub use describe::describe_request;
pub use firmware::FirmwareUpdates;
pub use http::{HttpsServer, Login};
pub use machine::{Image, LiveImage, Machine, MachineCounts, Pace, Subscription};
pub use options::Options;
pub use simulator::Ironic;
