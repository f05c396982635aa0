//! A hub and its watch beside the simulated API server, under paused time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contents;
mod holds;
mod trouble;
mod world;
