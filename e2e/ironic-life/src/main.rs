//! The program: see the library.

use std::process::ExitCode;

use clap::Parser as _;
use metal3_ironic_life::{Arguments, until_told};

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("ironic-life: a crypto provider is installed already");
        return ExitCode::FAILURE;
    }
    match until_told(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ironic-life: {error:#}");
            ExitCode::FAILURE
        }
    }
}
