//! Configuration of hosts: the Ironic client, and settings of nodes.
//!
//! The environment variables are those of the Go manager. The caller passes them as a function; this module sends no
//! request to Ironic and prints no credentials.

mod environment;

use std::path::Path;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_hosts::ironic_resource::Followed;
use metal3_hosts::reconciler::DeprovisionBudget;
use metal3_hosts::settings::{BmcSecrets, Settings};
use metal3_hosts::switches::Outputs;
use metal3_ironic::{Client, SetupError};

use metal3_flags::Options;

pub use environment::{Environment, IronicSource, VariableError};

/// Default number of parallel reconciles: the number of parallel requests to Ironic.
const WORKERS: usize = 8;

/// Why the configuration cannot be used. Each message contains an instruction.
#[derive(Debug, thiserror::Error)]
pub enum HostsConfigError {
    /// Invalid variables, one per line.
    #[error("{}", lines(.0))]
    Variables(Vec<VariableError>),
    /// The login of Ironic would be sent without encryption.
    #[error(
        "IRONIC_ENDPOINT: the login of Ironic would cross the network without encryption over http://; write https://, or allow it \
         by --allow-insecure-ironic"
    )]
    LoginInClear,
    /// A file of the Ironic client cannot be used.
    #[error("set up the Ironic client")]
    Setup(#[from] SetupError),
}

fn lines(faults: &[VariableError]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The configuration of hosts.
#[derive(Clone)]
pub struct HostsConfig {
    /// Ironic.
    pub ironic: Client,
    /// The `Ironic` resource that says where it is, if the environment names one.
    pub ironic_resource: Option<Followed>,
    /// Settings of decisions.
    pub settings: Settings,
    /// Where the switches are written, if they are configured.
    pub switches: Option<Outputs>,
    /// The only watched namespace, if the environment sets one.
    pub namespace: Option<String>,
    /// How many provisioned hosts may be deprovisioned in a period.
    pub deprovision_budget: DeprovisionBudget,
    /// How many hosts may load the provisioning network at once.
    pub slots: usize,
    /// Parallel reconciles.
    pub workers: usize,
}

impl HostsConfig {
    /// Reads flags, environment and files. Sends no request.
    ///
    /// # Errors
    /// When a variable or a file cannot be used.
    pub async fn of(
        options: &Options,
        variable: impl Fn(&str) -> Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HostsConfigError> {
        let environment = Environment::read_for(variable, Path::exists, options.builds_agent_images)
            .map_err(HostsConfigError::Variables)?;
        for warning in &environment.warnings {
            tracing::warn!("{warning}");
        }
        if environment.ironic.trust().insecure {
            tracing::warn!("IRONIC_INSECURE: any server is accepted as Ironic and receives its credentials");
        }
        // differs: `ironic-login-encrypted`. The Go manager sends it.
        if environment.ironic.sends_login_in_clear() && !options.insecure_ironic {
            return Err(HostsConfigError::LoginInClear);
        }
        let (ironic, ironic_resource) = match environment.ironic {
            IronicSource::Endpoint(settings) => (Client::new(settings, clock).await?, None),
            IronicSource::Resource(followed) => {
                let why = format!("Ironic resource {} was not read yet", followed.resource);
                let login_in_clear = options.insecure_ironic;
                (
                    Client::without_destination(why, clock),
                    Some(Followed {
                        login_in_clear,
                        ..followed
                    }),
                )
            }
        };
        let mut node = environment.node;
        node.fake_hardware = options.fake_hardware;
        node.bmc_networks = options.bmc_networks.clone();
        Ok(Self {
            ironic,
            ironic_resource,
            settings: Settings {
                retries: options.retries,
                plain_node_names: options.plain_node_names,
                bmc_secrets: match options.bmc_secrets {
                    metal3_flags::BmcSecrets::Labelled => BmcSecrets::Labelled,
                    metal3_flags::BmcSecrets::Any => BmcSecrets::Any,
                },
                builds_agent_images: options.builds_agent_images,
                image_hosts: options.image_hosts.clone(),
                feed_recheck: metal3_hosts::settings::FEED_RECHECK,
                node,
            },
            switches: environment.switches,
            namespace: environment.namespace,
            deprovision_budget: DeprovisionBudget {
                limit: options.deprovision_budget,
                ..DeprovisionBudget::default()
            },
            slots: environment.slots,
            workers: options.hosts_at_once.or(environment.workers).unwrap_or(WORKERS),
        })
    }
}
