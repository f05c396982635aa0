//! A cache and its watch with the simulated API server, under paused time. The tests in `anywhere` also run with a real
//! one, whose kubeconfig METAL3_API_SERVER names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anywhere;
mod counters;
mod faults;
mod idle;
mod on_demand;
mod optional;
#[path = "../server/mod.rs"]
mod server;
mod setup;
mod uncertain_writes;
