//! The life of a process on the simulated API server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capm3;
mod environment;
mod hand_back;
mod hand_back_owners;
mod hosts;
mod ipam;
mod ironic_resource;
mod life;
mod older;
mod optional_kinds;
mod plugin;
mod preflight;
mod reasons;
mod select;
mod served;
mod why;
