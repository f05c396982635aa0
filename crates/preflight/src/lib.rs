//! What a switch from the Go managers to this program, or back, would meet.
//!
//! [`report`] is a pure function from [`Facts`], which its caller has read, to a [`Report`]: the managers that were found,
//! a decision, and the findings that led to it, each with its object, what happens and what to do.
//!
//! Its rules predict from objects. What a reconciler would write for a healthy object is not computed here: the caller runs
//! the controllers in a dry run, and passes what they would do as a [`DryRun`].
#![warn(missing_docs)]

mod admission;
mod back;
mod definitions;
mod dry_run;
mod environment;
mod facts;
mod finding;
mod hosts;
mod machines;
mod managers;
mod objects;
mod replaced;
mod report;
mod rights;
mod settings;
mod text;
mod unserved;

#[cfg(test)]
mod tests;

pub use dry_run::{Change, DryRun};
pub use environment::{ConfigMaps, config_maps, variables};
pub use facts::{Crd, Direction, Facts, Provider, Secret};
pub use finding::{Decision, Finding, NotRead};
pub use managers::{Manager, Series, container, found};
pub use objects::{KINDS, KindName, Objects, named};
pub use replaced::scope::WATCH_NAMESPACE;
pub use replaced::{ONE_NAMESPACE, WAITED_FOR};
pub use report::{Report, report};
pub use rights::{Account, Right};
pub use settings::{Given, Settings, Source, Variable, expanded, unknown_reference};
pub use text::render;
