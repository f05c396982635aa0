//! What a switch from the Go managers to this program, or back, would meet.
//!
//! [`report`] is a pure function from [`Facts`], which its caller has read, to a [`Report`]: the managers that were found,
//! a decision, and the findings that led to it, each with its object, what happens and what to do.
//!
//! It predicts from objects only. What a reconciler would write for a healthy object is not computed here: start the
//! program with `--observe-only` next to the running managers for that.
#![warn(missing_docs)]

mod admission;
mod back;
mod definitions;
mod facts;
mod finding;
mod hosts;
mod machines;
mod managers;
mod objects;
mod report;
mod text;
mod unserved;

#[cfg(test)]
mod tests;

pub use facts::{Crd, Direction, Facts, NotRead, Secret};
pub use finding::{Decision, Finding};
pub use managers::{Manager, Series};
pub use objects::{KINDS, KindName, Objects};
pub use report::{Report, report};
pub use text::render;
