//! Runs scenarios on the simulators and compares their reports with those of the real services.

mod alerts;
mod asked;
mod marks;
mod observed;
mod outputs;
mod scenario;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Runs scenarios on the simulators and compares their reports with those of the real services")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run scenarios on the simulators
    Run(scenario::Options),
    /// Scrape the products while faults are injected, and write tests for the rules of alerts
    Alerts(alerts::Options),
    /// Compare the requests of the products on the simulators with those on the real services
    Asked(asked::Options),
    /// Run the commands of kubectl metal3 in the sandbox, and compare a page with what they print
    Outputs(outputs::Options),
    /// Compare the statuses of objects on the simulators with those on the real services
    Observed(observed::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(options) => scenario::run(&options),
        Command::Alerts(options) => alerts::run(&options),
        Command::Asked(options) => asked::run(&options),
        Command::Outputs(options) => outputs::run(&options),
        Command::Observed(options) => observed::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
