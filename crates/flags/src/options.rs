//! What the flags say, in types.

use std::path::PathBuf;
use std::time::Duration;

use super::flag::Owner;
use super::parse::{FlagFault, Given};
use super::span;

/// Where the certificate of the webhook server comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// Files that somebody else keeps.
    Mounted,
    /// This program.
    SelfManaged,
}

/// How leases are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Election {
    /// How long others wait for a leader that is silent.
    pub lease: Duration,
    /// How long a leader goes on that cannot renew.
    pub renew_deadline: Duration,
    /// The pause between attempts.
    pub retry: Duration,
}

/// What servers offer. Judged by the TLS library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Oldest version.
    pub min_version: String,
    /// Newest version; empty for the newest there is.
    pub max_version: String,
    /// Suites; empty for all.
    pub cipher_suites: Vec<String>,
    /// Key exchanges; empty for all.
    pub curves: Vec<String>,
}

/// How many objects of each kind the controllers of clusters and machines work on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnce {
    /// Metal3Clusters.
    pub clusters: usize,
    /// Metal3Machines.
    pub machines: usize,
    /// Metal3DataTemplates.
    pub templates: usize,
    /// Metal3Data.
    pub data: usize,
}

/// The Deployment of a Go manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDeployment {
    /// The controllers it runs.
    pub controllers: Owner,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Everything a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Which controllers run.
    pub controllers: Vec<Owner>,
    /// The only namespace that is looked at; nothing for all.
    pub namespace: Option<String>,
    /// The only watch filter that is looked at; nothing for all.
    pub watch_filter: Option<String>,
    /// File that says where the API server is; nothing in a Pod.
    pub kubeconfig: Option<PathBuf>,
    /// Requests a second and how many at once; nothing for no limit.
    pub pace: Option<(f64, u32)>,
    /// The same for each workload cluster.
    pub workload_pace: Option<(f64, u32)>,
    /// How leases are timed; nothing for no election.
    pub election: Option<Election>,
    /// Pools worked on at once.
    pub pools_at_once: usize,
    /// Objects of clusters and machines worked on at once.
    pub at_once: AtOnce,
    /// Whether claims on IPPools are named after the host; after the Metal3Data otherwise.
    pub names_claims_by_host: bool,
    /// Hosts worked on at once; nothing where the environment may say.
    pub hosts_at_once: Option<usize>,
    /// How often the deployment of one image on one host is tried; nought for ever.
    pub retries: u32,
    /// How many provisioned hosts of a namespace may be torn down in an hour.
    pub deprovision_budget: u32,
    /// Whether a Cluster adopts a Metal3Cluster for its name.
    pub adopts_namesakes: bool,
    /// Whether control planes that sleep are woken.
    pub nudges: bool,
    /// Whether hosts without a machine are let in.
    pub fake_hardware: bool,
    /// Where probes are served.
    pub health: Option<String>,
    /// Where metrics are served.
    pub diagnostics: Option<String>,
    /// Whether metrics are served to everybody.
    pub insecure_diagnostics: bool,
    /// Where webhooks are served.
    pub webhook_port: Option<u16>,
    /// Folder of the mounted certificate.
    pub webhook_folder: PathBuf,
    /// Where the certificate comes from.
    pub certificates: CertificateSource,
    /// What servers offer.
    pub tls: Tls,
    /// `text` or `json`.
    pub log_format: String,
    /// As `--v` has it.
    pub log_level: String,
    /// Whether nothing is written.
    pub observe_only: bool,
    /// Whether other managers are not looked for.
    pub force: bool,
    /// Where other managers are looked for; one that is not named runs where its release installs it.
    pub foreign: Vec<ForeignDeployment>,
    /// What the log has to say about the flags.
    pub warnings: Vec<String>,
}

impl Options {
    pub(super) fn of(given: &Given) -> Result<Self, Vec<FlagFault>> {
        let mut reader = Reader {
            given,
            faults: Vec::new(),
        };
        let options = reader.options();
        reader.refuse_contradictions(&options);
        match reader.faults.is_empty() {
            true => Ok(options),
            false => Err(reader.faults),
        }
    }
}

/// Reads values one by one and keeps what is wrong with them.
struct Reader<'a> {
    given: &'a Given,
    faults: Vec<FlagFault>,
}

