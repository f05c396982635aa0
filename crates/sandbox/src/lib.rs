//! The sandbox: a management cluster, Ironic, machines and Cluster API simulated in one process, with the real controllers.
//!
//! It is a feature of the binary, on by default and off in releases.

pub mod command;
mod display;
mod flags;
mod http_server;
mod kubeconfig;
mod products;
pub mod variables;
pub mod world;
