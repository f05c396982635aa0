//! The life of a process on the simulated API server.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod life;
mod served;
mod world;
