//! Certificates of our own making, for clusters without cert-manager: an authority and a serving pair in a Secret, and
//! the authority in every configuration that sends the API server to us.
//!
//! What is due is decided in [`plan`] from what is stored and the time; [`keeper`] performs it. Replicas share the
//! Secret and have no leader: each write has a precondition, the slower one reads again and finds nothing left to do.
//!
//! Invariants:
//! - the serving pair is signed by an authority that the API server was told of before;
//! - an authority goes only when nobody serves what it signed;
//! - keys reach the Secret and the server, never a log or an error.

mod door;
pub mod inject;
pub mod keeper;
pub mod ledger;
mod mint;
pub mod plan;
mod vault;

pub use door::SelfManaged;
pub use keeper::{Keeper, Site};
pub use mint::MintError;
pub use vault::Pair;
