//! The trial: one test entry for every reconciler.
//!
//! A test describes a [`World`]: what users do, how the program is started, what must hold after every write and how it
//! ends. [`prove`] then runs it on the simulated API server under paused time and holds it to four properties:
//!
//! 1. **Crash.** Each write of a fault-free run is struck by each [`Blow`]: the program dies before or after it, its
//!    answer is lost or late, it is refused, the caches fall behind. Every case ends in the same state.
//! 2. **Interleaving.** Two programs run at once, without any election, their requests and watches delayed by a seed.
//! 3. **Fixpoint.** A program started on a finished state writes nothing.
//! 4. **Quiescence.** A program left alone for a day writes nothing.
//!
//! What the world calls its invariants is checked after every single write of every run. The [`Report`] says how many
//! cases that were: effects counted in the fault-free run times blows.
//!
//! It must be called on a current-thread runtime with paused time; then the same world gives the same runs. It does
//! not judge plans by themselves: those are pure, and tables do that.
#![warn(missing_docs)]

mod blow;
mod case;
mod report;
mod state;
mod tap;
mod trial;
mod world;

pub use blow::Blow;
pub use report::Report;
pub use state::State;
pub use trial::{Trial, prove};
pub use world::{Instance, World};
