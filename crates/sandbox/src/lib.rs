//! The sandbox: a management cluster, Ironic, machines and Cluster API simulated in one process, with the real controllers.
//!
//! It is a feature of the binary, on by default and off in releases.

#[macro_use]
mod out;

pub mod admission;
pub mod api_server;
pub mod command;
mod demo;
mod display;
mod flags;
mod http_server;
mod installed;
mod kubeconfig;
pub mod lab;
#[cfg(test)]
mod owner_walk;
mod products;
mod scenario;
pub mod steps;
pub mod variables;
pub mod world;
