//! The controllers at work on a simulated API server.

mod blows;
mod program;
mod shared;
mod site;
mod stories;
