//! A demo controller in the crash sweep, and its requests for ten thousand objects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budget;
mod controller;
mod many;
mod plan;
mod sweep;
