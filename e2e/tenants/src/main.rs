//! `tenants`: tenants and administrators of hosts with the sample roles, quotas and admission policies, on a real API server with the
//! real program and the simulated Ironic as processes.
//!
//! It runs in the network and process namespace of a stack with the API server alone (`make e2e-tenants`). Commands of
//! `docs/tenants.md` and `docs/host-administrators.md` run as they are written, each with the credentials of its reader.

mod access;
mod canaries;
mod manager;
mod page;
mod person;
mod refusals;
mod story;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use metal3_ironic_life::run_program;

/// Has two tenants use hosts of an administrator, with real permissions.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Folder of the checkout
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Kubeconfig of an administrator of the cluster
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Audit log of the API server
    #[arg(long)]
    audit: PathBuf,
    /// The program
    #[arg(long)]
    manager: PathBuf,
    #[arg(long)]
    kubectl: PathBuf,
    /// Folder for logs and credentials of the run
    #[arg(long)]
    home: PathBuf,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run_program("tenants", story::run(&arguments)).await
}
