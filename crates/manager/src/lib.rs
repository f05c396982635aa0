//! The manager: flags and wiring. What it runs is decided elsewhere; here it is put together.
//!
//! The life of a process, in [`run`]: probes answer first; then the kinds are looked for; then watches begin and the
//! webhooks are served, on every replica; then the controllers run, on the one that leads. At the end the same in
//! reverse: passes under way finish, the lease is given up, servers close.
//!
//! Invariants: nothing is written before the kinds, the guard and the lease allow it; whatever keeps a process from
//! working stands in `/readyz`, in words that say what to do.
#![warn(missing_docs)]

pub mod cluster;
mod last_words;
mod lead;
pub mod machines;
pub mod metal;
mod notice;
pub mod place;
pub mod product;
pub mod run;
pub mod served;
mod servers;
pub mod session;
