//! The command line: flags of the three Go managers and of this program.
//!
//! [`TABLE`] is the single source: the parser reads it, and `docs/flags.md` is generated from it. It contains every
//! flag of the Go managers, including those without effect here: a Deployment with such a flag must start, and the log
//! states the reason.
//!
//! The spelling is that of Go: one dash or two, `--flag value` or `--flag=value`, and `--switch`, `--switch=false`.
//! Environment variables are not read here.
#![warn(missing_docs)]

mod contradictions;
mod entry;
mod flag;
mod foreign;
mod mapped;
mod objectives;
mod options;
mod page;
mod parse;
pub mod span;
mod table;
mod variables;
pub mod version;

pub use flag::{Flag, Handling, Owner, Shape};
pub use foreign::ForeignDeployment;
pub use mapped::{Mapped, mapped};
pub use options::{AtOnce, BmcSecrets, CertificateSource, Election, Options, Tls};
pub use page::page;
pub use parse::{FALSE, FlagError, Request, TRUE, parse, parse_with};
pub use table::TABLE;
pub use variables::{VARIABLES, Variable};