impl Reader<'_> {
    fn options(&mut self) -> Options {
        let given = self.given;
        Options {
            controllers: self.controllers(),
            namespace: some(given.text("namespace")),
            watch_filter: some(given.text("watch-filter")),
            kubeconfig: some(given.text("kubeconfig")).map(PathBuf::from),
            pace: self.pace("kube-api-qps", "kube-api-burst"),
            workload_pace: self.pace("clustercache-client-qps", "clustercache-client-burst"),
            election: given.switch("leader-elect").then(|| self.election()),
            pools_at_once: self.workers("ippool-concurrency"),
            at_once: AtOnce {
                clusters: self.workers("metal3cluster-concurrency"),
                machines: self.workers("metal3machine-concurrency"),
                templates: self.workers("metal3datatemplate-concurrency"),
                data: self.workers("metal3data-concurrency"),
            },
            names_claims_by_host: given.switch("enable-bmh-name-based-preallocation"),
            hosts_at_once: self
                .number("controller-concurrency", 0..=10_000)
                .filter(|workers| *workers != 0),
            retries: self.count("max-provisioning-retries"),
            deprovision_budget: self.count("deprovision-budget"),
            adopts_namesakes: given.switch("adopt-same-name-clusters"),
            nudges: given.switch("nudge-control-plane"),
            fake_hardware: given.switch("lab-fake-hardware"),
            health: address(given.text("health-addr")),
            diagnostics: address(given.text("diagnostics-address")),
            insecure_diagnostics: given.switch("insecure-diagnostics"),
            webhook_port: self.number("webhook-port", 0..=65_535).and_then(port),
            webhook_folder: given.text("webhook-cert-dir").into(),
            certificates: self.certificates(),
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

    /// What cannot be kept together.
    fn refuse_contradictions(&mut self, options: &Options) {
        if options.controllers.contains(&Owner::Hosts) {
            self.refuse_for_hosts(options);
        }
        if options.observe_only && options.certificates == CertificateSource::SelfManaged {
            self.faults.push(FlagFault::Refused {
                flag: "webhook-certificates",
                why: "self-managed certificates are written into a Secret and into webhook configurations, and \
                      --observe-only writes nothing; mount a certificate, or serve metrics without one by \
                      --insecure-diagnostics, or none by --diagnostics-address=0"
                    .to_owned(),
            });
        }
    }

    /// What narrows other controllers must not be taken for a fence around hosts.
    fn refuse_for_hosts(&mut self, options: &Options) {
        if options.watch_filter.is_some() {
            self.faults.push(FlagFault::Refused {
                flag: "watch-filter",
                why:
                    "the controllers hosts look at every host whatever its labels, as their Go manager does; run them \
                      in a process of their own, without it"
                        .to_owned(),
            });
        }
        // differs (`hosts-one-namespace`): the Go manager takes a list.
        if let Some(namespace) = options.namespace.as_ref().filter(|name| name.contains(',')) {
            self.wrong(
                "namespace",
                namespace.clone(),
                "one namespace; leave it empty for all, or run a process for each",
            );
        }
    }

    fn controllers(&mut self) -> Vec<Owner> {
        let mut found = Vec::new();
        for name in self.given.list("controllers") {
            match Owner::ALL.into_iter().find(|owner| owner.name() == name) {
                Some(owner) if !found.contains(&owner) => found.push(owner),
                Some(_) => {}
                None => self.wrong("controllers", name, "one of ipam, capm3, hosts"),
            }
        }
        // differs (`controllers-required`): the Go managers are three programs, and none of them is the usual one.
        if found.is_empty() && self.faults.is_empty() {
            self.faults.push(FlagFault::Refused {
                flag: "controllers",
                why:
                    "says which controllers run, and has no default; write --controllers=ipam, --controllers=capm3 or \
                      --controllers=hosts, or several of them"
                        .to_owned(),
            });
        }
        found
    }

    fn foreign(&mut self) -> Vec<ForeignDeployment> {
        let mut found: Vec<ForeignDeployment> = Vec::new();
        for item in self.given.list("foreign-deployments") {
            match place(&item) {
                Some(foreign) if found.iter().all(|known| known.controllers != foreign.controllers) => {
                    found.push(foreign)
                }
                Some(_) | None => self.wrong(
                    "foreign-deployments",
                    item,
                    "one CONTROLLERS=NAMESPACE/NAME for each of ipam, capm3, hosts at most",
                ),
            }
        }
        found
    }

    /// differs (`flags-pace`): the Go managers pace themselves unless they are told not to.
    fn pace(&mut self, rate: &'static str, burst: &'static str) -> Option<(f64, u32)> {
        let text = self.given.text(rate);
        let burst = self.number(burst, 1..=1_000_000)?;
        let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0)?;
        Some((rate, u32::try_from(burst).ok()?))
    }

    fn election(&mut self) -> Election {
        Election {
            lease: self.span("leader-elect-lease-duration"),
            renew_deadline: self.span("leader-elect-renew-deadline"),
            retry: self.span("leader-elect-retry-period"),
        }
    }

    fn certificates(&mut self) -> CertificateSource {
        match self.given.text("webhook-certificates").as_str() {
            "mounted" => CertificateSource::Mounted,
            "self-managed" => CertificateSource::SelfManaged,
            other => {
                self.wrong("webhook-certificates", other.to_owned(), "mounted or self-managed");
                CertificateSource::Mounted
            }
        }
    }

    /// A whole number in a range.
    fn number(&mut self, flag: &'static str, range: std::ops::RangeInclusive<usize>) -> Option<usize> {
        let text = self.given.text(flag);
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong(flag, text, &wanted);
        }
        number
    }

    /// How many are worked on at once.
    fn workers(&mut self, flag: &'static str) -> usize {
        self.number(flag, 1..=10_000).unwrap_or(1)
    }

    /// A number of things or times.
    fn count(&mut self, flag: &'static str) -> u32 {
        let number = self.number(flag, 0..=1_000_000);
        number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    }

    /// Checked when it was read.
    fn span(&self, flag: &'static str) -> Duration {
        span::parse(&self.given.text(flag)).unwrap_or_default()
    }

    fn wrong(&mut self, flag: &'static str, value: String, wanted: &str) {
        self.faults.push(FlagFault::Value {
            flag,
            value,
            wanted: wanted.to_owned(),
        });
    }
}

/// Reads `ipam=namespace/name`.
fn place(item: &str) -> Option<ForeignDeployment> {
    let (group, rest) = item.split_once('=')?;
    let (namespace, name) = rest.split_once('/')?;
    let controllers = Owner::ALL.into_iter().find(|owner| owner.name() == group)?;
    let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_whole.then(|| ForeignDeployment {
        controllers,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// `0` is how the Go managers say that nothing is to be served.
fn address(text: String) -> Option<String> {
    some(text).filter(|text| text != "0")
}

fn port(number: usize) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port != 0)
}
