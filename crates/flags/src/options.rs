//! Typed options.

use std::path::PathBuf;
use std::time::Duration;

use metal3_domain::allowed::Allowed;
use metal3_domain::objectives::Objectives;

use super::contradictions;
use super::flag::Owner;
use super::foreign::{self, ForeignDeployment};
use super::objectives;
use super::parse::{FlagError, Given, port};
use super::span;

/// Source of the certificate of the webhook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// Files that cert-manager or the user maintains.
    Mounted,
    /// Created and renewed by this program.
    SelfManaged,
}

/// Secrets that a host may name as the login of its BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BmcSecrets {
    /// Those with the label for it, and those in use before.
    Labelled,
    /// Any of the namespace.
    Any,
}

/// Timing of leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Election {
    /// Lease duration.
    pub lease: Duration,
    /// Time after which a leader that cannot renew stops.
    pub renew_deadline: Duration,
    /// Pause between attempts.
    pub retry: Duration,
}

/// TLS settings of the servers, validated by the TLS library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Minimum version.
    pub min_version: String,
    /// Maximum version; empty for the newest.
    pub max_version: String,
    /// Cipher suites; empty for all.
    pub cipher_suites: Vec<String>,
    /// Key exchanges; empty for all.
    pub curves: Vec<String>,
}

/// Numbers of concurrent reconciles of the capm3 controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnce {
    /// Metal3Clusters.
    pub clusters: usize,
    /// Metal3Machines.
    pub machines: usize,
    /// Metal3MachineTemplates.
    pub machine_templates: usize,
    /// Metal3DataTemplates.
    pub templates: usize,
    /// Metal3Data.
    pub data: usize,
    /// Metal3Remediations.
    pub remediations: usize,
}

/// Options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Enabled controllers.
    pub controllers: Vec<Owner>,
    /// Watched namespace; `None` for all.
    pub namespace: Option<String>,
    /// Value of the watch-filter label; `None` for no filter.
    pub watch_filter: Option<String>,
    /// Kubeconfig; `None` in a Pod.
    pub kubeconfig: Option<PathBuf>,
    /// Requests per second and burst; `None` for no limit.
    pub pace: Option<(f64, u32)>,
    /// The same for each workload cluster.
    pub workload_pace: Option<(f64, u32)>,
    /// Leader election; `None` when disabled.
    pub election: Option<Election>,
    /// Concurrent reconciles of pools.
    pub pools_at_once: usize,
    /// Concurrent reconciles of the capm3 controllers.
    pub at_once: AtOnce,
    /// Whether claims on IPPools are named after the host; after the Metal3Data otherwise.
    pub names_claims_by_host: bool,
    /// Concurrent reconciles of hosts; `None` to use the environment.
    pub hosts_at_once: Option<usize>,
    /// Maximum deployment attempts of one image on one host; 0 for no limit.
    pub retries: u32,
    /// Whether an image of the agent is built for each host.
    pub builds_agent_images: bool,
    /// Whether HostClaims are served.
    pub serves_claims: bool,
    /// Whether a node is a host's also by the host's name without the namespace.
    pub plain_node_names: bool,
    /// Secrets that a host may name as the login of its BMC.
    pub bmc_secrets: BmcSecrets,
    /// Allowed hosts of images and checksums.
    pub image_hosts: Allowed,
    /// Allowed networks of BMCs.
    pub bmc_networks: Allowed,
    /// Allowed API servers of workload clusters.
    pub workload_endpoints: Allowed,
    /// Maximum number of provisioned hosts of a namespace that are deprovisioned per hour.
    pub deprovision_budget: u32,
    /// Whether a Metal3Cluster joins the Cluster with its name.
    pub adopts_namesakes: bool,
    /// Whether idle Kamaji control planes are woken by an annotation.
    pub wakes_control_planes: bool,
    /// Whether workload clusters of other providers' control planes are looked at before machines join them.
    pub looks_before_joins: bool,
    /// Whether the login of Ironic may be sent without encryption.
    pub insecure_ironic: bool,
    /// Whether fake hosts are accepted.
    pub fake_hardware: bool,
    /// How long hosts and machines stay in each state at most.
    pub objectives: Objectives,
    /// Address of the probes.
    pub health: Option<String>,
    /// Address of the metrics.
    pub diagnostics: Option<String>,
    /// Whether metrics need no authentication.
    pub insecure_diagnostics: bool,
    /// Port of the webhooks.
    pub webhook_port: Option<u16>,
    /// Folder of the mounted certificate.
    pub webhook_folder: PathBuf,
    /// Source of the certificate.
    pub certificates: CertificateSource,
    /// CA of the client certificates of webhooks.
    pub webhook_client_ca: Option<PathBuf>,
    /// Accepted common names of these certificates.
    pub webhook_client_names: Vec<String>,
    /// TLS settings of the servers.
    pub tls: Tls,
    /// `text` or `json`.
    pub log_format: String,
    /// Log level as in `--v`.
    pub log_level: String,
    /// Whether writes are only logged.
    pub observe_only: bool,
    /// Whether the check for Go managers is skipped.
    pub force: bool,
    /// Deployments of Go managers to check; by default those of their releases.
    pub foreign: Vec<ForeignDeployment>,
    /// Warnings to log about flags.
    pub warnings: Vec<String>,
}

