//! Why something waits, who has to act, and what to do.
//!
//! - [`table`]: each reason that a controller of this project writes, with its meaning and its cure; [`runbook`] renders it.
//!
//! - [`explain`]: a chain of links from an object to the last cause. It asks for the objects that it needs, so that its
//!   caller reads those and no others; [`offline`] answers from a complete set of objects.
//! - [`view`]: tables and trees about many objects, which ask for what they need in the same way; [`bundle`]: all of it in files.
//! - [`text`]: the chain for people. It is serializable for programs.
//!
//! Pure: no client, no clock, no async. Controllers do not use it: only commands and the generator of pages do.
#![warn(missing_docs)]

pub mod bundle;
mod chain;
mod events;
pub mod example;
pub mod history;
mod index;
pub mod labels;
mod listed;
mod object;
pub mod offline;
mod older;
mod order;
mod read;
pub mod runbook;
mod snapshot;
mod steps;
pub mod table;
pub mod text;
mod values;
pub mod view;
mod walk;
mod work;

pub use chain::{Explanation, Link, State};
pub use events::EventLine;
pub use object::{KINDS, KnownKind, ObjectId, SECRET, WITHOUT_WAITS, kind_named};
pub use read::{NotRead, Read, Unread};
pub use snapshot::{Answer, Snapshot};
pub use walk::{explain, with_background};
