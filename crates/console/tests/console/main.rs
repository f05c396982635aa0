//! A console on the simulated API server, asked as a browser asks it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod login;
mod requests;
mod rights;
mod watched;
mod world;
