//! What is asked of servers, counted: who called what according to the audit log of an API server, what was granted and
//! never used, and the table of figures that stands beside its goals.
//!
//! Pure: it reads texts and numbers and returns tables. It does not run anything, and knows no product.
#![warn(missing_docs)]

mod audit;
mod figures;
mod grants;

pub use audit::{Call, Log, NotAnEvent, Tally, Target};
pub use figures::{Figure, Ledger};
pub use grants::{Grants, TooWide};
