//! An in-process Ironic: for tests that are fast, deterministic and full of faults, and for the sandbox.
//!
//! [`Ironic`] is the server. [`Ironic::client`] gives a client that talks to it without sockets, so that time may be
//! held still; [`Ironic::serve`] does the same over HTTPS with a login. Inside is a machine that is handed requests and
//! times and keeps an agenda; [`life`] is the table of transitions that it follows.
//!
//! Nodes of `fake-hardware` behave as Ironic's own fake hardware does: they pass no wait states. Nodes of the other
//! drivers have a [`Machine`] that boots ramdisks, loses power and breaks, made of the profiles that all simulators
//! share.
//!
//! It does **not** approximate: what it does not do it refuses with 501. Not here are rescue, holds, inspection by the
//! BMC, allocations, runbooks, volumes, consoles, tenants, dialects below the client's minimum, and the agent's side of
//! the API (a ramdisk is played inside). [`conformance`] states what is here as claims that hold on the real one too.
//!
//! Invariant: the same seed, requests and times give the same answers and identities.
#![warn(missing_docs)]

mod asked;
mod audit;
mod bmc;
pub mod conformance;
mod core;
mod http;
pub mod life;
mod machine;
mod node;
mod refusal;
mod simulator;
mod work;

pub use audit::{Audit, Count};
pub use http::{Login, Serving};
pub use machine::{Image, Machine, Pace, Tally};
pub use simulator::{Ironic, Options};
