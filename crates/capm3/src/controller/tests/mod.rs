//! The controllers at work on a simulated API server.

mod blows;
mod calm;
mod clusterctl;
mod hostile;
mod moving;
mod program;
mod shared;
mod site;
mod stories;
mod waiting;
