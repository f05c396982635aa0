//! Tests of the planner and the controller on API server stand-ins: tables, properties, and all histories of a small model.

mod allocation;
mod api_server;
mod clusters_and_pauses;
mod fixture;
mod histories;
mod large_pool;
mod members;
mod model;
mod program;
mod record;
mod refusals;
mod replica;
mod restore;
mod write_faults;
