//! The controllers at work on a simulated API server.

mod blows;
mod calm;
mod program;
mod site;
mod stories;
mod waiting;
