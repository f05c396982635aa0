//! Readable scenarios of the lifecycle of clusters: apply, wait, assert, break, restart.
//!
//! A scenario is independent of the environment that runs it. This crate has its format ([`Scenario`]), the checks of
//! expectations ([`Expectation::check`], [`ExpectedNodes::check`], [`ExpectedCause::check`]), the objects of published manifests ([`published`]),
//! and summaries of the reported states of objects ([`ObservedStates`]) and of the requests of the products
//! ([`RequestCounts`]), by which the simulators and the real services are compared ([`Comparison`],
//! [`CountComparison`]). Each environment implements the steps: nothing here waits, requests or writes.
#![warn(missing_docs)]

mod cause;
mod count_comparison;
mod differences;
mod expectation;
mod observed;
mod quoted;
mod request_counts;
mod script;

pub use cause::ExpectedCause;
pub use count_comparison::{CountComparison, CountReason, Real};
pub use differences::{Comparison, Reason, Side};
pub use expectation::{Expectation, ExpectedNodes};
pub use observed::ObservedStates;
pub use quoted::blocks;
pub use request_counts::{CountDifference, RequestCounts};
pub use script::{Apply, Scenario, Span, Step, kind_and_name, published};
