//! Certificates of our own: what is due, and keeping them on the simulated API server.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod inject;
mod keeper;
mod model;
mod plan;
mod world;
