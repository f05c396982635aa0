//! The sandbox: everything that a cluster of bare-metal machines needs, simulated in one process.
//!
//! It is a feature of the binary, on by default and off in what is released: it knows the simulators, the products do not.

pub mod command;
mod flags;
mod front;
mod picture;
mod products;
pub mod variables;
mod way_in;
pub mod world;
