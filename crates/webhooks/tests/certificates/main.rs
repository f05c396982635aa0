//! Self-managed certificates: the next step, and the controller on the simulated API server.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod controller;
mod env;
mod inject;
mod model;
mod plan;
