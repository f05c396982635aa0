//! The controllers on a simulated API server.

mod capacity;
mod clusterctl;
mod faults;
mod invalid_specs;
mod labels;
mod moving;
mod program;
mod reuse;
mod scenarios;
mod sets;
mod shared;
mod steps;
mod waiting;
mod without_faults;
mod zones;
