//! The project's tools: `cargo run --bin xtask -- COMMAND`.

mod arrows;
mod codegen;
mod fields;
mod lints;
mod pages;
mod release;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Code generation and checks of the source")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the direction of dependencies between packages
    Arrows,
    /// Write the generated manifests
    Codegen {
        /// Fail when a file differs from what would be written, and write nothing
        #[arg(long)]
        check: bool,
    },
    /// Write the table of fields, keys, flags, variables and metrics
    Fields {
        /// Fail when the page differs from what would be written, and write nothing
        #[arg(long)]
        check: bool,
        /// Remove each member that acts from decoded objects, and fail when its test passes
        #[arg(long, conflicts_with = "check")]
        prove: bool,
        /// With `--prove`: this many members, at equal distances in the table
        #[arg(long, requires = "prove")]
        sample: Option<usize>,
    },
    /// Check the length and the words of source files
    Lints,
    /// Write the release manifests
    Release {
        /// Folder for the files
        folder: PathBuf,
        /// The image of the program, with its tag
        #[arg(long)]
        image: String,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Arrows => arrows::run(),
        Command::Codegen { check } => codegen::run(check),
        Command::Fields {
            prove: true, sample, ..
        } => fields::prove(sample),
        Command::Fields { check, .. } => fields::run(check),
        Command::Lints => lints::run(),
        Command::Release { folder, image } => release::run(&folder, &image),
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
