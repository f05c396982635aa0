//! Decisions of a remediation by phase, and its histories on a simulated API server under every fault.

mod case;
mod contended;
mod ends;
mod faults;
mod lab;
mod moved;
mod orphans;
mod pauses;
mod refused;
mod running;
mod waiting;
