//! Crash sweep: each fault at each request to Ironic and at each write to the API server of the reference life cycle, and of
//! lives with other images and another inspection.
//! The machine is written once and never erased while its host is provisioned, no destructive request has two effects,
//! and the final state is the same as without a fault.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::ProvisioningState;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use crate::env::{CONTROLLER_USER, PASSWORD, Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, SOURCE};

/// An image of a registry, with a login.
const OF_REGISTRY: &str = "oci://registry.example/team/os:v1";
const LIVE: &str = "http://images.example/live.iso";

/// The life of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Reference,
    /// Its image is of a registry with a login.
    Registry,
    /// Its image is booted from a virtual drive, and its disk is never written.
    Live,
    /// Its BMC inspects it.
    Fast,
}

impl Life {
    async fn begin(self, phase: Phase, env: &TestEnv) {
        let image = match self {
            Self::Reference | Self::Fast => Value::Null,
            Self::Registry => json!({ "url": OF_REGISTRY, "ociAuthSecretName": "registry" }),
            Self::Live => json!({ "url": LIVE, "format": "live-iso" }),
        };
        match phase {
            Phase::Enrol if self == Self::Fast => env.host(1, json!({ "inspectionMode": "fast" })).await,
            Phase::Provision if !image.is_null() => env.edit(1, json!({ "spec": { "image": image } })).await,
            phase => phase.begin(env, 1).await,
        }
    }

    async fn prepare(self, env: &TestEnv) {
        if self != Self::Registry {
            return;
        }
        let login = format!("u:{PASSWORD}");
        env.ironic.require_login("registry.example", &login);
        let logins = json!({ "auths": { "registry.example": { "username": "u", "password": PASSWORD } } });
        let logins = json!({ ".dockerconfigjson": logins.to_string() });
        let secret = json!({ "metadata": { "name": "registry" }, "type": "kubernetes.io/dockerconfigjson",
            "stringData": logins });
        env.make::<Secret>(secret).await;
    }

    /// The image on the disk, and the one in the virtual drive, while the host is provisioned.
    const fn runs(self) -> (Option<&'static str>, Option<&'static str>) {
        match self {
            Self::Reference | Self::Fast => (Some(SOURCE), None),
            Self::Registry => (Some(OF_REGISTRY), None),
            Self::Live => (None, Some(LIVE)),
        }
    }
}

/// Every n-th case runs, unless the variable requests all.
const EVERY: usize = 30;
const ALL: &str = "METAL3_HOSTS_EVERY_CASE";
/// Destructive requests, and how often a life cycle performs them at most.
const DESTRUCTIVE: [(&str, usize); 3] = [
    ("PUT nodes/_/states/provision active", 1),
    ("PUT nodes/_/states/provision deleted", 1),
    ("DELETE nodes/_", 1),
];

/// A kind of write: verb and resource.
type WriteKind = (&'static str, &'static str);
const STATUS: WriteKind = ("patch", "baremetalhosts/status");
const OTHERS: [WriteKind; 4] = [
    ("patch", "baremetalhosts"),
    ("patch", "secrets"),
    ("create", "hardwaredata"),
    ("patch", "hardwaredata"),
];
/// The faults of a write.
pub(crate) const FAULTS: [Fault; 5] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::ReplyLost,
    Fault::Conflict,
    Fault::Refused {
        code: 500,
        retry_after: None,
    },
];

#[derive(Debug, Clone, Copy)]
enum Case {
    NoFault,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, IronicFault),
    /// The n-th write of a kind, counted from 1.
    Write(WriteKind, u64, Fault),
}

struct Counts {
    requests: usize,
    writes: BTreeMap<WriteKind, u64>,
}

async fn run_lifecycle(life: Life, case: Case) -> Counts {
    let env = TestEnv::new(Setup::default());
    life.prepare(&env).await;
    match case {
        Case::NoFault => {}
        Case::Ironic(at, fault) => env.interceptor.log().fault = Some((at, fault)),
        Case::Write((verb, resource), at, fault) => {
            let rule = Rule::at(at, fault).verb(verb).resource(resource);
            env.cluster.inject(Plan::none().with(rule));
        }
    }
    for phase in Phase::ALL {
        life.begin(phase, &env).await;
        phase.end(&env, 1).await;
        check(&env, (life, phase), case).await;
    }
    assert!(env.node(1).await.is_none(), "{case:?}: a node is left");
    let log = env.interceptor.log();
    let is_injected = matches!(case, Case::Ironic(..));
    assert_eq!(log.injected, is_injected, "{case:?} at a request that was not made");
    for (what, most) in DESTRUCTIVE {
        let done = log.done.get(what).copied().unwrap_or_default();
        assert!(done <= most, "{case:?}: {what} was done {done} times: {:#?}", log.asked);
    }
    Counts {
        requests: log.asked.len(),
        writes: OTHERS
            .into_iter()
            .chain([STATUS])
            .map(|(verb, resource)| {
                (
                    (verb, resource),
                    env.cluster.audit().of(CONTROLLER_USER, verb, resource),
                )
            })
            .collect(),
    }
}

