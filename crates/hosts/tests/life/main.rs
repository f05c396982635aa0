//! The host controller on a simulated API server and a simulated Ironic, from a BMC address to a running image and
//! back, in paused time.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod access;
mod agent_images;
mod audit;
mod bios;
mod busy;
mod cases;
mod claims;
mod cleaning;
mod defects;
mod deploy_steps;
mod discs;
mod disturbances;
mod env;
mod faults;
mod firmware;
mod gauges;
mod happy_path;
mod interceptor;
mod ironics;
mod late_edits;
mod logins;
mod lost_images;
mod moves;
mod outages;
mod phases;
mod ports;
mod program;
mod raid;
mod reboots;
mod registry;
mod removals;
mod running_steps;
mod seeds;
mod services;
mod stories;
mod subscriptions;
mod switch_faults;
mod switch_stories;
mod switches;
mod tenants;
mod unserved;
mod updates;
mod waits;
