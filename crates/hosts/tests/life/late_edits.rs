//! Edits that arrive after a reconcile has begun, before its request.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::SendPermit;
use metal3_sim_bmc::fault::Fault as MachineFault;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::disturbances::provisioned;
use crate::env::{CONTROLLER_USER, Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, SOURCE, image};
use crate::removals::change_node;

async fn user_data(env: &TestEnv, name: &str) {
    let secret = json!({ "metadata": { "name": name }, "stringData": { "userData": format!("#!{name}") } });
    env.make::<Secret>(secret).await;
}

/// The content of a Secret was kept by field, whichever Secret the live host names in it.
#[tokio::test(start_paused = true)]
async fn machine_gets_the_user_data_that_an_edit_during_a_slow_read_of_the_node_names() {
    for before in [json!({ "name": "first" }), Value::Null] {
        let env = TestEnv::new(Setup::default());
        user_data(&env, "first").await;
        user_data(&env, "second").await;
        Phase::Enrol.begin(&env, 1).await;
        Phase::Enrol.end(&env, 1).await;
        let asked = env.interceptor.log().asked.len();
        // The read of the node before its cleaning, the cleaning, and the read before the deployment.
        env.interceptor.log().fault = Some((asked + 3, IronicFault::Late));
        env.edit(1, json!({ "spec": { "image": image(), "userData": before } }))
            .await;
        while !env.interceptor.log().injected {
            sleep(Duration::from_millis(100)).await;
        }
        let last = env.interceptor.log().asked.last().cloned();
        assert_eq!(last.as_deref(), Some("GET nodes/_"));
        sleep(Duration::from_secs(5)).await;
        env.edit(1, json!({ "spec": { "userData": { "name": "second" } } }))
            .await;
        Phase::Provision.end(&env, 1).await;
        let drive = env
            .machine(1, |machine| machine.disk.clone())
            .unwrap()
            .config_drive
            .unwrap();
        assert_eq!(drive["user_data"], "#!second", "before: {before}");
        let events = env.events();
        assert!(!events.contains("does not exist"), "{events}");
    }
}

/// An edit during a slow validation was noticed only if the watch had delivered it by then.
#[tokio::test(start_paused = true)]
async fn image_that_is_replaced_during_a_slow_validation_is_not_deployed_though_the_watch_is_late() {
    const OTHER: &str = "http://images.example/other.raw";
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    // The program starts again, and its watch delivers the next edit only.
    let frozen = Rule::at(1, Fault::WatchFrozen { after: 1 });
    let frozen = frozen.verb("watch").resource("baremetalhosts");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(frozen));
    env.interceptor.kill();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(env.cluster.injected(), 1);
    let is_validation = |asked: &String| asked.ends_with("validate");
    let validated = || {
        env.interceptor
            .log()
            .asked
            .iter()
            .filter(|asked| is_validation(asked))
            .count()
    };
    env.interceptor.log().late = Some("GET nodes/_/validate");
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    while validated() == 0 {
        sleep(Duration::from_millis(100)).await;
    }
    env.edit(1, json!({ "spec": { "image": { "url": OTHER } } })).await;
    Phase::Provision.end(&env, 1).await;
    env.machine(1, |machine| {
        assert_eq!(machine.disk.as_ref().unwrap().source, OTHER);
        assert_eq!(machine.counts.written, 1, "the former image was deployed first");
    });
}

/// The ordinary validation costs no further read of the host.
#[tokio::test(start_paused = true)]
async fn slow_validation_costs_one_more_read_of_the_host() {
    let mut reads = Vec::new();
    for late in [None, Some("GET nodes/_/validate")] {
        let env = TestEnv::new(Setup::default());
        Phase::Enrol.begin(&env, 1).await;
        Phase::Enrol.end(&env, 1).await;
        env.interceptor.log().late = late;
        let read = || env.cluster.audit().of(CONTROLLER_USER, "get", "baremetalhosts");
        let before = read();
        Phase::Provision.begin(&env, 1).await;
        Phase::Provision.end(&env, 1).await;
        reads.push(read() - before);
    }
    assert_eq!(reads, [1, 2]);
}

/// A running host whose power-off waits behind other requests, after the live reads of host and node. Returns the
/// permits of those and the number of requests before.
async fn with_waiting_power_off(env: &TestEnv) -> (Vec<SendPermit>, usize) {
    /// As many as the client sends at once.
    const REQUESTS: usize = 8;
    provisioned(env, 1).await;
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().fault = Some((before + 1, IronicFault::Late));
    env.edit(1, json!({ "spec": { "online": false } })).await;
    while !env.interceptor.log().injected {
        sleep(Duration::from_millis(100)).await;
    }
    // The last permit becomes free when the node was read.
    let client = env.to_ironic();
    let permits = join_all((0..REQUESTS).map(|_| client.send_permit())).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.interceptor.log().asked[before..], ["GET nodes/_"]);
    (permits, before)
}

const SOFT_OFF: &str = "PUT nodes/_/states/power soft power off";

