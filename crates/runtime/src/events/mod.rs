//! Kubernetes Events about objects.
//!
//! [`EventRecorder::record`] never waits: it puts an event into a bounded queue, or counts it as dropped. A background
//! [`Publisher`] writes them and aggregates equal events of one object into a series, so that a failing controller
//! costs one write a minute and series instead of one for each reconcile.
//!
//! Events are not state: no code reads them back, a failed write is only counted, and the last ones may be lost in a
//! crash. State that must last is a condition.
//!
//! Tests read the [`EventQueue`] directly.

mod publisher;
mod recorder;
mod series;

pub use publisher::Publisher;
pub use recorder::{Event, EventQueue, EventRecorder, EventStats, Importance};
pub use series::{NOTES, PERIOD, SERIES};

#[cfg(test)]
mod tests;
