//! A demo controller on trial, and what it costs over ten thousand objects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budget;
mod controller;
mod many;
mod plan;
mod sweep;
