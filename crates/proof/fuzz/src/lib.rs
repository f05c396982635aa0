//! Fuzz targets for the parsers of untrusted text, on stable Rust.
//!
//! A [`Target`](target::Target) is a parser, a property that its answers have, and hints for the generator. [`run::run`]
//! gives it the files of its corpus and inputs generated from them. A panic, an answer that is too large, or an answer
//! without the property is a finding: it is shrunk, and its file can be added to `corpus/NAME`.
//!
//! Invariant: seed and number of inputs determine everything that happens; no clock is read here.

mod chance;
mod dictionary;
mod document;
pub mod generate;
pub mod planted;
mod pool;
pub mod run;
mod sweep;
pub mod target;
pub mod targets;
