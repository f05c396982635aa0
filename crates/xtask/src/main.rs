//! The project's tools: `cargo run -p xtask -- COMMAND`.

mod admission;
mod arrows;
mod asked;
mod codegen;
mod crd_diff;
mod decode;
mod documents;
mod golden;
mod lints;
mod marks;
mod observed;
mod pages;
mod release;
mod scenario;
mod values;
mod workspace;
mod yaml;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Code generation, drift checks and comparisons")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check that the rooms import each other in one direction and the pure ones stay pure
    Arrows,
    /// Write the generated manifests
    Codegen {
        /// Fail when a file differs from what would be written, and write nothing
        #[arg(long)]
        check: bool,
    },
    /// Compare our definitions with those of a folder of manifests
    CrdDiff {
        /// Folder with the manifests of the Go managers
        folder: PathBuf,
    },
    /// Decode published manifests strictly: an unknown field of a kind of ours is a failure
    Decode {
        /// Folder with `templates` and `mixed`
        folder: Option<PathBuf>,
        /// A text in which manifests are quoted
        #[arg(long)]
        quoted: Vec<PathBuf>,
    },
    /// Check the length of source files and look for work put off
    Lints,
    /// Write what a user installs
    Release {
        /// Folder for the files
        folder: PathBuf,
        /// The image of the program, with its tag
        #[arg(long)]
        image: String,
    },
    /// Run recorded answers of the Go managers against our code
    Golden {
        /// Folder with a folder for each group, or the folder of one group
        folder: PathBuf,
        /// Run this group alone: a folder, or a folder and a file as `folder/file`
        group: Option<String>,
    },
    /// Compare what the products asked for on the simulated world with what they asked for on the real one
    Asked(asked::Options),
    /// Compare what objects said on the simulated world with what they said on the real one
    Observed(observed::Options),
    /// Run scenarios on the simulated world
    Scenario(scenario::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Arrows => arrows::run(),
        Command::Codegen { check } => codegen::run(check),
        Command::CrdDiff { folder } => crd_diff::run(&folder),
        Command::Decode { folder, quoted } => decode::run(folder.as_deref(), &quoted),
        Command::Lints => lints::run(),
        Command::Release { folder, image } => release::run(&folder, &image),
        Command::Golden { folder, group } => golden::run(&folder, group.as_deref()),
        Command::Asked(options) => asked::run(&options),
        Command::Observed(options) => observed::run(&options),
        Command::Scenario(options) => scenario::run(&options),
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
