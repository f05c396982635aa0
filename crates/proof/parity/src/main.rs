//! Comparison with recorded answers and manifests of the Go managers.

mod admission;
mod crd_diff;
mod decode;
mod golden;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Comparison with recorded answers and manifests of the Go managers")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the CRDs with those in a folder of manifests
    CrdDiff {
        /// Folder with the manifests of the Go managers
        folder: PathBuf,
    },
    /// Decode published manifests strictly: an unknown field of a kind of this provider is a failure
    Decode {
        /// Folder with `templates` and `mixed`
        folder: Option<PathBuf>,
        /// A text file that quotes manifests
        #[arg(long)]
        quoted: Vec<PathBuf>,
    },
    /// Compare with recorded answers of the Go managers
    Golden {
        /// Folder with a folder for each group, or the folder of one group
        folder: PathBuf,
        /// Run only this group: a folder, or a folder and a file as `folder/file`
        group: Option<String>,
        /// The folder is the whole recorded set: fail for a rule that no case needs, or that too many need
        #[arg(long)]
        whole: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::CrdDiff { folder } => crd_diff::run(&folder),
        Command::Decode { folder, quoted } => decode::run(folder.as_deref(), &quoted),
        Command::Golden { folder, group, whole } => golden::run(&folder, group.as_deref(), whole),
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
