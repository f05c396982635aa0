//! Drives a real Ironic: takes nodes through their life cycle concurrently and compares the result with the order.
//!
//! It uses plain REST, so that it checks Ironic and the simulated machines without any code of the product. It starts and
//! stops the machines it needs; Ironic itself is started by `make ironic`.
//!
//! Drivers that test a product on the same Ironic share its parts: [`Place`] opens the Ironic, [`processes`] starts the
//! machines and checks their disks, [`order`] makes the images, [`faults`] lists the faults of machines,
//! [`simulated`] starts the simulated Ironic instead of a real one, and [`run_program`] runs a driver until it ends or is stopped.

pub mod compare;
pub mod faults;
pub mod ironic;
mod lab_checks;
mod level;
mod life;
mod node;
pub mod order;
mod poller;
pub mod processes;
mod run;
pub mod simulated;
mod suite;
mod times;
pub mod usage;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use ironic::{Endpoint, Ironic};
use order::{Image, images};
use processes::{Lab, LabOptions};

pub use level::{Level, inspection_data};
pub use run::built_in_profile;

/// Takes nodes through their life cycle on the real Ironic and compares disks and inventories.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Arguments {
    /// 1: fake hardware; 2: Redfish without a ramdisk; 3: Redfish and agents
    #[arg(long, default_value_t = 3)]
    level: u8,
    /// Number of nodes that run concurrently
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    nodes: u16,
    /// The BMCs at level 2
    #[arg(long, value_enum, default_value_t = Machines::Sushy)]
    bmc: Machines,
    /// Hardware profile of the nodes
    #[arg(long, default_value = "small")]
    profile: String,
    /// Write the table of faults to this page instead of running life cycles; one machine per fault
    #[arg(long, value_name = "MARKDOWN")]
    faults: Option<PathBuf>,
    /// Compare the BMCs of labhosts with sushy-tools' emulator instead of running life cycles; requires Python, not Ironic
    #[arg(long, value_name = "PYTHON", conflicts_with = "faults")]
    redfish_suite: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// The Ironic instance and the directories of a driver.
#[derive(Debug, Clone, clap::Args)]
pub struct Place {
    /// The project's caches
    #[arg(long, env = "CACHE", value_name = "FOLDER")]
    pub cache: PathBuf,
    /// The instance name given to `make ironic`
    #[arg(long, env = "INSTANCE", default_value = "default")]
    pub instance: String,
    /// Port of the simulated machines
    #[arg(long, default_value_t = 27443)]
    pub port: u16,
}

impl Place {
    /// The directory of that Ironic.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        // Make exports the variable empty when the user does not set it.
        let instance = if self.instance.is_empty() {
            "default"
        } else {
            &self.instance
        };
        self.cache.join("ironic/run").join(instance)
    }

    /// Locks this Ironic, writes the images for its file server, and removes nodes of earlier runs by their name prefix.
    ///
    /// # Errors
    /// When another driver holds the lock, or Ironic is not running.
    pub async fn open(&self, node_prefix: &str) -> anyhow::Result<Session> {
        let home = self.home();
        let endpoint = Endpoint::read(&home.join("endpoint.json"))?;
        let lock = lock(&home)?;
        let images = images(Path::new(&endpoint.files_root), &endpoint.files_url)?;
        let ironic = Ironic::new(endpoint)?;
        ironic
            .remove_nodes(node_prefix)
            .await
            .context("cannot remove the nodes of an earlier run")?;
        Ok(Session {
            ironic,
            images,
            home,
            _lock: lock,
        })
    }
}

/// Two drivers on one Ironic would remove each other's nodes and start machines with equal addresses.
fn lock(home: &Path) -> anyhow::Result<File> {
    let path = home.join("driver.lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another run uses this Ironic; start a separate one with INSTANCE=name")
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Exclusive use of one Ironic.
#[derive(Debug)]
pub struct Session {
    /// The client.
    pub ironic: Ironic,
    /// The images on its file server.
    pub images: Vec<Image>,
    /// The directory of the instance.
    pub home: PathBuf,
    _lock: File,
}

impl Session {
    /// Starts machines that trust this Ironic; `machines` is `PROFILE=COUNT`, or several with
    /// commas between them.
    ///
    /// # Errors
    /// When labhosts does not start.
    pub async fn start_lab(&self, machines: String, port: u16, heartbeat_ms: u64) -> anyhow::Result<Lab> {
        let options = LabOptions {
            machines,
            port,
            heartbeat_ms,
        };
        Lab::start(Path::new(&self.ironic.endpoint().ca), &self.home, &options).await
    }

    /// An image by index, modulo their number: neighbouring machines get different images.
    ///
    /// # Errors
    /// When there is no image.
    pub fn image(&self, index: usize) -> anyhow::Result<&Image> {
        self.images.get(index % self.images.len().max(1)).context("no image")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Machines {
    /// sushy-tools' emulator
    Sushy,
    /// the BMCs of this project
    Labhosts,
}

/// Runs the work until it ends, or SIGTERM or SIGINT arrives; prints the error. Dropping the work stops the processes it
/// started.
pub async fn run_program(name: &str, work: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let outcome = if rustls::crypto::ring::default_provider().install_default().is_err() {
        Err(anyhow::anyhow!("a crypto provider is already installed"))
    } else {
        until_stopped(work).await
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn until_stopped(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = work => outcome,
        _ = terminated.recv() => bail!("terminated"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

/// Does what the command line names.
///
/// # Errors
/// When a process does not start, or a check fails.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match (&arguments.faults, &arguments.redfish_suite) {
        (_, Some(python)) => suite::prove(&arguments.place, python).await,
        (Some(page), None) => run::tabulate_faults(arguments, page).await,
        (None, None) => run::run(arguments).await,
    }
}
