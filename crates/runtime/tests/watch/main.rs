//! A cache and its watch beside an API server: the simulated one, under paused time. What is in `anywhere` also runs beside
//! a real one, whose kubeconfig METAL3_API_SERVER names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anywhere;
mod counted;
mod demand;
mod holds;
mod quiet;
#[path = "../server/mod.rs"]
mod server;
mod trouble;
mod world;
