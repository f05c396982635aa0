//! Crash sweep: each fault at each request to Ironic and at each write to the API server, from the insertion of an image to its
//! ejection. The machine starts with the image while the object exists, and without it afterwards, and no more often than the user
//! asked for.

use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage};
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::time::sleep;

use super::{MINUTES, URL, disc, insert, last_start, network_with_disc, recorded, restart, running, starts};
use crate::env::{CONTROLLER_USER, TestEnv};
use crate::faults::FAULTS;
use crate::interceptor::IronicFault;
use crate::unserved::{delete, is_gone, until_gone};

/// Every n-th case runs, unless the variable requests all.
const EVERY: usize = 8;
const ALL: &str = "METAL3_HOSTS_EVERY_CASE";

const RESOURCES: [&str; 2] = ["dataimages", "dataimages/status"];

#[derive(Debug, Clone, Copy)]
enum Case {
    NoFault,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, IronicFault),
    /// The n-th write to a resource, counted from 1.
    Write(&'static str, u64, Fault),
    /// The n-th read of DataImages.
    Read(u64, Fault),
}

fn begin(env: &TestEnv, case: Case) -> usize {
    env.cluster.reset_audit();
    let asked = env.interceptor.log().asked.len();
    match case {
        Case::NoFault => {}
        Case::Ironic(at, fault) => env.interceptor.log().fault = Some((asked + at, fault)),
        Case::Write(resource, at, fault) => {
            let rule = Rule::at(at, fault).verb("patch").resource(resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
        Case::Read(at, fault) => {
            let rule = Rule::at(at, fault).verb("get").resource("dataimages");
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
    }
    asked
}

fn require_injected(env: &TestEnv, case: Case) {
    let is_injected = env.interceptor.log().injected || env.cluster.injected() > 0;
    assert_eq!(
        is_injected,
        !matches!(case, Case::NoFault),
        "{case:?} at a request that was not made"
    );
}

/// Requests to Ironic, and writes to each resource.
async fn run(case: Case) -> (usize, [u64; 2]) {
    let env = running().await;
    let (asked, before) = (begin(&env, case), starts(&env).len());
    insert(&env, URL).await;
    sleep(MINUTES).await;
    restart(&env).await;
    sleep(MINUTES).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL), "{case:?}");
    assert_eq!(recorded(&env).await.as_deref(), Some(URL), "{case:?}");
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    restart(&env).await;
    assert_eq!(last_start(&env), None, "{case:?}");
    until_gone::<DataImage>(&env, "host-1").await;
    sleep(10 * MINUTES).await;
    assert_eq!(disc(&env), None, "{case:?}");
    assert_eq!(starts(&env).len(), before + 2, "{case:?}");
    require_injected(&env, case);
    let writes = RESOURCES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    let asked = env.interceptor.log().asked.len() - asked;
    (asked, writes)
}

/// Each n-th of the cases, so that each request and each fault is among those that run.
fn chosen(cases: Vec<Case>) -> impl Iterator<Item = Case> {
    let every = if std::env::var_os(ALL).is_some() { 1 } else { EVERY };
    cases.into_iter().step_by(every)
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_leaves_the_drive_as_the_object_asks() {
    let (requests, _) = run(Case::NoFault).await;
    let mut cases = Vec::new();
    for at in 1..=requests {
        // Another fault is the first of each request.
        let mut faults = IronicFault::ALL;
        faults.rotate_left(at % IronicFault::ALL.len());
        cases.extend(faults.map(|fault| Case::Ironic(at, fault)));
    }
    for case in chosen(cases) {
        run(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_or_read_leaves_the_drive_as_the_object_asks() {
    let (_, writes) = run(Case::NoFault).await;
    let mut cases = Vec::new();
    for (resource, count) in RESOURCES.into_iter().zip(writes) {
        for at in 1..=count {
            cases.extend(FAULTS.map(|fault| Case::Write(resource, at, fault)));
        }
    }
    for at in 1..=3 {
        cases.extend([Fault::CrashBefore, FAULTS[4]].map(|fault| Case::Read(at, fault)));
    }
    for case in cases
        .into_iter()
        .step_by(if std::env::var_os(ALL).is_some() { 1 } else { 3 })
    {
        run(case).await;
    }
}

/// Requests to Ironic, and writes to each resource, of the deletion of a host.
async fn remove(case: Case) -> (usize, [u64; 2]) {
    let env = network_with_disc().await;
    let asked = begin(&env, case);
    env.delete(1).await;
    until_gone::<BareMetalHost>(&env, "host-1").await;
    let asked = env.interceptor.log().asked.len() - asked;
    require_injected(&env, case);
    assert_eq!(disc(&env), None, "{case:?}");
    let writes = RESOURCES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    env.cluster.collect_garbage();
    sleep(MINUTES).await;
    assert!(is_gone::<DataImage>(&env, "host-1").await, "{case:?}");
    assert!(!env.events().contains("DataImageLeft"), "{case:?}");
    (asked, writes)
}

/// A record that outlived the node would keep the object, and name a disc that is not there.
#[tokio::test(start_paused = true)]
async fn fault_during_the_deletion_of_a_host_leaves_neither_disc_nor_record() {
    let (requests, writes) = remove(Case::NoFault).await;
    let mut cases = Vec::new();
    for at in 1..=requests {
        cases.push(Case::Ironic(at, IronicFault::KilledAfter));
    }
    for (resource, count) in RESOURCES.into_iter().zip(writes) {
        for at in 1..=count {
            cases.extend(
                [Fault::CrashBefore, Fault::CrashAfter, Fault::Conflict].map(|fault| Case::Write(resource, at, fault)),
            );
        }
    }
    for case in cases {
        remove(case).await;
    }
}
