//! The label changes while a node exists, in every state.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus};
use tokio::time::sleep;

use super::{A, B, counts, detach, held, host_in, label, node_in, nodes, recorded, two, until_held};
use crate::env::TestEnv;
use crate::phases::{Phase, runs};

const STATES: [&str; 6] = [
    "registering",
    "inspecting",
    "available",
    "provisioning",
    "provisioned",
    "deprovisioning",
];

/// Leads the host through a whole life; in one state the label changes to this.
async fn live(state: Option<&str>, to: &str) -> String {
    let env = TestEnv::new(two());
    host_in(&env, 1, A).await;
    for phase in [Phase::Enrol, Phase::Provision, Phase::Deprovision] {
        if phase != Phase::Enrol {
            phase.begin(&env, 1).await;
        }
        let is_of_phase = |state: &&str| match phase {
            Phase::Enrol => ["registering", "inspecting", "available"].contains(state),
            Phase::Provision => ["provisioning", "provisioned"].contains(state),
            Phase::Deprovision | Phase::Delete => *state == "deprovisioning",
        };
        if let Some(state) = state.filter(is_of_phase) {
            env.until_state(1, state).await;
            label(&env, 1, to).await;
            if to == "site-c" {
                until_held(&env, 1, "IronicUnknown").await;
                sleep(Duration::from_mins(10)).await;
                assert_eq!(env.get(1).await.unwrap().status.provisioning.state.to_string(), state);
                label(&env, 1, A).await;
            }
        }
        phase.end(&env, 1).await;
    }
    sleep(Duration::from_mins(10)).await;
    assert_eq!(nodes(&env, 1).await, [A], "{state:?} {to}");
    let host = env.get(1).await;
    let reason = held(host.as_ref()).map(|(reason, _)| reason);
    let expected = (to == B && state.is_some()).then(|| "IronicChangeRefused".to_owned());
    assert_eq!(reason, expected, "{state:?} {to}");
    assert!(env.others[0].interceptor.log().asked.is_empty(), "{state:?} {to}");
    let counts = format!("{:?}", counts(&env, A, 1));
    Phase::Delete.begin(&env, 1).await;
    Phase::Delete.end(&env, 1).await;
    assert!(nodes(&env, 1).await.is_empty(), "{state:?} {to}");
    counts
}

#[tokio::test(start_paused = true)]
async fn label_that_changes_in_any_state_moves_no_node_and_reboots_nothing() {
    let undisturbed = live(None, "").await;
    for state in STATES {
        for to in [B, "", "site-c"] {
            assert_eq!(live(Some(state), to).await, undisturbed, "{state} {to:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_label_is_reported_once_and_ends_with_the_edit() {
    let env = TestEnv::new(two());
    host_in(&env, 1, A).await;
    env.until_state(1, "available").await;
    label(&env, 1, B).await;
    until_held(&env, 1, "IronicChangeRefused").await;
    let (_, message) = held(env.get(1).await.as_ref()).unwrap();
    assert!(
        message.contains("\"site-b\"") && message.contains("Set the label to \"ironic\""),
        "{message}"
    );
    sleep(Duration::from_mins(10)).await;
    let version = env.get(1).await.unwrap().metadata.resource_version;
    sleep(Duration::from_hours(2)).await;
    assert_eq!(env.get(1).await.unwrap().metadata.resource_version, version);
    label(&env, 1, A).await;
    env.until(1, "end of the report", |host| held(host).is_none()).await;
}

/// The order of the user is obeyed where the node is.
#[tokio::test(start_paused = true)]
async fn deletion_after_a_refused_label_deletes_the_node_where_it_is() {
    let env = TestEnv::new(two());
    host_in(&env, 1, B).await;
    env.until_state(1, "available").await;
    label(&env, 1, A).await;
    until_held(&env, 1, "IronicChangeRefused").await;
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(nodes(&env, 1).await.is_empty() && env.interceptor.log().asked.is_empty());
}

fn is_detached(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.operational_status == OperationalStatus::Detached)
}

#[tokio::test(start_paused = true)]
async fn detached_host_is_registered_in_the_other_ironic_when_it_is_attached_again() {
    let env = TestEnv::new(two());
    host_in(&env, 1, A).await;
    env.until_state(1, "available").await;
    Phase::Provision.begin(&env, 1).await;
    env.until(1, "provisioned host that runs", runs).await;
    // The machine, as the other one sees it.
    let (power, disk) = env.machine(1, |machine| (machine.power.clone(), machine.disk.clone()));
    env.others[0]
        .ironic
        .machine_at(&crate::env::address(1), |machine| {
            (machine.power, machine.disk) = (power, disk)
        })
        .unwrap();
    let before = (counts(&env, A, 1), counts(&env, B, 1));
    label(&env, 1, B).await;
    until_held(&env, 1, "IronicChangeRefused").await;
    detach(&env, Some("")).await;
    env.until(1, "detached host", is_detached).await;
    sleep(Duration::from_mins(1)).await;
    assert!(nodes(&env, 1).await.is_empty());
    assert_eq!(recorded(env.get(1).await.as_ref()).as_deref(), Some(B));
    detach(&env, None).await;
    let is_adopted = |host: Option<&BareMetalHost>| runs(host) && !is_detached(host) && held(host).is_none();
    env.until(1, "adopted host", is_adopted).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(nodes(&env, 1).await, [B]);
    let node = node_in(&env, B, 1).await.unwrap();
    assert_eq!(
        node.provision_state,
        metal3_ironic::model::state::ProvisionState::Active
    );
    assert_eq!((counts(&env, A, 1), counts(&env, B, 1)), before, "nothing was rebooted");
}

/// A search of all of them precedes the change of the record.
#[tokio::test(start_paused = true)]
async fn detached_host_waits_for_the_former_ironic_before_it_goes_to_another() {
    let env = TestEnv::new(two());
    host_in(&env, 1, A).await;
    env.until_state(1, "available").await;
    detach(&env, Some("")).await;
    env.until(1, "detached host", is_detached).await;
    env.ironic.restart(Duration::from_hours(1));
    sleep(Duration::from_mins(1)).await;
    label(&env, 1, B).await;
    until_held(&env, 1, "NodeNotLocated").await;
    detach(&env, None).await;
    sleep(Duration::from_mins(30)).await;
    assert!(node_in(&env, B, 1).await.is_none());
    sleep(Duration::from_mins(30)).await;
    env.until(1, "end of the wait", |host| held(host).is_none() && !is_detached(host))
        .await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(nodes(&env, 1).await, [B]);
}
