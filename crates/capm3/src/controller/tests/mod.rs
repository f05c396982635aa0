//! The controllers on a simulated API server.

mod clusterctl;
mod faults;
mod invalid_specs;
mod labels;
mod moving;
mod program;
mod scenarios;
mod shared;
mod steps;
mod waiting;
mod without_faults;
