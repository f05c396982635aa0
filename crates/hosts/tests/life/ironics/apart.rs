//! An Ironic that is away, or lost its database, and the hosts of another.

use std::time::Duration;

use kube::api::DeleteParams;
use metal3_api::metal3::v1alpha1::DataImage;
use metal3_ironic::model::state::ProvisionState;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{A, B, counts, held, host_in, ironic, node_in, recorded, two};
use crate::env::{Setup, TestEnv, name};
use crate::phases::{Phase, runs};

const OF_A: [u32; 6] = [1, 2, 3, 4, 5, 6];
const OF_B: [u32; 6] = [11, 12, 13, 14, 15, 16];

/// What the hosts of the other Ironic went through, and what that cost.
async fn lives(env: &TestEnv) -> Value {
    let mut hosts = Vec::new();
    for number in OF_B {
        let host = env.get(number).await.unwrap();
        let history = serde_json::to_value(&host.status.operation_history).unwrap();
        hosts.push(
            json!({ "host": number, "state": host.status.provisioning.state.to_string(), "history": history,
            "version-changes": host.metadata.generation, "counts": format!("{:?}", counts(env, B, number)) }),
        );
    }
    let mut asked = env.others[0].interceptor.log().asked.clone();
    asked.sort();
    json!({ "hosts": hosts, "asked": asked })
}

/// Enrols and provisions hosts of both; the first Ironic is away for ten minutes in between.
async fn run(is_away: bool) -> Value {
    let env = TestEnv::new(two());
    for (numbers, ironic) in [(OF_A, A), (OF_B, B)] {
        for number in numbers {
            host_in(&env, number, ironic).await;
        }
    }
    env.until_state(1, "inspecting").await;
    if is_away {
        ironic(&env, A).restart(Duration::from_mins(10));
    }
    for number in OF_B {
        env.until_state(number, "available").await;
        Phase::Provision.begin(&env, number).await;
    }
    sleep(Duration::from_mins(5)).await;
    if is_away {
        let (reason, message) = held(env.get(1).await.as_ref()).unwrap();
        assert_eq!(reason, "IronicUnreachable");
        assert!(
            message.starts_with("Ironic \"ironic\" is unreachable since"),
            "{message}"
        );
    }
    for number in OF_B {
        assert_eq!(held(env.get(number).await.as_ref()), None);
        env.until(number, "provisioned host that runs", runs).await;
    }
    for number in OF_A {
        env.until_state(number, "available").await;
    }
    sleep(Duration::from_hours(1)).await;
    lives(&env).await
}

#[tokio::test(start_paused = true)]
async fn outage_of_one_ironic_changes_neither_times_nor_requests_of_the_hosts_of_another() {
    let (calm, away) = (run(false).await, run(true).await);
    assert_eq!(calm, away);
}

/// Each request to it takes as long as the controller waits for a response.
#[tokio::test(start_paused = true)]
async fn ironic_that_does_not_respond_takes_no_worker_from_the_hosts_of_another() {
    let mut ends = Vec::new();
    for hangs in [false, true] {
        let env = TestEnv::new(two());
        if hangs {
            env.interceptor.hang(true);
        }
        for number in 101..141 {
            host_in(&env, number, A).await;
        }
        sleep(Duration::from_mins(4)).await;
        for number in OF_B {
            host_in(&env, number, B).await;
        }
        for number in OF_B {
            env.until_state(number, "available").await;
        }
        ends.push(lives(&env).await);
    }
    assert_eq!(ends[0], ends[1]);
}

/// Seconds from the deletion of the disc of a host of B, while those of A are deleted, until it is gone.
async fn release_of_a_disc(hangs: bool) -> u64 {
    let env = TestEnv::new(Setup {
        data_images: true,
        ..two()
    });
    for (numbers, ironic) in [(OF_A, A), (OF_B, B)] {
        for number in numbers {
            host_in(&env, number, ironic).await;
        }
        for number in numbers {
            env.until_state(number, "available").await;
            let disc = json!({ "metadata": { "name": name(number) }, "spec": { "url": "http://192.0.2.9/d.iso" } });
            env.make::<DataImage>(disc).await;
        }
    }
    sleep(Duration::from_mins(5)).await;
    env.interceptor.hang(hangs);
    let discs = env.api::<DataImage>();
    for number in OF_A.into_iter().chain([OF_B[0]]) {
        discs.delete(&name(number), &DeleteParams::default()).await.unwrap();
    }
    let mut waited = 0;
    while discs.get_opt(&name(OF_B[0])).await.unwrap().is_some() {
        assert!(waited < 3_600, "{hangs}");
        sleep(Duration::from_secs(1)).await;
        waited += 1;
    }
    let left = discs.get_opt(&name(OF_A[0])).await.unwrap();
    assert_eq!(left.is_some(), hangs, "that of A is read from A");
    waited
}

#[tokio::test(start_paused = true)]
async fn disc_of_a_host_is_released_while_the_ironic_of_others_does_not_respond() {
    assert_eq!(release_of_a_disc(false).await, release_of_a_disc(true).await);
}

#[tokio::test(start_paused = true)]
async fn hosts_of_an_ironic_that_lost_its_database_are_adopted_and_others_get_no_request() {
    let env = TestEnv::new(two());
    let of_both = [(1, A), (2, A), (11, B), (12, B)];
    for (number, ironic) in of_both {
        host_in(&env, number, ironic).await;
    }
    for (number, _) in of_both {
        env.until_state(number, "available").await;
        Phase::Provision.begin(&env, number).await;
    }
    for (number, _) in of_both {
        env.until(number, "provisioned host that runs", runs).await;
    }
    sleep(Duration::from_mins(10)).await;
    let machines = of_both.map(|(number, ironic)| counts(&env, ironic, number));
    let (asked, writes) = (env.interceptor.log().asked.len(), env.status_writes());
    ironic(&env, B).lose_database();
    sleep(Duration::from_hours(1)).await;
    for (number, ironic) in of_both {
        assert!(runs(env.get(number).await.as_ref()));
        assert_eq!(
            node_in(&env, ironic, number).await.unwrap().provision_state,
            ProvisionState::Active
        );
        assert_eq!(recorded(env.get(number).await.as_ref()).as_deref(), Some(ironic));
    }
    assert_eq!(of_both.map(|(number, ironic)| counts(&env, ironic, number)), machines);
    assert_eq!(
        env.interceptor.log().asked.len(),
        asked,
        "{:?}",
        env.interceptor.log().asked
    );
    assert!(env.status_writes() > writes);
    assert!(node_in(&env, A, 11).await.is_none() && node_in(&env, B, 1).await.is_none());
}
