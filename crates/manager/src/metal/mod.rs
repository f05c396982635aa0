//! What hosts need besides the API server: Ironic, and settings that end in its nodes.
//!
//! The Go manager is told of both by its environment, so the same variables count here. They are handed in as a
//! function; nothing here reads the environment, asks Ironic, or shows a login.

mod environment;

use std::path::Path;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_hosts::controller::Brake;
use metal3_hosts::settings::Settings;
use metal3_ironic::{Client, SetupError};

use metal3_flags::Options;

pub use environment::{Environment, VariableFault};

/// Passes at once where nobody says how many: as many as requests to Ironic may be under way.
const WORKERS: usize = 8;

/// Why there is no Ironic to work with. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum MetalFault {
    /// Variables that cannot be used, a line each.
    #[error("{}", lines(.0))]
    Variables(Vec<VariableFault>),
    /// A file for the way to Ironic cannot be used.
    #[error("the way to Ironic")]
    Setup(#[from] SetupError),
}

fn lines(faults: &[VariableFault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// All that hosts need besides the API server.
#[derive(Debug, Clone)]
pub struct Metal {
    /// Ironic.
    pub ironic: Client,
    /// What decisions turn on.
    pub settings: Settings,
    /// The only namespace whose hosts are looked at, where the environment says so.
    pub namespace: Option<String>,
    /// How many provisioned hosts may be torn down in a period.
    pub brake: Brake,
    /// How many hosts may load the provisioning network at once.
    pub slots: usize,
    /// Hosts at once.
    pub workers: usize,
}

impl Metal {
    /// What flags and environment say. Files are read, and nothing is sent.
    ///
    /// # Errors
    /// When a variable or a file cannot be used.
    pub async fn of(
        options: &Options,
        variable: impl Fn(&str) -> Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, MetalFault> {
        let environment = Environment::read(variable, Path::exists).map_err(MetalFault::Variables)?;
        for warning in &environment.warnings {
            tracing::warn!("{warning}");
        }
        if environment.ironic.trust.insecure {
            tracing::warn!("IRONIC_INSECURE: whoever answers is taken for Ironic, and gets its login");
        }
        let ironic = Client::new(environment.ironic, clock).await?;
        let mut node = environment.node;
        node.fake_hardware = options.fake_hardware;
        Ok(Self {
            ironic,
            settings: Settings {
                retries: options.retries,
                node,
            },
            namespace: environment.namespace,
            brake: Brake {
                limit: options.deprovision_budget,
                ..Brake::default()
            },
            slots: environment.slots,
            workers: options.hosts_at_once.or(environment.workers).unwrap_or(WORKERS),
        })
    }
}
