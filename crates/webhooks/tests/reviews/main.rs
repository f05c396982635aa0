//! The routes, with requests like those of the API server.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod api_server;
mod conversion;
mod destinations;
mod examples;
mod guarded;
mod hostile;
mod manifests;
mod related_objects;
mod requests;
