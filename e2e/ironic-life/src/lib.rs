//! Drives a real Ironic: whole lives of nodes, side by side, and what they leave behind compared with what was ordered.
//!
//! It speaks plain REST, so that it judges Ironic and the simulated machines without any code of the product. It starts the
//! machines it needs and ends them; Ironic itself is `make ironic`'s.
//!
//! Whoever tries a product on the same Ironic and the same machines finds here how both are reached ([`ironic`],
//! [`processes`]), what is ordered ([`order`]), and how what came out is compared with it ([`compare`]).

pub mod compare;
mod faults;
pub mod ironic;
mod level;
mod life;
mod looks;
mod node;
pub mod order;
pub mod processes;
mod run;
mod suite;
mod times;

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

pub use level::{Level, inspection_data};
pub use run::built_in_profile;

/// Takes nodes through their whole life on the real Ironic and compares disks and inventories.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Arguments {
    /// 1: fake hardware; 2: Redfish without a ramdisk; 3: Redfish and agents
    #[arg(long, default_value_t = 3)]
    level: u8,
    /// How many nodes live at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    nodes: u16,
    /// Whose BMCs, at level 2
    #[arg(long, value_enum, default_value_t = Machines::Sushy)]
    bmc: Machines,
    /// Hardware profile of the nodes
    #[arg(long, default_value = "small")]
    profile: String,
    /// Write the table of faults to this page in place of living lives; machines are counted by the table
    #[arg(long, value_name = "MARKDOWN")]
    faults: Option<PathBuf>,
    /// Compare our BMCs with sushy-tools' emulator in place of living lives; needs no Ironic, only its Python
    #[arg(long, value_name = "PYTHON", conflicts_with = "faults")]
    redfish_suite: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// Where Ironic is and where to work.
#[derive(Debug, Clone, clap::Args)]
pub struct Place {
    /// The project's caches
    #[arg(long, env = "CACHE", value_name = "FOLDER")]
    pub cache: PathBuf,
    /// Which Ironic of `make ironic`
    #[arg(long, env = "INSTANCE", default_value = "default")]
    pub instance: String,
    /// Port of the simulated machines
    #[arg(long, default_value_t = 27443)]
    pub port: u16,
}

impl Place {
    /// The folder of that Ironic.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        // Make exports the variable empty when nobody set it.
        let instance = if self.instance.is_empty() {
            "default"
        } else {
            &self.instance
        };
        self.cache.join("ironic/run").join(instance)
    }

    /// Keeps other drivers from that Ironic as long as what is returned lives: each removes what it takes for left
    /// behind, and machines of both have the same addresses.
    ///
    /// # Errors
    /// When another one is at work there, or there is no such Ironic.
    pub fn alone(&self) -> anyhow::Result<File> {
        let path = self.home().join("driver.lock");
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("another run is at work on this Ironic; take one of your own: INSTANCE=name")
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Machines {
    /// sushy-tools' emulator
    Sushy,
    /// Our own
    Labhosts,
}

/// Ends early when told to: dropping the work ends the machines that it started.
///
/// # Errors
/// When it was told to, or the work fails.
pub async fn until_told(arguments: &Arguments) -> anyhow::Result<()> {
    let mut told = signal(SignalKind::terminate())?;
    let work = async {
        match (&arguments.faults, &arguments.redfish_suite) {
            (_, Some(python)) => suite::prove(&arguments.place, python).await,
            (Some(page), None) => run::tabulate_faults(arguments, page).await,
            (None, None) => run::run(arguments).await,
        }
    };
    tokio::select! {
        outcome = work => outcome,
        _ = told.recv() => bail!("told to end"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}