/// The request waited for others without limit, and left minutes after host and node were compared.
#[tokio::test(start_paused = true)]
async fn power_off_that_waited_for_other_requests_is_not_sent_after_the_edit_is_taken_back() {
    let env = TestEnv::new(Setup::default());
    let (permits, before) = with_waiting_power_off(&env).await;
    env.edit(1, json!({ "spec": { "online": true } })).await;
    sleep(Duration::from_mins(1)).await;
    drop(permits);
    sleep(Duration::from_mins(10)).await;
    let asked = env.interceptor.log().asked.split_off(before);
    assert!(!asked.iter().any(|asked| asked == SOFT_OFF), "{asked:?}");
    let status = env.get(1).await.unwrap().status;
    assert!(status.powered_on && status.error_message.is_empty());
}

/// It keeps its permit for the new comparison: otherwise it might wait for ever.
#[tokio::test(start_paused = true)]
async fn power_off_that_waited_for_other_requests_is_sent_with_the_first_free_permit() {
    let env = TestEnv::new(Setup::default());
    let (mut permits, before) = with_waiting_power_off(&env).await;
    let (client, mut queue) = (env.to_ironic(), JoinSet::new());
    queue.spawn(async move { client.send_permit().await });
    sleep(Duration::from_secs(1)).await;
    drop(permits.pop());
    let next = queue.join_next().await.unwrap().unwrap();
    let asked = env.interceptor.log().asked.split_off(before);
    assert_eq!(asked, ["GET nodes/_", "GET nodes/_", SOFT_OFF]);
    drop((next, permits));
    let is_off = |host: Option<&BareMetalHost>| host.is_some_and(|host| !host.status.powered_on);
    env.until(1, "host that is off", is_off).await;
    assert_eq!(env.get(1).await.unwrap().status.error_count, 0);
}

/// The validation took longer than a view of the node is good for, and only the host was read again.
#[tokio::test(start_paused = true)]
async fn image_that_another_user_of_ironic_sets_during_a_slow_validation_is_not_deployed() {
    const OTHER: &str = "http://images.example/other.raw";
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().late = Some("GET nodes/_/validate");
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    let is_validation = |asked: &String| asked.ends_with("validate");
    while !env.interceptor.log().asked[before..].iter().any(is_validation) {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(2)).await;
    change_node(&env, "/instance_info/image_source", json!(OTHER)).await;
    Phase::Provision.end(&env, 1).await;
    env.machine(1, |machine| {
        assert_eq!(machine.disk.as_ref().unwrap().source, SOURCE);
        assert_eq!(machine.counts.written, 1);
    });
}

#[tokio::test(start_paused = true)]
async fn machine_gets_the_user_data_that_was_changed_during_a_slow_validation() {
    let env = TestEnv::new(Setup::default());
    env.make::<Secret>(json!({ "metadata": { "name": "data" }, "stringData": { "userData": "#!old" } }))
        .await;
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().late = Some("GET nodes/_/validate");
    env.edit(
        1,
        json!({ "spec": { "image": image(), "userData": { "name": "data" } } }),
    )
    .await;
    let is_validation = |asked: &String| asked.ends_with("validate");
    while !env.interceptor.log().asked[before..].iter().any(is_validation) {
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(2)).await;
    // Thirteen seconds before the order, and delivered by the watch at once.
    let changed = Patch::Merge(json!({ "stringData": { "userData": "#!new" } }));
    let secrets = env.api::<Secret>();
    secrets.patch("data", &PatchParams::default(), &changed).await.unwrap();
    Phase::Provision.end(&env, 1).await;
    let disk = env.machine(1, |machine| machine.disk.clone()).unwrap();
    assert_eq!(disk.config_drive.unwrap()["user_data"], "#!new");
}

const INSPECT: &str = "PUT nodes/_/states/provision inspect";

/// An inspection is repeated after its backoff from the cached host, and boots another system on a machine that is paused.
#[tokio::test(start_paused = true)]
async fn paused_machine_is_not_inspected_again_though_the_watch_is_late() {
    for change in [
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
        json!({ "spec": { "externallyProvisioned": true } }),
    ] {
        let env = TestEnv::new(Setup::default());
        env.set_faults(1, &[MachineFault::InspectionError]);
        env.host(1, json!({})).await;
        let has_failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count == 1);
        env.until(1, "failed inspection", has_failed).await;
        // The program starts again, and its watch delivers the next edit only.
        let frozen = Rule::at(1, Fault::WatchFrozen { after: 1 });
        let frozen = frozen.verb("watch").resource("baremetalhosts");
        env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(frozen));
        env.interceptor.kill();
        sleep(Duration::from_secs(5)).await;
        env.edit(1, json!({ "metadata": { "labels": { "seen": "yes" } } }))
            .await;
        sleep(Duration::from_secs(5)).await;
        env.edit(1, change.clone()).await;
        let before = env.interceptor.log().asked.len();
        // Longer than the first backoff, shorter than the silence after which a watch is replaced.
        sleep(Duration::from_secs(120)).await;
        let asked = env.interceptor.log().asked.split_off(before);
        assert!(!asked.iter().any(|asked| asked == INSPECT), "{change}: {asked:?}");
    }
}