impl Options {
    pub(super) fn of(given: &Given) -> Result<Self, Vec<FlagError>> {
        let mut reader = Reader {
            given,
            errors: Vec::new(),
        };
        let options = reader.options();
        reader.errors.extend(contradictions::errors(&options));
        match reader.errors.is_empty() {
            true => Ok(options),
            false => Err(reader.errors),
        }
    }
}

/// Reads values and collects errors.
struct Reader<'a> {
    given: &'a Given,
    errors: Vec<FlagError>,
}

impl Reader<'_> {
    fn options(&mut self) -> Options {
        let given = self.given;
        Options {
            controllers: self.controllers(),
            namespace: non_empty(given.text("namespace")),
            watch_filter: non_empty(given.text("watch-filter")),
            kubeconfig: non_empty(given.text("kubeconfig")).map(PathBuf::from),
            pace: self.pace("kube-api-qps", "kube-api-burst"),
            workload_pace: self.pace("clustercache-client-qps", "clustercache-client-burst"),
            election: Some(self.election()).filter(|_| given.switch("leader-elect")),
            pools_at_once: self.workers("ippool-concurrency"),
            at_once: AtOnce {
                clusters: self.workers("metal3cluster-concurrency"),
                machines: self.workers("metal3machine-concurrency"),
                machine_templates: self.workers("metal3machinetemplate-concurrency"),
                templates: self.workers("metal3datatemplate-concurrency"),
                data: self.workers("metal3data-concurrency"),
                remediations: self.workers("metal3remediation-concurrency"),
            },
            names_claims_by_host: given.switch("enable-bmh-name-based-preallocation"),
            hosts_at_once: self
                .number("controller-concurrency", 0..=10_000)
                .filter(|workers| *workers != 0),
            retries: self.count("max-provisioning-retries"),
            builds_agent_images: given.switch("build-preprov-image"),
            serves_claims: given.switch("hostclaims"),
            plain_node_names: given.switch("adopt-plain-node-names"),
            bmc_secrets: self.bmc_secrets(),
            image_hosts: self.allowed("allowed-image-hosts"),
            bmc_networks: self.allowed_networks("allowed-bmc-networks"),
            workload_endpoints: self.allowed("allowed-workload-endpoints"),
            deprovision_budget: self.count("deprovision-budget"),
            adopts_namesakes: given.switch("adopt-same-name-clusters"),
            wakes_control_planes: given.switch("nudge-control-plane"),
            looks_before_joins: given.switch("join-preflight"),
            insecure_ironic: given.switch("allow-insecure-ironic"),
            fake_hardware: given.switch("lab-fake-hardware"),
            objectives: self.objectives(),
            health: address(given.text("health-addr")),
            diagnostics: address(given.text("diagnostics-address")),
            insecure_diagnostics: given.switch("insecure-diagnostics"),
            webhook_port: self.number("webhook-port", 0..=65_535).and_then(port),
            webhook_folder: given.text("webhook-cert-dir").into(),
            certificates: self.certificates(),
            webhook_client_ca: non_empty(given.text("webhook-client-ca-file")).map(PathBuf::from),
            webhook_client_names: given.list("webhook-client-names"),
            tls: Tls {
                min_version: given.text("tls-min-version"),
                max_version: given.text("tls-max-version"),
                cipher_suites: given.list("tls-cipher-suites"),
                curves: given.list("tls-curve-preferences"),
            },
            log_format: given.text("logging-format"),
            log_level: given.text("v"),
            observe_only: given.switch("observe-only"),
            force: given.switch("force-controllers"),
            foreign: self.foreign(),
            warnings: given.warnings().to_vec(),
        }
    }

    fn controllers(&mut self) -> Vec<Owner> {
        let mut found = Vec::new();
        for name in self.given.list("controllers") {
            match Owner::ALL.into_iter().find(|owner| owner.name() == name) {
                Some(owner) if !found.contains(&owner) => found.push(owner),
                Some(_) => {}
                None => self.invalid("controllers", name, "one of ipam, capm3, hosts"),
            }
        }
        // differs (`controllers-required`): the Go managers are three programs, and none of them is the usual one.
        if found.is_empty() && self.errors.is_empty() {
            self.errors.push(FlagError::Refused {
                flag: "controllers",
                why:
                    "is required; write --controllers=ipam, --controllers=capm3 or --controllers=hosts, or several of them"
                        .to_owned(),
            });
        }
        found
    }

    fn foreign(&mut self) -> Vec<ForeignDeployment> {
        let mut found: Vec<ForeignDeployment> = Vec::new();
        for item in self.given.list("foreign-deployments") {
            match foreign::parse(&item) {
                Some(foreign) if found.iter().all(|known| known.controllers != foreign.controllers) => {
                    found.push(foreign)
                }
                Some(_) | None => self.invalid(
                    "foreign-deployments",
                    item,
                    "one CONTROLLERS=NAMESPACE/NAME for each of ipam, capm3, hosts at most",
                ),
            }
        }
        found
    }

    fn objectives(&mut self) -> Objectives {
        let mut replaced = Objectives::default();
        for item in self.given.list("state-objectives") {
            if !objectives::replace(&mut replaced, &item) {
                let wanted = "host/STATE=DURATION or machine/STATE=DURATION, such as host/inspecting=40m, with a state of \
                              docs/metrics.md";
                self.invalid("state-objectives", item, wanted);
            }
        }
        replaced
    }

    /// differs (`flags-pace`): the Go managers limit their requests by default.
    fn pace(&mut self, rate: &'static str, burst: &'static str) -> Option<(f64, u32)> {
        let text = self.given.text(rate);
        let burst = self.number(burst, 1..=1_000_000)?;
        let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0)?;
        Some((rate, u32::try_from(burst).ok()?))
    }

    fn election(&mut self) -> Election {
        Election {
            lease: self.seconds_or_span("lease-duration-seconds", "leader-elect-lease-duration"),
            renew_deadline: self.seconds_or_span("renew-deadline-seconds", "leader-elect-renew-deadline"),
            retry: self.seconds_or_span("retry-period-seconds", "leader-elect-retry-period"),
        }
    }

    fn certificates(&mut self) -> CertificateSource {
        match self.given.text("webhook-certificates").as_str() {
            "mounted" => CertificateSource::Mounted,
            "self-managed" => CertificateSource::SelfManaged,
            other => {
                self.invalid("webhook-certificates", other.to_owned(), "mounted or self-managed");
                CertificateSource::Mounted
            }
        }
    }

    fn bmc_secrets(&mut self) -> BmcSecrets {
        match self.given.text("bmc-secrets").as_str() {
            "labelled" => BmcSecrets::Labelled,
            "any" => BmcSecrets::Any,
            other => {
                self.invalid("bmc-secrets", other.to_owned(), "labelled or any");
                BmcSecrets::Labelled
            }
        }
    }

    fn allowed(&mut self, flag: &'static str) -> Allowed {
        let entries = self.given.list(flag);
        Allowed::parse(entries.iter().map(String::as_str)).unwrap_or_else(|entry| {
            let wanted = "a network such as 192.0.2.0/24, an address, a host name, or a domain such as .example.org";
            self.invalid(flag, entry.to_owned(), wanted);
            Allowed::default()
        })
    }

    fn allowed_networks(&mut self, flag: &'static str) -> Allowed {
        let entries = self.given.list(flag);
        Allowed::parse_networks(entries.iter().map(String::as_str)).unwrap_or_else(|entry| {
            self.invalid(flag, entry.to_owned(), "a network such as 192.0.2.0/24, or an address");
            Allowed::default()
        })
    }

    fn number(&mut self, flag: &'static str, range: std::ops::RangeInclusive<usize>) -> Option<usize> {
        let text = self.given.text(flag);
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.invalid(flag, text, &wanted);
        }
        number
    }

    fn workers(&mut self, flag: &'static str) -> usize {
        self.number(flag, 1..=10_000).unwrap_or(1)
    }

    fn count(&mut self, flag: &'static str) -> u32 {
        let number = self.number(flag, 0..=1_000_000);
        number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    }

    /// A duration in seconds by the first flag, or by the second if the first is empty.
    fn seconds_or_span(&mut self, seconds: &'static str, span: &'static str) -> Duration {
        if self.given.text(seconds).is_empty() {
            return self.span(span);
        }
        let number = self.number(seconds, 1..=32_767);
        Duration::from_secs(number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
    }

    /// A duration; its syntax was checked before.
    fn span(&self, flag: &'static str) -> Duration {
        span::parse(&self.given.text(flag)).unwrap_or_default()
    }

    fn invalid(&mut self, flag: &'static str, value: String, wanted: &str) {
        self.errors.push(FlagError::Value {
            flag,
            value,
            wanted: wanted.to_owned(),
        });
    }
}

fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The Go managers disable a server by `0`.
fn address(text: String) -> Option<String> {
    non_empty(text).filter(|text| text != "0")
}