async fn check(env: &TestEnv, (life, phase): (Life, Phase), case: Case) {
    let keeps = phase == Phase::Provision;
    let (disk, drive) = life.runs();
    let written = u32::from(phase != Phase::Enrol && disk.is_some());
    env.machine(1, |machine| {
        assert_eq!(machine.counts.written, written, "{case:?}, {phase:?}");
        let source = machine.disk.as_ref().map(|disk| disk.source.as_str());
        assert_eq!(source, disk.filter(|_| keeps), "{case:?}, {phase:?}");
        assert_eq!(machine.media.as_deref(), drive.filter(|_| keeps), "{case:?}, {phase:?}");
    });
    let shown = format!("{:?} {}", env.get(1).await, env.events());
    assert!(!shown.contains(PASSWORD), "{case:?}, {phase:?}: the password is shown");
    if let Some(host) = env.get(1).await {
        let is_provisioned = host.status.provisioning.state == ProvisioningState::Provisioned;
        assert_eq!(is_provisioned, keeps, "{case:?}, {phase:?}");
        assert_eq!(
            host.status.error_count, 0,
            "{case:?}, {phase:?}: no failure of the machine"
        );
    }
}

/// Runs every n-th case, or all if the variable is set.
#[expect(clippy::print_stdout, reason = "the figures are for the test log")]
async fn run_cases(life: Life, all: &[Case]) {
    let every = if std::env::var_os(ALL).is_some() { 1 } else { EVERY };
    // Another life begins with another case.
    let skipped = match life {
        Life::Reference => 0,
        Life::Registry => 5,
        Life::Live => 11,
        Life::Fast => 17,
    };
    let run: Vec<_> = all.iter().copied().skip(skipped % every).step_by(every).collect();
    println!("{life:?}: {} cases, {} run ({ALL}=1 for all)", all.len(), run.len());
    for case in run {
        run_lifecycle(life, case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_ironic_requests_neither_repeat_writes_nor_lose_the_machine() {
    let all = requests(Life::Reference).await;
    assert_eq!(all.len(), 23 * 8);
    run_cases(Life::Reference, &all).await;
}

async fn requests(life: Life) -> Vec<Case> {
    let requests = run_lifecycle(life, Case::NoFault).await.requests;
    let all = (1..=requests).flat_map(|at| IronicFault::ALL.map(|fault| Case::Ironic(at, fault)));
    all.collect()
}

async fn writes(life: Life, kinds: &[WriteKind]) -> Vec<Case> {
    let counts = run_lifecycle(life, Case::NoFault).await.writes;
    let each = kinds
        .iter()
        .flat_map(|kind| (1..=counts.get(kind).copied().unwrap_or_default()).map(move |at| (*kind, at)));
    each.flat_map(|(kind, at)| FAULTS.map(|fault| Case::Write(kind, at, fault)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn faults_of_status_writes_neither_repeat_writes_nor_lose_the_machine() {
    let all = writes(Life::Reference, &[STATUS]).await;
    assert_eq!(all.len(), 13 * 5);
    run_cases(Life::Reference, &all).await;
}

#[tokio::test(start_paused = true)]
async fn faults_of_other_writes_neither_repeat_writes_nor_lose_the_machine() {
    let all = writes(Life::Reference, &OTHERS).await;
    assert_eq!(all.len(), 7 * 5);
    run_cases(Life::Reference, &all).await;
}

async fn sweep(life: Life) {
    let mut all = requests(life).await;
    all.extend(writes(life, &[STATUS]).await);
    all.extend(writes(life, &OTHERS).await);
    assert!(all.len() > 200, "{life:?}: {}", all.len());
    run_cases(life, &all).await;
}

#[tokio::test(start_paused = true)]
async fn faults_deploy_an_image_of_a_registry_with_a_login_once() {
    sweep(Life::Registry).await;
}

#[tokio::test(start_paused = true)]
async fn faults_leave_a_live_image_in_the_drive_and_the_disk_unwritten() {
    sweep(Life::Live).await;
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_host_that_its_bmc_inspects_lose_nothing() {
    sweep(Life::Fast).await;
}
