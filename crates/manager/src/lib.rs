//! The manager: flags and wiring. What it runs is decided elsewhere; here it is put together.
#![warn(missing_docs)]

pub mod flags;
