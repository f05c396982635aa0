//! An in-process Ironic: for tests that are fast, deterministic and full of faults, and for the sandbox.
//!
//! [`Ironic`] is the server. [`Ironic::client`] gives a client that talks to it without sockets, so that time may be
//! held still; [`Ironic::serve`] does the same over HTTPS with a login. Inside is a machine that is handed requests and
//! times and keeps an agenda; [`life`] is the table of transitions that it follows.
//!
//! Nodes of `fake-hardware` behave as Ironic's own fake hardware does: they pass no wait states. Nodes of the other
//! drivers name a BMC, and behind each BMC is a [`Machine`] that boots ramdisks, is written to, loses power and breaks,
//! made of the profiles that all simulators share. A machine is no part of the database: it outlives its node.
//!
//! # How a controller's test uses this world
//!
//! `tests/world.rs` is an example that runs: a controller that takes machines into use two at a time, with lost answers,
//! a broken machine and a lost database. The pieces:
//!
//! | To have | Do |
//! |---|---|
//! | time that costs nothing | `#[tokio::test(start_paused = true)]`, and one clock that follows the runtime's timers for [`Options::new`], the feed and the controller |
//! | a way in | [`Ironic::client`]; over HTTPS with a login [`Ironic::serve`] |
//! | a machine before its host | [`Ironic::machine_at`] with the host's BMC address: its profile, MAC addresses, power, faults |
//! | many nodes at once | [`Ironic::enrol`] |
//! | the change feed | `Feed::new` with that client; spawn `Feed::run`, and be woken |
//! | a failing inspection, cleaning, deployment | [`Machine::faults`]: `InspectionError`, `NoBoot`, `CleanStepFails`, `ChecksumMismatch`, `DiskTooSmall`, `NoHeartbeat`; take it away again and the next try succeeds |
//! | a BMC that is dead, hangs 30 s, refuses | `DeadBmc`, `SlowBmc(30)`, `WrongPassword`, `BmcStatus(503)`, `PowerStuck`; what a fault ends in is in `docs/ironic-faults.md` |
//! | a locked node, a lost answer, a refusal | [`Ironic::inject`] with a plan: `Conflict`, `ReplyLost`, `Refused`, by verb and resource |
//! | an Ironic that is away, or forgets | [`Ironic::restart`], [`Ironic::lose_database`] |
//! | what came of it | [`Machine::power`], [`Machine::disk`] with image, checksum and config-drive, [`Machine::media`] for a live image, [`Machine::counts`] for what must not happen twice |
//! | what it cost | [`Ironic::audit`]: requests by method and resource |
//!
//! # What is not here
//!
//! It does **not** approximate: what it does not do it refuses with 501. Not here are rescue, holds, inspection by the
//! BMC, firmware updates, allocations, runbooks, volumes, consoles, tenants, dialects below the client's minimum, and
//! the agent's side of the API (a ramdisk is played inside). Images are not fetched: every address has one, and what
//! hashes are worth is decided by [`Machine::faults`]. `metal3-conformance-ironic` states what is here as claims that hold on the
//! real one too.
//!
//! Invariant: the same seed, requests and times give the same answers and identities.
#![warn(missing_docs)]

mod asked;
mod audit;
mod bmc;
mod core;
mod http;
pub mod life;
mod machine;
mod node;
mod options;
mod refusal;
mod simulator;
mod describe;
mod work;

pub use audit::{Audit, Count};
pub use http::{Login, HttpsServer};
pub use machine::{Image, Machine, Pace, MachineCounts};
pub use options::Options;
pub use simulator::Ironic;
pub use describe::describe_request;
