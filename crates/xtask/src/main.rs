//! The project's tools: `cargo run --bin xtask -- COMMAND`.

mod alerts;
mod arrows;
mod codegen;
mod fields;
mod files;
mod images;
mod lints;
mod notices;
mod packages;
mod pages;
mod plugin;
mod release;
mod run;
mod sbom;
mod tools;
mod trust;

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
    /// Have promtool check the rules of alerts, and run the tests of a folder
    AlertsCheck {
        /// Folder that `scenarios alerts` wrote
        folder: PathBuf,
    },
    /// Check the direction of dependencies between packages
    Arrows,
    /// Write a release and its images into one archive, for machines that reach no registry of others
    Bundle {
        /// The archive
        file: PathBuf,
        /// Folder of the release
        #[arg(long)]
        release: PathBuf,
        /// Folder of the image layout
        #[arg(long)]
        images: PathBuf,
    },
    /// Write the Helm charts
    Chart {
        /// Folder for the charts
        folder: PathBuf,
        /// The image of the program
        #[arg(long)]
        image: String,
    },
    /// Have the real Helm read the charts, and compare what it renders with the components
    ChartCheck {
        /// Folder of the charts
        folder: PathBuf,
        /// The image for which they were written
        #[arg(long)]
        image: String,
        /// The program `helm`
        #[arg(long)]
        helm: PathBuf,
    },
    /// Have a real API server read each form of the charts in a dry run
    ChartServer {
        /// Folder of the charts
        folder: PathBuf,
        #[command(flatten)]
        programs: release::chart::dry_run::Programs,
    },
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
    /// Write the container images of the program as an OCI image layout
    Images {
        /// Folder for the layout
        folder: PathBuf,
        #[command(flatten)]
        options: images::Options,
    },
    /// Write the images twice, compare them, and have programs of others read, push and start them
    ImagesCheck {
        /// Folder for the layout
        folder: PathBuf,
        /// Without the second build
        #[arg(long)]
        once: bool,
        #[command(flatten)]
        options: images::Options,
    },
    /// Compare what `kubectl kustomize` renders with the components
    KustomizeCheck {
        /// The program `kubectl`
        #[arg(long)]
        kubectl: PathBuf,
    },
    /// Check the length and the words of source files
    Lints,
    /// Write the archives of `kubectl metal3` and its manifest for Krew
    Plugin {
        /// Folder of the release
        folder: PathBuf,
        /// Folder of the image layout
        #[arg(long)]
        images: PathBuf,
        #[command(flatten)]
        options: plugin::Options,
    },
    /// Have the real Krew read the manifest of `kubectl metal3`, and install its archive
    PluginCheck {
        /// Folder that `plugin` wrote
        folder: PathBuf,
        #[command(flatten)]
        programs: plugin::check::Programs,
    },
    /// Build the program with and without `kubectl metal3` and the console, and print the sizes and the differences
    PluginSize {
        #[command(flatten)]
        compiled: images::Compiled,
    },
    /// Build the static program of one architecture, and print its path
    Program {
        /// `amd64` or `arm64`
        architecture: String,
        #[command(flatten)]
        compiled: images::Compiled,
    },
    /// Copy the images of a layout to a registry, and print the image with its digest
    Push {
        /// Folder of the layout
        folder: PathBuf,
        /// `HOST/NAME`
        #[arg(long)]
        registry: String,
        /// Print the image without copying it
        #[arg(long)]
        only_name: bool,
    },
    /// Copy the charts to a registry next to the images, and print each with its digest
    PushCharts {
        /// Folder of the charts
        folder: PathBuf,
        /// `HOST/NAME` of the images
        #[arg(long)]
        registry: String,
    },
    /// Write the release manifests
    Release {
        /// Folder for the files
        folder: PathBuf,
        /// The image of the program, with its tag
        #[arg(long)]
        image: String,
    },
    /// Name what keeps a release back
    ReleaseCheck {
        /// Folder of the release
        folder: PathBuf,
        /// Folder of the image layout
        #[arg(long)]
        images: PathBuf,
        /// The version that is to be released, such as a tag
        #[arg(long, default_value = "")]
        wanted: String,
    },
    /// Write the packages of the released program as a CycloneDX document
    Sbom {
        /// The file
        path: PathBuf,
        /// Folder of the images, whose compilers are named
        #[arg(long)]
        images: PathBuf,
    },
    /// Write the provenance and the checksums of a release, and sign them and the images
    Sign {
        #[command(flatten)]
        release: trust::Release,
        /// Folder of the image layout
        #[arg(long)]
        images: PathBuf,
        #[command(flatten)]
        origin: trust::Origin,
    },
    /// Write `SHA256SUMS` of a folder
    Sums {
        /// The folder
        folder: PathBuf,
    },
    /// Sign a release, verify it, and require that changes are rejected
    TrustCheck {
        #[command(flatten)]
        options: trust::Options,
    },
    /// Verify the signatures of a release and of the image that it installs
    VerifyRelease {
        #[command(flatten)]
        release: trust::Release,
        /// The version that is wanted
        #[arg(long, default_value = "")]
        wanted: String,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::AlertsCheck { folder } => alerts::check(&folder),
        Command::Arrows => arrows::run(),
        Command::Bundle { file, release, images } => release::bundle::run(&release, &images, &file),
        Command::Chart { folder, image } => release::chart::run(&folder, &image),
        Command::ChartCheck { folder, image, helm } => release::chart::check::run(&folder, &image, &helm),
        Command::ChartServer { folder, programs } => release::chart::dry_run::run(&folder, &programs),
        Command::Codegen { check } => codegen::run(check),
        Command::Fields {
            prove: true, sample, ..
        } => fields::prove(sample),
        Command::Fields { check, .. } => fields::run(check),
        Command::Images { folder, options } => images::run(&folder, &options),
        Command::ImagesCheck { folder, once, options } => images::check(&folder, once, &options),
        Command::KustomizeCheck { kubectl } => release::kustomize::check(&kubectl),
        Command::Lints => lints::run(),
        Command::Program { architecture, compiled } => images::program(&architecture, &compiled),
        Command::Plugin {
            folder,
            images,
            options,
        } => plugin::run(&folder, &images, &options),
        Command::PluginSize { compiled } => plugin::size::run(&compiled),
        Command::PluginCheck { folder, programs } => plugin::check::run(&folder, &programs),
        Command::Push {
            folder,
            registry,
            only_name,
        } => images::push(&folder, &registry, only_name),
        Command::PushCharts { folder, registry } => release::chart::push::run(&folder, &registry),
        Command::Release { folder, image } => release::run(&folder, &image),
        Command::ReleaseCheck { folder, images, wanted } => trust::ready(&folder, &images, &wanted),
        Command::Sbom { path, images } => sbom::run(&path, &images),
        Command::Sign {
            release,
            images,
            origin,
        } => trust::sign(&release, &images, &origin),
        Command::Sums { folder } => trust::sums(&folder),
        Command::TrustCheck { options } => trust::check(&options),
        Command::VerifyRelease { release, wanted } => trust::verify(&release, &wanted),
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
