//! The routes, asked as the API server asks them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod api_server;
mod conversion;
mod examples;
mod hostile;
mod manifests;
mod neighbours;
mod requests;
