//! What the program offers to Prometheus: the table of its metrics, from which `xtask codegen` writes a page. The crate is
//! pure and has no product: a test compares the table with the source.
#![warn(missing_docs)]

pub mod metrics;
mod page;

pub use page::page;
