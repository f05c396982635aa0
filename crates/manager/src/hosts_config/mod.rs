//! Configuration of hosts: the Ironic client, and settings of nodes.
//!
//! The environment variables are those of the Go manager. The caller passes them as a function; this module sends no
//! request to Ironic and prints no credentials.

mod environment;

use std::path::Path;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_hosts::ironic_resource::Followed;
use metal3_hosts::ironics::{Ironics, USUAL_NAME};
use metal3_hosts::reconciler::DeprovisionBudget;
use metal3_hosts::settings::{BmcSecrets, Settings};
use metal3_hosts::switches::Outputs;
use metal3_ironic::{Client, SetupError};

use metal3_flags::Options;

pub use environment::{Environment, IronicSource, NamedIronic, VariableError};

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
        "{variable}: the login of Ironic {name:?} would cross the network without encryption over http://; write https://, or allow \
         it by --allow-insecure-ironic"
    )]
    LoginInClear {
        /// The variable with its URL.
        variable: &'static str,
        /// Its name.
        name: String,
    },
    /// A file of the client of an Ironic cannot be used.
    #[error("set up the client of Ironic {name:?}")]
    Setup {
        /// Its name.
        name: String,
        /// Why.
        source: SetupError,
    },
}

fn lines(faults: &[VariableError]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The configuration of hosts.
#[derive(Clone)]
pub struct HostsConfig {
    /// The Ironics.
    pub ironics: Ironics,
    /// The `Ironic` resources that say where some of them are. The name of each is that of its Ironic.
    pub ironic_resources: Vec<Followed>,
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
        if environment.ironics.iter().any(|ironic| ironic.source.trust().insecure) {
            tracing::warn!("IRONIC_INSECURE: any server is accepted as Ironic and receives its credentials");
        }
        let (ironics, ironic_resources) = clients(environment.ironics, options.insecure_ironic, &clock).await?;
        if !ironics.names().is_one() {
            tracing::info!(ironics = %ironics.names(), "hosts name their Ironic by a label; the first one serves the others");
        }
        let mut node = environment.node;
        node.fake_hardware = options.fake_hardware;
        node.bmc_networks = options.bmc_networks.clone();
        Ok(Self {
            ironics,
            ironic_resources,
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

/// A file of one Ironic of several stops its hosts alone.
fn without_files(
    name: &str,
    is_one: bool,
    source: SetupError,
    clock: &Arc<dyn Clock>,
) -> Result<Client, HostsConfigError> {
    let name = name.to_owned();
    if is_one {
        return Err(HostsConfigError::Setup { name, source });
    }
    let why = format!("the files of Ironic {name:?} cannot be used ({source}); correct them and restart this program");
    tracing::error!(why, "nothing is sent to this Ironic");
    Ok(Client::without_destination(why, Arc::clone(clock)))
}

/// The clients of the Ironics, and the resources that they follow.
async fn clients(
    named: Vec<NamedIronic>,
    insecure: bool,
    clock: &Arc<dyn Clock>,
) -> Result<(Ironics, Vec<Followed>), HostsConfigError> {
    let (mut clients, mut resources) = (Vec::new(), Vec::new());
    let is_one = named.len() == 1;
    for NamedIronic { name, source } in named {
        // differs: `ironic-login-encrypted`. The Go manager sends it.
        if source.sends_login_in_clear() && !insecure {
            let variable = match name == USUAL_NAME {
                true => "IRONIC_ENDPOINT",
                false => "IRONIC_ENDPOINTS",
            };
            return Err(HostsConfigError::LoginInClear { variable, name });
        }
        let client = match source {
            IronicSource::Endpoint(settings) => {
                let made = Client::new(settings, Arc::clone(clock)).await;
                made.or_else(|source| without_files(&name, is_one, source, clock))?
            }
            IronicSource::Resource(followed) => {
                let why = format!("Ironic resource {} was not read yet", followed.resource);
                resources.push(Followed {
                    login_in_clear: insecure,
                    ..followed
                });
                Client::without_destination(why, Arc::clone(clock))
            }
        };
        clients.push((name, client));
    }
    let mut clients = clients.into_iter();
    let Some((name, first)) = clients.next() else {
        return Err(HostsConfigError::Variables(Vec::new()));
    };
    Ok((Ironics::new((&name, first), clients.collect()), resources))
}
