//! Crash sweep: each fault at each request to Ironic and at each write to the API server, from the creation of a subscription to its
//! deletion. At rest the BMC has one while the object exists, and none afterwards.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::time::sleep;

use super::{env_with_host, in_bmc, subscribe, until_created};
use crate::env::CONTROLLER_USER;
use crate::faults::FAULTS;
use crate::interceptor::IronicFault;
use crate::unserved::{delete, until_gone};

const RESOURCES: [&str; 2] = ["bmceventsubscriptions", "bmceventsubscriptions/status"];
/// More than Ironic keeps a request before it begins with it.
const REST: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Copy)]
enum Case {
    NoFault,
    /// The n-th request to Ironic, counted from 1.
    Ironic(usize, IronicFault),
    /// The n-th write to a resource, counted from 1.
    Write(&'static str, u64, Fault),
    /// The n-th read of subscriptions or hosts.
    Read(&'static str, u64, Fault),
}

/// Requests to Ironic, and writes to each resource.
async fn run(case: Case) -> (usize, [u64; 2]) {
    let env = env_with_host().await;
    env.cluster.reset_audit();
    let asked = env.interceptor.log().asked.len();
    match case {
        Case::NoFault => {}
        Case::Ironic(at, fault) => env.interceptor.log().fault = Some((asked + at, fault)),
        Case::Write(resource, at, fault) => {
            let rule = Rule::at(at, fault).verb("patch").resource(resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
        Case::Read(resource, at, fault) => {
            let rule = Rule::at(at, fault).verb("get").resource(resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
    }
    subscribe(&env, "events").await;
    let id = until_created(&env, "events").await;
    sleep(REST).await;
    let ids: Vec<String> = in_bmc(&env).into_iter().map(|one| one.id).collect();
    assert_eq!(ids, std::slice::from_ref(&id), "{case:?}");
    assert_eq!(until_created(&env, "events").await, id, "{case:?}");
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    sleep(REST).await;
    assert_eq!(in_bmc(&env), [], "{case:?}");
    let is_injected = env.interceptor.log().injected || env.cluster.injected() > 0;
    assert_eq!(
        is_injected,
        !matches!(case, Case::NoFault),
        "{case:?} at a request that was not made"
    );
    let writes = RESOURCES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    let asked = env.interceptor.log().asked.len() - asked;
    (asked, writes)
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_leaves_one_subscription_of_an_object_and_none_of_a_deleted_one() {
    let (requests, _) = run(Case::NoFault).await;
    assert_eq!(
        requests,
        3 + 5,
        "a node, a list and a creation; a node, a list, its details, a deletion and a list"
    );
    for at in 1..=requests {
        for fault in IronicFault::ALL {
            run(Case::Ironic(at, fault)).await;
        }
    }
    // The faults that the table of all faults does not have.
    for fault in [IronicFault::LostBefore, IronicFault::ReplyLostLate] {
        run(Case::Ironic(3, fault)).await;
        run(Case::Ironic(7, fault)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_leaves_one_subscription_of_an_object_and_none_of_a_deleted_one() {
    let (_, writes) = run(Case::NoFault).await;
    assert_eq!(
        writes,
        [2, 1],
        "the record, the removal of the finalizer, and the status"
    );
    for (resource, count) in RESOURCES.into_iter().zip(writes) {
        for at in 1..=count {
            for fault in FAULTS {
                run(Case::Write(resource, at, fault)).await;
            }
        }
    }
    for (resource, at) in [
        ("bmceventsubscriptions", 1),
        ("bmceventsubscriptions", 2),
        ("baremetalhosts", 1),
    ] {
        for fault in [Fault::CrashBefore, FAULTS[4]] {
            run(Case::Read(resource, at, fault)).await;
        }
    }
}
