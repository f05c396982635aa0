//! The program of the library.

use std::process::ExitCode;

use clap::Parser as _;
use metal3_ironic_life::{Arguments, run, run_program};

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    run_program("ironic-life", run(&Arguments::parse())).await
}
