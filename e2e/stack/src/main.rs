//! `stack`: the real Cluster API management cluster on one machine, without containers.
//!
//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler, cert-manager's controllers and the process kubelet run
//! in namespaces of their own; everything else is a Pod. It is a tool for tests: nothing here is made to be exposed,
//! and all data goes when the stack goes.
//!
//! Invariant: all that a stack starts descends from one process in one process namespace. Killing that process is the
//! only way a stack ends, so an orderly stop and a hard kill leave the same: files, which the next command removes.

mod build;
mod claims;
mod components;
mod facts;
mod families;
mod fresh;
mod life;
mod mission;
mod namespaces;
mod neighbours;
mod pki;
mod places;
mod products;
mod record;
mod repository;
mod supervise;
mod tools;
mod wait;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::places::Places;

#[derive(Debug, Parser)]
#[command(about = "A real Cluster API management cluster on one machine, without containers")]
struct Arguments {
    /// Folder of binaries and of running stacks.
    #[arg(long, env = "CACHE", global = true)]
    cache: Option<PathBuf>,
    /// Home folder, where the cache is unless `--cache` names another place.
    #[arg(long, env = "HOME", hide = true, global = true)]
    home: Option<PathBuf>,
    /// The search path, to which the stack's own tools are added.
    #[arg(
        long,
        env = "PATH",
        default_value = "/usr/bin:/bin:/usr/sbin:/sbin",
        hide = true,
        global = true
    )]
    path: OsString,
    /// Name of the stack; two names are two stacks.
    #[arg(long, default_value = "default", global = true)]
    name: String,
    /// Number of its network: stacks that reach each other differ in it.
    #[arg(long, default_value_t = 0, global = true)]
    network: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build what is not in the cache.
    Build,
    /// Build and start; prints versions, addresses, the kubeconfig and times.
    Up(supervise::Extent),
    /// Stop, and remove all but the cache of binaries.
    Down,
    /// Run a command in the stack's network, with its kubectl and clusterctl on the path.
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
    /// Say which binary stands for an image.
    Image {
        /// Last element of the image's name, without tag: `cluster-api-controller`.
        image: String,
        binary: PathBuf,
    },
    /// Resident memory of every process of the stack.
    Memory,
    /// Prove the claims of the stack and of the process kubelet on a fresh stack.
    Claims(claims::Options),
    /// Prove the claims about the project's own release on a fresh stack.
    Products(products::Options),
    /// Prove the mission on a fresh stack: machines of a real Ironic become a cluster, and are given back.
    Mission(mission::Options),
    /// Run scripts of e2e/scenarios on a fresh stack, on machines of a real Ironic.
    Scenarios(mission::script::Options),
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
    let cache = arguments
        .cache
        .or(in_home)
        .context("neither --cache nor HOME says where the cache is")?;
    let places = Places::new(cache, &arguments.name, arguments.path)?.in_network(arguments.network);
    match arguments.command {
        Command::Build => build::missing(&places, families::FAMILIES).map(|_| ExitCode::SUCCESS),
        Command::Up(extent) => life::up(&places, &extent).map(|()| ExitCode::SUCCESS),
        Command::Down => life::down(&places).map(|()| ExitCode::SUCCESS),
        Command::Exec { command } => life::exec(&places, &command),
        Command::Init { arguments } => repository::init(&places, &arguments),
        Command::Release(release) => repository::add(&places, &release).map(|()| ExitCode::SUCCESS),
        Command::Image { image, binary } => life::set_image(&places, &image, &binary).map(|()| ExitCode::SUCCESS),
        Command::Memory => facts::print_memory(&places).map(|()| ExitCode::SUCCESS),
        Command::Claims(options) => claims::prove(&places, &options),
        Command::Products(options) => products::prove(&places, &options),
        Command::Mission(options) => mission::prove(&places, &options),
        Command::Scenarios(options) => mission::script::prove(&places, &options),
        Command::Facts(options) => facts::write(&places, &options).map(|()| ExitCode::SUCCESS),
        Command::Supervise(extent) => supervise::run(&places, &extent).map(|()| ExitCode::SUCCESS),
    }
}
