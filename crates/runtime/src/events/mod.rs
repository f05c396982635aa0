//! Events: what happened to an object, for the people who look at it.
//!
//! [`EventRecorder::record`] never waits: it puts an event into a bounded channel, or counts it as lost. A background
//! [`Publisher`] writes them, folding what says the same of the same object into one series, so that a controller in
//! trouble costs a write a minute and series instead of one a pass.
//!
//! Events are news, not state: nothing reads them back, a failed write is counted and forgotten, and the last ones may
//! be lost at a crash. What must last is a condition.
//!
//! A test holds the [`EventQueue`] itself and looks at what was told.

mod publisher;
mod recorder;
mod series;

pub use publisher::Publisher;
pub use recorder::{Event, EventQueue, EventRecorder, EventStats, Importance};
pub use series::{NOTES, PERIOD, SERIES};

#[cfg(test)]
mod tests;
