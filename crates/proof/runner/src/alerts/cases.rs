//! The cases: what is done to the world, and the alerts that fire.

use metal3_runtime::metrics::Metrics;
use metal3_sandbox::world::Fault;
use metal3_sim_faults::Plan;

use super::faults::{IDLE, OTHER, REFUSED, expiring, failing, idle, leads, no_reads, no_writes, panics, slow, waiting};

/// A case.
pub(super) struct Case {
    /// One word.
    pub(super) name: &'static str,
    /// What happens.
    pub(super) about: &'static str,
    /// The steps.
    pub(super) steps: &'static [Step],
    /// All alerts that fire.
    pub(super) alerts: &'static [&'static str],
    /// Those that fire at the end, if that is compared.
    pub(super) at_the_end: Option<&'static [&'static str]>,
    /// How many hosts of a namespace may be deprovisioned per hour, if not the default.
    pub(super) budget: Option<u32>,
    /// The minutes of a boot, if not the default.
    pub(super) boot: Option<u64>,
}

impl Case {
    const fn budget(self, limit: u32) -> Self {
        Self {
            budget: Some(limit),
            ..self
        }
    }

    const fn boot(self, minutes: u64) -> Self {
        Self {
            boot: Some(minutes),
            ..self
        }
    }

    const fn at_the_end(self, alerts: &'static [&'static str]) -> Self {
        Self {
            at_the_end: Some(alerts),
            ..self
        }
    }
}

/// A step.
pub(super) enum Step {
    /// Adds hosts, after the machine of each got this fault.
    Hosts(u32, Option<Fault>),
    /// Applies the reference cluster with this number of workers, and this last address of its pool.
    Cluster(&'static str, &'static str),
    /// Deletes the cluster.
    DeleteCluster,
    /// Deletes a worker, which is replaced.
    DeleteWorker,
    /// All machines have this fault from now on.
    Fault(Fault),
    /// Scrapes once a minute for this many minutes.
    Minutes(u32),
    /// Prometheus reaches no process for this many minutes.
    Unscraped(u32),
    /// Ironic does not answer for this many minutes.
    IronicDown(u64),
    /// Requests of the products to Ironic fail so.
    Ironic(fn() -> Plan),
    /// Requests of the products to the API server fail so.
    Server(fn() -> Plan),
    /// Sets metrics that no fault of the world changes, at each scrape from now on.
    Registry(fn(&Metrics)),
    /// Gives a host an image, without a machine.
    Image(u32),
    /// Deletes a host.
    DeleteHost(u32),
    /// Another process shows these series, from now on.
    AlsoScraped(&'static str),
    /// Observes the ages of states every five seconds for an hour.
    Hour,
    /// Days without faults: a worker is added and removed each day.
    Days,
}

use Step::{
    AlsoScraped, Cluster, Days, DeleteCluster, DeleteHost, DeleteWorker, Fault as Faulty, Hosts, Image, Ironic,
    IronicDown, Minutes, Registry, Server, Unscraped,
};

const IN_ERROR: &str = "Metal3HostsInError";
const LATE_HOSTS: &str = "Metal3HostsAboveObjective";
const LATE_MACHINES: &str = "Metal3MachinesAboveObjective";
const IRONIC: &str = "Metal3IronicUnreachable";
const IRONIC_ERRORS: &str = "Metal3IronicErrors";
const BUDGET: &str = "Metal3DeprovisionBudgetSpent";
const NO_LEADER: &str = "Metal3NoLeader";

/// The last address of a pool for all machines.
pub(super) const ENOUGH: &str = "192.0.2.200";

const fn enrolment(name: &'static str, about: &'static str, steps: &'static [Step]) -> Case {
    case(name, about, steps, &[LATE_HOSTS, IN_ERROR])
}

pub(super) const fn case(
    name: &'static str,
    about: &'static str,
    steps: &'static [Step],
    alerts: &'static [&'static str],
) -> Case {
    Case {
        name,
        about,
        steps,
        alerts,
        at_the_end: None,
        budget: None,
        boot: None,
    }
}

/// Days without a fault.
pub(super) const CLEAN: Case = case(
    "clean",
    "Days without a fault raise no alert",
    &[
        Hosts(5, None),
        Step::Hour,
        // A host of no machine.
        Image(5),
        Step::Hour,
        DeleteHost(5),
        Step::Hour,
        Cluster("1", ENOUGH),
        Step::Hour,
        Days,
    ],
    &[],
);

