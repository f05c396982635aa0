//! The command line: the flags of the three Go managers, and ours.
//!
//! [`TABLE`] is all there is: the parser reads it, `docs/flags.md` is written from it. A flag of a Go manager is in it
//! even where it does nothing here, because a Deployment that carries it must start, and be told.
//!
//! Spelling is Go's: one dash or two, `--flag value` or `--flag=value`, and `--switch`, `--switch=false`. Environment
//! variables are not read here.
#![warn(missing_docs)]

mod entry;
mod flag;
mod options;
mod page;
mod parse;
pub mod span;
mod table;
mod variables;
pub mod version;

pub use flag::{Fate, Flag, Owner, Shape};
pub use options::{AtOnce, CertificateSource, Election, ForeignDeployment, Options, Tls};
pub use page::page;
pub use parse::{FlagFault, Request, parse};
pub use table::TABLE;
pub use variables::{VARIABLES, Variable};
