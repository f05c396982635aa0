//! What the program offers to Prometheus and Grafana: the table of its metrics, the alerts and the dashboards.
//!
//! Each is a table here, from which `xtask codegen` and `make release` write files. The crate is pure and has no product:
//! tests compare the table of metrics with the registry of the running products, and every query with the table.
#![warn(missing_docs)]

pub mod alerts;
pub mod dashboards;
pub mod metrics;
mod page;
pub mod query;

pub use page::page;
