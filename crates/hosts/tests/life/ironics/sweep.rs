//! Crash sweep: the controller is killed at each request to Ironic and at each write of a host, while a host is enrolled, detached
//! and attached in another Ironic.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus};
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::time::sleep;

use super::{A, B, configure, detach, host_in, label, nodes, recorded, two};
use crate::env::{CONTROLLER_USER, TestEnv};
use crate::faults::FAULTS;
use crate::interceptor::IronicFault;

#[derive(Debug, Clone, Copy)]
enum Case {
    NoFault,
    /// The n-th request to an Ironic, counted from 1; whether it is the other one.
    Ironic(bool, usize, IronicFault),
    /// The n-th write of a host, counted from 1.
    Write(&'static str, u64, Fault),
}

const RESOURCES: [&str; 2] = ["baremetalhosts", "baremetalhosts/status"];

fn begin(env: &TestEnv, case: Case) {
    match case {
        Case::NoFault => {}
        Case::Ironic(false, at, fault) => env.interceptor.log().fault = Some((at, fault)),
        Case::Ironic(true, at, fault) => env.others[0].interceptor.log().fault = Some((at, fault)),
        Case::Write(resource, at, fault) => {
            let rule = Rule::at(at, fault).verb("patch").resource(resource);
            env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
        }
    }
}

/// Every n-th case runs, unless the variable requests all.
fn every() -> usize {
    if std::env::var_os("METAL3_HOSTS_EVERY_CASE").is_some() {
        1
    } else {
        5
    }
}

/// The requests to both, and the writes.
struct Cost {
    asked: [usize; 2],
    writes: [u64; 2],
}

async fn run(case: Case) -> Cost {
    let env = TestEnv::new(two());
    begin(&env, case);
    host_in(&env, 1, A).await;
    env.until_state(1, "available").await;
    detach(&env, Some("")).await;
    let is_detached = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Detached)
    };
    env.until(1, "detached host", is_detached).await;
    label(&env, 1, B).await;
    detach(&env, None).await;
    let is_attached = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Ok)
            && recorded(host).as_deref() == Some(B)
    };
    env.until(1, "host of the other one", is_attached).await;
    sleep(Duration::from_hours(1)).await;
    env.until_state(1, "available").await;
    assert_eq!(nodes(&env, 1).await, [B], "{case:?}");
    for (ironic, other) in [(&env.interceptor, false), (&env.others[0].interceptor, true)] {
        let created = ironic
            .log()
            .done
            .iter()
            .filter(|(what, _)| what.as_str() == "POST nodes")
            .map(|(_, times)| times)
            .sum::<usize>();
        assert!(created <= 1, "{case:?} {other}: {:?}", ironic.log().done);
    }
    let is_injected =
        env.interceptor.log().injected || env.others[0].interceptor.log().injected || env.cluster.injected() > 0;
    assert_eq!(
        is_injected,
        !matches!(case, Case::NoFault),
        "{case:?} at a request that was not made"
    );
    Cost {
        asked: [
            env.interceptor.log().asked.len(),
            env.others[0].interceptor.log().asked.len(),
        ],
        writes: RESOURCES.map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource)),
    }
}

#[tokio::test(start_paused = true)]
async fn controller_that_is_killed_anywhere_leaves_one_node_in_one_ironic() {
    let cost = run(Case::NoFault).await;
    for fault in [
        IronicFault::KilledBefore,
        IronicFault::KilledAfter,
        IronicFault::ReplyLost,
        IronicFault::Queued,
    ] {
        for (is_other, asked) in [(false, cost.asked[0]), (true, cost.asked[1])] {
            for at in (1..=asked).step_by(every()) {
                run(Case::Ironic(is_other, at, fault)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_of_the_host_leaves_one_node_in_one_ironic() {
    let cost = run(Case::NoFault).await;
    for fault in FAULTS {
        for (resource, writes) in RESOURCES.into_iter().zip(cost.writes) {
            for at in (1..=writes).step_by(every()) {
                run(Case::Write(resource, at, fault)).await;
            }
        }
    }
}

/// A process with several Ironics, of which another one is the first, replaces one with one Ironic, which records nothing.
#[tokio::test(start_paused = true)]
async fn process_with_another_first_ironic_leaves_one_node_wherever_it_takes_over() {
    for fault in [IronicFault::KilledBefore, IronicFault::KilledAfter, IronicFault::Queued] {
        for at in 1.. {
            let env = TestEnv::new(two());
            configure(&env, &[A]);
            sleep(Duration::from_secs(10)).await;
            *env.configured.lock() = vec![B, A];
            env.interceptor.log().fault = Some((at, fault));
            host_in(&env, 1, "").await;
            let is_available = |host: Option<&BareMetalHost>| {
                host.is_some_and(|host| host.status.provisioning.state.to_string() == "available")
            };
            env.until(1, "fault or end", |host| {
                env.interceptor.log().injected || is_available(host)
            })
            .await;
            if !env.interceptor.log().injected {
                assert!(at > 3, "the creation was tried");
                break;
            }
            if fault == IronicFault::Queued {
                env.interceptor.kill();
            }
            env.until(1, "available host", is_available).await;
            sleep(Duration::from_hours(1)).await;
            assert_eq!(nodes(&env, 1).await.len(), 1, "{fault:?} {at}");
        }
    }
}
