//! Counts of requests to servers: audit logs by user, unused grants, and the table of figures with their goals.
//!
//! Pure: it parses texts and returns tables. It runs nothing and depends on no product.
#![warn(missing_docs)]

mod audit;
mod figures;
mod grants;

pub use audit::{Call, Log, NotAnEvent, Parts, Target, UserCounts};
pub use figures::{Figure, Ledger};
pub use grants::{Grants, RoleError};
