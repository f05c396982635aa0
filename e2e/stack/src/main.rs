//! `stack`: the real Cluster API management cluster on one machine, without containers.
//!
//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler, cert-manager's controllers and the process kubelet run
//! in separate namespaces; everything else is a Pod. It is a tool for tests, not to be exposed; stopping the stack deletes
//! all data.
//!
//! Invariant: all processes of a stack descend from one process in one process namespace. A stack ends only by killing that
//! process, so an orderly stop and a hard kill leave the same: files, which the next command removes.

mod build;
mod claim;
mod claims;
mod components;
mod facts;
mod families;
mod fresh;
mod helm;
mod instance;
mod lifecycle;
mod namespaces;
mod operator;
mod peering;
mod pki;
mod places;
mod products;
mod record;
mod registry;
mod repository;
mod supervise;
mod tools;
mod wait;
mod yaml;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::places::Places;

#[derive(Debug, Parser)]
#[command(about = "A real Cluster API management cluster on one machine, without containers")]
struct Arguments {
    /// Directory of binaries and of running stacks.
    #[arg(long, env = "CACHE", global = true)]
    cache: Option<PathBuf>,
    /// Home directory; the cache is below it unless `--cache` is set.
    #[arg(long, env = "HOME", hide = true, global = true)]
    home: Option<PathBuf>,
    /// The search path, to which the stack's tools are added.
    #[arg(
        long,
        env = "PATH",
        default_value = "/usr/bin:/bin:/usr/sbin:/sbin",
        hide = true,
        global = true
    )]
    path: OsString,
    /// Name of the stack.
    #[arg(long, default_value = "default", global = true)]
    name: String,
    /// Number of its network; connected stacks need different ones.
    #[arg(long, default_value_t = 0, global = true)]
    network: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the programs that the cache lacks.
    Build,
    /// Build a program that the cache lacks, and print its path.
    Tool {
        /// `helm`, `kubectl`, `clusterctl`, …
        program: String,
    },
    /// Build and start; print versions, addresses, the kubeconfig and times.
    Up(supervise::Extent),
    /// Stop, and remove everything except the cached binaries.
    Down,
    /// Run a command in the stack's network, with kubectl and clusterctl on the path.
    Exec {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// `clusterctl init`, once the stack is ready for it.
    Init {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Put a release of a provider into the local clusterctl repository.
    Release(repository::Release),
    /// Set the binary of an image.
    Image {
        /// Last element of the image's name, without tag: `cluster-api-controller`.
        image: String,
        binary: PathBuf,
    },
    /// Print the resident memory of the stack's processes.
    Memory,
    /// Prove the claims of the stack and of the process kubelet on a fresh stack.
    Claims(claims::Options),
    /// Prove the claims about the project's release on a fresh stack.
    Products(products::Options),
    /// Prove the life-cycle suite on a fresh stack: machines of a real Ironic become a cluster, and are released.
    Lifecycle(lifecycle::Options),
    /// Prove the suite of the Helm charts on a fresh stack: hosts of a real Ironic, and the real helm.
    Charts(lifecycle::charts::Options),
    /// Prove the suite of the release before this one on a fresh stack: an upgrade from it and back, with hosts in flight.
    Previous(lifecycle::previous::Options),
    /// Prove the suite of an installation on a fresh stack: the lines of README.md, and what wrong inputs look like.
    Installation(lifecycle::installation::Options),
    /// Prove the suite of the Cluster API operator on a fresh stack: the commands of docs/install.md install the release by it.
    Operator(operator::Options),
    /// Switch a live installation of the Go managers to this project's and back, and judge what happened.
    Swap(lifecycle::swap::Options),
    /// Run scripts of e2e/scenarios on a fresh stack, with machines of a real Ironic.
    Scenarios(lifecycle::script::Options),
    /// Measure the stack and write the figures into a document.
    Facts(facts::Options),
    /// The first process of a stack; started by `up`.
    #[command(hide = true)]
    Supervise(supervise::Extent),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("stack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let in_home = arguments.home.map(|home| home.join(".cache/metal3-rs"));
    let cache = arguments.cache.or(in_home).context("set --cache or HOME")?;
    let places = Places::new(cache, &arguments.name, arguments.path)?.in_network(arguments.network);
    match arguments.command {
        Command::Build => [families::FAMILIES, families::READERS]
            .iter()
            .try_for_each(|families| build::missing(&places, families).map(drop))
            .map(|()| ExitCode::SUCCESS),
        Command::Tool { program } => build::tool(&places, &program).map(|path| {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }),
        Command::Up(extent) => instance::up(&places, &extent).map(|()| ExitCode::SUCCESS),
        Command::Down => instance::down(&places).map(|()| ExitCode::SUCCESS),
        Command::Exec { command } => instance::exec(&places, &command),
        Command::Init { arguments } => repository::init(&places, &arguments),
        Command::Release(release) => repository::add(&places, &release).map(|()| ExitCode::SUCCESS),
        Command::Image { image, binary } => instance::set_image(&places, &image, &binary).map(|()| ExitCode::SUCCESS),
        Command::Memory => facts::print_memory(&places).map(|()| ExitCode::SUCCESS),
        Command::Claims(options) => claims::prove(&places, &options),
        Command::Products(options) => products::prove(&places, &options),
        Command::Lifecycle(options) => lifecycle::prove(&places, &options),
        Command::Charts(options) => lifecycle::charts::prove(&places, &options),
        Command::Previous(options) => lifecycle::previous::prove(&places, &options),
        Command::Installation(options) => lifecycle::installation::prove(&places, &options),
        Command::Operator(options) => operator::prove(&places, &options),
        Command::Swap(options) => lifecycle::swap::prove(&places, &options),
        Command::Scenarios(options) => lifecycle::script::prove(&places, &options),
        Command::Facts(options) => facts::write(&places, &options).map(|()| ExitCode::SUCCESS),
        Command::Supervise(extent) => supervise::run(&places, &extent).map(|()| ExitCode::SUCCESS),
    }
}
