//! Deletions of the node, in which Ironic loses its record of a machine that may run.

use std::time::Duration;

use futures::future::join_all;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::model::state::PowerState;
use metal3_ironic::transport::Transport as _;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::disturbances::provisioned;
use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::Phase;

const DETACHED: &str = "baremetalhost.metal3.io/detached";
const OTHER: &str = "7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c";

fn detachment(value: Value) -> Value {
    json!({ "metadata": { "annotations": { DETACHED: value } } })
}

/// Another user of Ironic changes the node.
pub(crate) async fn change_node(env: &TestEnv, field: &str, value: Value) {
    let node = env.node(1).await.unwrap();
    let body = json!([{ "op": "add", "path": field, "value": value }]);
    let request = http::Request::patch(format!("/v1/nodes/{}", node.uuid))
        .header("X-OpenStack-Ironic-API-Version", "1.95")
        .header("Content-Type", "application/json");
    let request = request.body(body.to_string().into_bytes()).unwrap();
    assert!(env.ironic.exchange(request).await.unwrap().status().is_success());
}

async fn until_injected(env: &TestEnv) {
    while !env.interceptor.log().injected {
        sleep(Duration::from_millis(100)).await;
    }
}

/// The host is managed as before, and Ironic never lost the node.
async fn assert_kept(env: &TestEnv, node: &str, before: usize) {
    let asked = env.interceptor.log().asked.split_off(before);
    let is_removal =
        |asked: &&String| asked.starts_with("DELETE nodes/_") || asked.starts_with("PUT nodes/_/maintenance");
    assert_eq!(asked.iter().find(is_removal), None, "{asked:?}");
    let found = env.node(1).await.unwrap();
    assert_eq!((found.uuid.as_str(), found.maintenance), (node, false));
    assert_eq!(env.get(1).await.unwrap().status.error_message, "");
}

/// The host said that its image runs, and then Ironic removed it.
#[tokio::test(start_paused = true)]
async fn image_that_is_requested_again_while_its_removal_may_begin_runs_in_the_end() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let asked = env.interceptor.log().asked.len();
    // After the read of the node.
    env.interceptor.log().fault = Some((asked + 2, IronicFault::Queued));
    Phase::Deprovision.begin(&env, 1).await;
    sleep(Duration::from_secs(35)).await;
    assert!(env.interceptor.log().injected);
    Phase::Provision.begin(&env, 1).await;
    sleep(Duration::from_hours(1)).await;
    let status = env.get(1).await.unwrap().status;
    assert_eq!(
        (
            status.error_message.as_str(),
            status.provisioning.state.to_string().as_str()
        ),
        ("", "provisioned")
    );
    assert!(env.machine(1, |machine| machine.disk.is_some()));
}

/// The deletion of the node waited for others without limit, and left after the annotation was removed.
#[tokio::test(start_paused = true)]
async fn node_is_kept_when_a_detachment_that_waits_for_other_requests_is_taken_back() {
    const REQUESTS: usize = 8;
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let (node, before) = (env.node(1).await.unwrap().uuid, env.interceptor.log().asked.len());
    env.interceptor.log().fault = Some((before + 1, IronicFault::Late));
    env.edit(1, detachment(json!(""))).await;
    until_injected(&env).await;
    let client = env.to_ironic();
    let permits = join_all((0..REQUESTS).map(|_| client.send_permit())).await;
    sleep(Duration::from_secs(3)).await;
    env.edit(1, detachment(Value::Null)).await;
    sleep(Duration::from_mins(1)).await;
    drop(permits);
    sleep(Duration::from_mins(10)).await;
    assert_kept(&env, node.as_str(), before).await;
}

/// The host in the cache still had the annotation.
#[tokio::test(start_paused = true)]
async fn node_is_kept_when_a_detachment_is_taken_back_though_the_watch_is_late() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let node = env.node(1).await.unwrap().uuid;
    // The program starts again, and its watch delivers the next edit only.
    let frozen = Rule::at(1, Fault::WatchFrozen { after: 1 });
    let frozen = frozen.verb("watch").resource("baremetalhosts");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(frozen));
    env.interceptor.kill();
    sleep(Duration::from_secs(20)).await;
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().fault = Some((before + 1, IronicFault::Late));
    env.edit(1, detachment(json!(""))).await;
    until_injected(&env).await;
    env.edit(1, detachment(Value::Null)).await;
    sleep(Duration::from_mins(10)).await;
    assert_kept(&env, node.as_str(), before).await;
}

/// The node was not read before a machine was powered off that seemed to be idle.
#[tokio::test(start_paused = true)]
async fn machine_that_another_user_of_ironic_takes_before_the_deletion_of_its_host_stays_on() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    // The change feed polls every ten seconds.
    sleep(Duration::from_millis(305_300)).await;
    change_node(&env, "/instance_uuid", json!(OTHER)).await;
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    env.machine(1, |machine| assert_eq!(machine.power, PowerState::On));
    assert_eq!(env.node(1).await.unwrap().instance_uuid.as_deref(), Some(OTHER));
}

/// Ironic deletes a node in maintenance whatever it serves, and the record was read from the change feed.
#[tokio::test(start_paused = true)]
async fn node_in_maintenance_that_another_user_of_ironic_takes_is_kept_when_its_host_is_detached() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    // The change feed polls every ten seconds.
    sleep(Duration::from_millis(305_300)).await;
    change_node(&env, "/maintenance", json!(true)).await;
    change_node(&env, "/instance_uuid", json!(OTHER)).await;
    env.edit(1, detachment(json!(""))).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(env.node(1).await.unwrap().instance_uuid.as_deref(), Some(OTHER));
}

/// A proxy whose server never responds sends these. The machine is powered off at most as often as is counted; what
/// erases its disk, or deletes its record, is reported and waits.
#[tokio::test(start_paused = true)]
async fn deletion_whose_orders_a_proxy_answers_with_504_ends_or_is_reported() {
    for (order, verb) in [
        ("PUT nodes/_/states/power", None),
        ("PUT nodes/_/states/provision deleted", Some("(deleted)")),
        ("DELETE nodes/_", Some("(delete node)")),
    ] {
        let env = TestEnv::new(Setup::default());
        Phase::Enrol.begin(&env, 1).await;
        Phase::Enrol.end(&env, 1).await;
        if verb == Some("(deleted)") {
            Phase::Provision.begin(&env, 1).await;
            Phase::Provision.end(&env, 1).await;
        }
        env.interceptor.log().rejected = Some((order, 504));
        env.delete(1).await;
        if let Some(verb) = verb {
            let is_reported =
                |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains(verb));
            env.until(1, "error about the order", is_reported).await;
            sleep(Duration::from_hours(24)).await;
            assert!(is_reported(env.get(1).await.as_ref()));
            env.interceptor.log().rejected = None;
        }
        env.until(1, "end", |host| host.is_none()).await;
        let log = env.interceptor.log();
        let powered_off = log.asked.iter().filter(|asked| asked.contains("power off")).count();
        assert!(powered_off <= 6, "{order}: {:#?}", log.asked);
    }
}
