//! Readable scripts of what happens to clusters: apply, wait, assert, break, restart.
//!
//! A script does not know what world it runs on. Here are its words ([`Scenario`]), the judgement of what was found
//! ([`Wish::judge`], [`Nodes::judge`]), the objects of what others have published ([`published`]), and summaries of what
//! objects said meanwhile ([`Observed`]) and of what the products asked for ([`Asked`]), by which two worlds are compared
//! ([`Explained`], [`Price`]). What a step does is each world's own: nothing here waits, asks or writes.
#![warn(missing_docs)]

mod asked;
mod differences;
mod observed;
mod price;
mod quoted;
mod wish;
mod words;

pub use asked::{Asked, Unequal};
pub use differences::{Explained, Reason, Side};
pub use observed::Observed;
pub use price::{Price, PriceReason, Real};
pub use quoted::blocks;
pub use wish::{Nodes, Wish};
pub use words::{Apply, Scenario, Span, Step, kind_and_name, published};