/// The cases with a fault. Those of machines are the faults of docs/host-faults.md.
pub(super) const CASES: &[Case] = &[
    enrolment(
        "dead-bmc",
        "A BMC that is not reached",
        &[Hosts(1, None), Hosts(1, Some(Fault::DeadBmc)), Minutes(40)],
    ),
    enrolment(
        "wrong-password",
        "A BMC that rejects the login",
        &[Hosts(1, Some(Fault::WrongPassword)), Minutes(40)],
    ),
    enrolment(
        "bmc-503",
        "A BMC that answers 503",
        &[Hosts(1, Some(Fault::BmcStatus(503))), Minutes(40)],
    ),
    case(
        "slow-bmc",
        "A BMC that takes 30 seconds for an answer is slow, and no fault",
        &[Hosts(1, Some(Fault::SlowBmc(30))), Minutes(40)],
        &[],
    ),
    enrolment(
        "power-stuck",
        "A machine whose power does not change",
        &[Hosts(1, Some(Fault::PowerStuck)), Minutes(90)],
    ),
    enrolment(
        "no-boot",
        "A machine that never boots",
        &[Hosts(1, Some(Fault::NoBoot)), Minutes(90)],
    ),
    enrolment(
        "foreign-mac",
        "A machine with other MAC addresses",
        &[Hosts(1, Some(Fault::ForeignMac)), Minutes(90)],
    ),
    enrolment(
        "inspection-error",
        "A machine whose inventory cannot be collected",
        &[Hosts(1, Some(Fault::InspectionError)), Minutes(90)],
    ),
    case(
        "checksum-mismatch",
        "An image that does not match its checksum",
        &[
            Hosts(1, None),
            Minutes(30),
            Faulty(Fault::ChecksumMismatch),
            Cluster("0", ENOUGH),
            Minutes(120),
        ],
        &[IN_ERROR, LATE_MACHINES],
    ),
    case(
        "disk-too-small",
        "No disk is large enough",
        &[
            Hosts(1, None),
            Minutes(30),
            Faulty(Fault::DiskTooSmall),
            Cluster("0", ENOUGH),
            Minutes(120),
        ],
        &[IN_ERROR, LATE_MACHINES],
    ),
    case(
        "no-heartbeat",
        "An agent that sends no heartbeat during a deployment",
        &[
            Hosts(1, None),
            Minutes(30),
            Faulty(Fault::NoHeartbeat),
            Cluster("0", ENOUGH),
            Minutes(120),
        ],
        &[LATE_HOSTS, IN_ERROR, LATE_MACHINES],
    ),
    case(
        "clean-step-fails",
        "A released host cannot be cleaned",
        &[
            Hosts(1, None),
            Minutes(20),
            Cluster("0", ENOUGH),
            Minutes(20),
            Faulty(Fault::CleanStepFails),
            DeleteCluster,
            Minutes(120),
        ],
        &[LATE_HOSTS, IN_ERROR, LATE_MACHINES],
    ),
    case(
        "no-host",
        "A cluster without hosts",
        &[Cluster("0", ENOUGH), Minutes(140)],
        &["Metal3NoHostForMachine", LATE_MACHINES],
    ),
    case(
        "replace-in-place",
        "A worker is replaced on the only host for it, which takes long to clean, and that is no fault",
        &[
            Hosts(2, None),
            Minutes(40),
            Cluster("1", ENOUGH),
            Minutes(120),
            DeleteWorker,
            Minutes(120),
        ],
        &[],
    )
    .boot(18),
    case(
        "full-pool",
        "A pool with one address for two machines",
        &[Hosts(2, None), Minutes(20), Cluster("1", "192.0.2.100"), Minutes(40)],
        &["Metal3PoolHasNoAddress"],
    ),
    case(
        "refused-claim",
        "A claim that cannot be served, of a pool with free addresses (another process)",
        &[AlsoScraped(REFUSED), Minutes(40)],
        &["Metal3ClaimsWithoutAddress"],
    ),
    case(
        "ironic-down",
        "Ironic does not answer for half an hour",
        &[Hosts(1, None), Minutes(30), IronicDown(30), Minutes(60)],
        &[IRONIC_ERRORS, IRONIC],
    ),
    case(
        "ironic-slow",
        "Ironic takes 15 seconds for an answer",
        &[Hosts(1, None), Minutes(30), Ironic(slow), Minutes(60)],
        &["Metal3IronicSlow"],
    ),
    case(
        "budget-spent",
        "More hosts are released than the budget allows",
        &[
            Hosts(2, None),
            Minutes(20),
            Cluster("1", ENOUGH),
            Minutes(40),
            DeleteCluster,
            // The first one does not count after an hour, and the second one still waits.
            Minutes(80),
        ],
        &[BUDGET],
    )
    .budget(1)
    .at_the_end(&[BUDGET]),
    case(
        "budget-of-zero",
        "A host is released, and each release needs a confirmation",
        &[
            Hosts(1, None),
            Minutes(20),
            Cluster("0", ENOUGH),
            Minutes(40),
            DeleteCluster,
            Minutes(40),
        ],
        &[BUDGET],
    )
    .budget(0)
    .at_the_end(&[BUDGET]),
    case(
        "stale-caches",
        "The API server refuses lists and watches",
        &[Hosts(1, None), Minutes(30), Server(no_reads), Minutes(60)],
        &["Metal3CacheStale"],
    ),
    case(
        "failing-writes",
        "The API server fails at each write",
        &[Server(no_writes), Hosts(1, None), Minutes(90)],
        &[LATE_HOSTS, "Metal3ReconcilesFail"],
    ),
    case(
        "absent",
        "No process is scraped",
        &[Minutes(20), Unscraped(40)],
        &["Metal3ProgramAbsent"],
    ),
    case(
        "panics",
        "A reconcile panics (registry)",
        &[Minutes(5), Registry(panics), Minutes(20)],
        &["Metal3Panics"],
    ),
    case(
        "no-leader",
        "No process holds the lease (registry)",
        &[Registry(idle), Minutes(20)],
        &[NO_LEADER],
    ),
    case(
        "one-without-leader",
        "Of two installations one has no leader (registry)",
        &[Registry(leads), AlsoScraped(IDLE), Minutes(20)],
        &[NO_LEADER],
    ),
    case(
        "one-absent",
        "The process of other controllers is gone (another process)",
        &[
            Minutes(5),
            AlsoScraped(OTHER),
            Minutes(20),
            AlsoScraped(""),
            Minutes(40),
        ],
        &["Metal3ControllersAbsent"],
    ),
    case(
        "busy-workers",
        "An object waits for a worker (registry)",
        &[Registry(waiting), Minutes(20)],
        &["Metal3QueueStuck"],
    ),
    case(
        "certificate",
        "A certificate that is not renewed (registry)",
        &[Registry(expiring), Minutes(90)],
        &["Metal3CertificateExpires"],
    ),
    case(
        "webhooks",
        "A webhook that fails (registry)",
        &[Registry(failing), Minutes(40)],
        &["Metal3WebhooksFail"],
    ),
];
