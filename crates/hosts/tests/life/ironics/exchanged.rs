//! Names that lead to another Ironic than before.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::node::{self, NewNode};
use serde_json::{Map, json};
use tokio::time::sleep;

use super::{A, B, held, host_in, ironic, labels, node_in, nodes, provisioned, recorded, state, two, until_held, wire};
use crate::env::{NAMESPACE, TestEnv, Wiring, name};
use crate::phases::runs;

fn continues(host: Option<&BareMetalHost>) -> bool {
    runs(host) && held(host).is_none()
}

#[tokio::test(start_paused = true)]
async fn running_machine_is_not_registered_a_second_time_when_two_names_are_exchanged() {
    for deletes in [false, true] {
        let env = TestEnv::new(two());
        provisioned(&env, B).await;
        let before = state(&env, B).await;
        wire(&env, Wiring::Exchanged);
        until_held(&env, 1, "IronicMisplaced").await;
        if deletes {
            env.delete(1).await;
        }
        sleep(Duration::from_hours(2)).await;
        assert_eq!((nodes(&env, 1).await, state(&env, B).await), (vec![B], before.clone()));
        let (_, message) = held(env.get(1).await.as_ref()).unwrap();
        assert!(message.contains("\"site-b\"") && !message.contains(A), "{message}");
        wire(&env, Wiring::Right);
        if deletes {
            env.until(1, "end", |host| host.is_none()).await;
            assert!(nodes(&env, 1).await.is_empty());
        } else {
            env.until(1, "host that is served again", continues).await;
            assert_eq!((nodes(&env, 1).await, state(&env, B).await), (vec![B], before));
        }
    }
}

/// A user who may write the record has decided.
#[tokio::test(start_paused = true)]
async fn record_that_is_set_by_hand_ends_the_wait() {
    let env = TestEnv::new(two());
    provisioned(&env, B).await;
    let before = state(&env, B).await;
    wire(&env, Wiring::Exchanged);
    until_held(&env, 1, "IronicMisplaced").await;
    let record = json!({ "metadata": { "annotations": { super::RECORD: A }, "labels": { super::LABEL: A } } });
    env.edit(1, record).await;
    env.until(1, "host that is served again", continues).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!((nodes(&env, 1).await, state(&env, B).await), (vec![B], before));
}

#[tokio::test(start_paused = true)]
async fn exchange_is_not_hidden_by_an_ironic_that_is_away() {
    let env = TestEnv::new(two());
    provisioned(&env, B).await;
    let before = state(&env, B).await;
    ironic(&env, B).restart(Duration::from_hours(1));
    wire(&env, Wiring::Exchanged);
    until_held(&env, 1, "NodeNotLocated").await;
    sleep(Duration::from_mins(30)).await;
    assert!(node_in(&env, A, 1).await.is_none());
    sleep(Duration::from_mins(30)).await;
    until_held(&env, 1, "IronicMisplaced").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!((nodes(&env, 1).await, state(&env, B).await), (vec![B], before));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_registered_while_two_names_lead_to_one_ironic() {
    let env = TestEnv::new(two());
    host_in(&env, 2, A).await;
    env.until_state(2, "available").await;
    provisioned(&env, B).await;
    let before = state(&env, B).await;
    wire(&env, Wiring::One);
    until_held(&env, 1, "IronicAmbiguous").await;
    host_in(&env, 3, B).await;
    until_held(&env, 3, "IronicAmbiguous").await;
    sleep(Duration::from_hours(2)).await;
    assert_eq!((nodes(&env, 1).await, state(&env, B).await), (vec![B], before));
    assert!(nodes(&env, 3).await.is_empty());
    assert_eq!(held(env.get(2).await.as_ref()), None, "its node is where it was");
    wire(&env, Wiring::Right);
    env.until(1, "host that is served again", continues).await;
    env.until_state(3, "available").await;
    assert_eq!((nodes(&env, 1).await, nodes(&env, 3).await), (vec![B], vec![B]));
}

/// Whichever is taken, the other one may operate the machine.
#[tokio::test(start_paused = true)]
async fn new_host_with_a_node_of_its_name_in_two_ironics_waits_for_a_record_by_hand() {
    let env = TestEnv::new(two());
    for of in [A, B] {
        let new = NewNode {
            name: format!("{NAMESPACE}~{}", name(1)),
            driver: "redfish".to_owned(),
            driver_info: Map::default(),
            properties: Map::default(),
            more: Map::default(),
            disable_power_off: None,
        };
        let create = node::create(new).unwrap();
        ironic(&env, of).client().unwrap().send(&create).await.unwrap();
    }
    sleep(Duration::from_mins(10)).await;
    host_in(&env, 1, B).await;
    until_held(&env, 1, "NodeNotLocated").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(recorded(env.get(1).await.as_ref()), None);
    env.edit(1, json!({ "metadata": { "annotations": { super::RECORD: B } } }))
        .await;
    env.until_state(1, "available").await;
    let asked = env.interceptor.log().asked.clone();
    assert!(asked.iter().all(|what| what.starts_with("GET")), "{asked:?}");
}

/// Two failures at once: what one has lost another may have.
#[tokio::test(start_paused = true)]
async fn machine_of_a_lost_database_is_registered_again_once_all_ironics_are_seen() {
    let env = TestEnv::new(two());
    provisioned(&env, B).await;
    env.ironic.restart(Duration::from_hours(1));
    sleep(Duration::from_mins(5)).await;
    ironic(&env, B).lose_database();
    until_held(&env, 1, "NodeNotLocated").await;
    assert!(node_in(&env, B, 1).await.is_none());
    sleep(Duration::from_hours(1)).await;
    env.until(1, "adopted host", continues).await;
    assert_eq!(nodes(&env, 1).await, [B]);
}

/// The finalizer was removed by hand, so that the node is left.
#[tokio::test(start_paused = true)]
async fn machine_of_a_node_that_was_left_is_not_registered_in_another_ironic() {
    let env = TestEnv::new(two());
    provisioned(&env, A).await;
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3" } } });
    env.edit(1, paused).await;
    env.delete(1).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    env.until(1, "end", |host| host.is_none()).await;
    let mut document = env.document(1, &json!({}));
    metal3_runtime::patch::apply(&labels(B), &mut document);
    document["metadata"]["name"] = json!("renamed");
    env.make::<BareMetalHost>(document).await;
    sleep(Duration::from_hours(1)).await;
    let renamed = env.api::<BareMetalHost>().get("renamed").await.unwrap();
    let message = &renamed.status.error_message;
    assert!(
        message.contains("another Ironic has a node for the machine"),
        "{message}"
    );
    assert!(ironic(&env, B).audit().of("POST", "/v1/nodes") == 0 && node_in(&env, A, 1).await.is_some());
    assert_eq!(recorded(Some(&renamed)).as_deref(), Some(B), "{}", name(1));
}
