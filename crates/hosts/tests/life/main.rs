//! The controller of hosts on a simulated API server and a simulated Ironic: from a BMC's address to a running image
//! and back, under paused time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod blows;
mod defects;
mod histories;
mod lab;
mod road;
mod story;
mod tap;
