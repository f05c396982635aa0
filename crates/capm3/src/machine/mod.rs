//! One machine: so far what is said of it.

pub mod conditions;
