//! The crash sweep: one test entry for every reconciler.
//!
//! A test implements [`TestEnv`]: user actions, the start of the program, invariants and goals. [`prove`] runs it on
//! the simulated API server under paused time and checks four properties:
//!
//! 1. **Crash.** Each [`WriteFault`] is injected into each write of a fault-free run: the program crashes before or
//!    after it, its response is lost or late, it is rejected, the caches lag. Every case ends in the same state.
//! 2. **Interleaving.** Two programs run at once, without leader election, with random delays of requests and watch
//!    events.
//! 3. **Fixpoint.** A program started on a finished state writes nothing.
//! 4. **Quiescence.** A program that runs for another day writes nothing.
//!
//! The invariants are checked after every write of every run. The [`Report`] contains the number of cases: writes of
//! the fault-free run times faults.
//!
//! It requires a current-thread runtime with paused time; then runs are reproducible. Pure plans are tested by tables,
//! not here.
#![warn(missing_docs)]

mod env;
mod fault;
mod interceptor;
mod members;
mod report;
mod run;
mod state;
mod sweep;

pub use env::{Instance, TestEnv};
pub use fault::WriteFault;
pub use members::without_effect;
pub use report::Report;
pub use state::State;
pub use sweep::{CrashSweep, prove};
