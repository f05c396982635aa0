//! RAID volumes: made before a host is available, changed and removed by cleanings, and kept while an image runs.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::transport::Transport as _;
use metal3_sim_bmc::fault::Fault as MachineFault;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::env::{Setup, TestEnv};
use crate::phases::{image, runs};

const SET: &str = "PUT nodes/_/states/raid";
const CLEAN: &str = "PUT nodes/_/states/provision clean";

fn mirror(size: u32) -> Value {
    json!({ "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": size, "rootVolume": false }] })
}

fn volumes(host: &BareMetalHost) -> Value {
    serde_json::to_value(&host.status.provisioning.raid).unwrap()
}

fn done(env: &TestEnv, what: &str) -> usize {
    env.interceptor.log().done.get(what).copied().unwrap_or_default()
}

async fn until_made(env: &TestEnv, expected: &Value) {
    let is_made = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            let status = &host.status;
            status.provisioning.state.to_string() == "available"
                && status.error_message.is_empty()
                && volumes(host) == *expected
        })
    };
    env.until(1, "available host with its volumes", is_made).await;
}

/// The sizes of the volumes that Ironic made.
async fn made(env: &TestEnv) -> Vec<Value> {
    let request = http::Request::get("/v1/nodes/default~host-1").header("X-OpenStack-Ironic-API-Version", "1.95");
    let response = env.ironic.exchange(request.body(Vec::new()).unwrap()).await.unwrap();
    let node: Value = serde_json::from_slice(response.body()).unwrap();
    let disks = node["raid_config"]["logical_disks"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    disks.iter().map(|disk| disk["size_gb"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn volumes_are_made_changed_and_removed_before_the_host_is_available() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "raid": mirror(20) })).await;
    until_made(&env, &mirror(20)).await;
    assert_eq!((done(&env, SET), done(&env, CLEAN)), (1, 1));
    assert_eq!(made(&env).await, [20]);
    assert_eq!(env.node(1).await.unwrap().raid_interface.as_deref(), Some("agent"));
    env.edit(1, json!({ "spec": { "raid": mirror(30) } })).await;
    until_made(&env, &mirror(30)).await;
    assert_eq!((done(&env, SET), done(&env, CLEAN)), (2, 2));
    assert_eq!(made(&env).await, [30]);
    env.edit(1, json!({ "spec": { "raid": null } })).await;
    until_made(&env, &json!({ "softwareRAIDVolumes": [] })).await;
    assert_eq!(made(&env).await, [0; 0]);
    assert!(env.node(1).await.unwrap().target_raid_config.0.is_empty());
    assert_eq!((done(&env, SET), done(&env, CLEAN)), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn failed_cleaning_is_reported_and_repeated_until_the_volumes_are_as_asked() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "raid": mirror(20) })).await;
    until_made(&env, &mirror(20)).await;
    for (asked, recorded, sizes) in [
        (mirror(30), mirror(30), vec![json!(30)]),
        (Value::Null, json!({ "softwareRAIDVolumes": [] }), vec![]),
    ] {
        env.set_faults(1, &[MachineFault::CleanStepFails]);
        env.edit(1, json!({ "spec": { "raid": asked } })).await;
        let has_failed = |host: Option<&BareMetalHost>| {
            host.is_some_and(|host| {
                let status = serde_json::to_value(&host.status).unwrap();
                status["errorType"] == "preparation error" && status["errorCount"].as_i64() >= Some(2)
            })
        };
        env.until(1, "failures", has_failed).await;
        env.set_faults(1, &[]);
        until_made(&env, &recorded).await;
        assert_eq!(made(&env).await, sizes, "{asked}");
    }
}

/// A running machine is not touched, and disks that are not to be cleaned keep their volumes.
#[tokio::test(start_paused = true)]
async fn volumes_of_a_running_host_are_changed_after_it_is_deprovisioned() {
    for (mode, changed, cleanings) in [
        ("metadata", false, 2),
        ("metadata", true, 2),
        ("disabled", false, 1),
        ("disabled", true, 2),
    ] {
        let env = TestEnv::new(Setup::default());
        env.host(
            1,
            json!({ "raid": mirror(20), "automatedCleaningMode": mode, "image": image() }),
        )
        .await;
        env.until(1, "running host", runs).await;
        let size = if changed { 30 } else { 20 };
        env.edit(1, json!({ "spec": { "raid": mirror(size) } })).await;
        tokio::time::sleep(std::time::Duration::from_hours(1)).await;
        assert_eq!(done(&env, CLEAN), 1, "{mode}");
        env.edit(1, json!({ "spec": { "image": null } })).await;
        until_made(&env, &mirror(size)).await;
        assert_eq!(done(&env, CLEAN), cleanings, "{mode}, changed: {changed}");
        assert_eq!(made(&env).await, [size], "{mode}");
    }
}

/// The new node has no volumes, and the root device is the one that is not there.
#[tokio::test(start_paused = true)]
async fn root_volume_is_made_again_before_the_image_when_ironic_loses_its_database_before_the_deployment() {
    let root = json!({ "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": 20, "rootVolume": true }] });
    for seconds in [1, 20] {
        let env = TestEnv::new(Setup::default());
        env.host(1, json!({ "raid": root })).await;
        until_made(&env, &root).await;
        env.edit(1, json!({ "spec": { "image": image() } })).await;
        env.until_state(1, "provisioning").await;
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
        assert_eq!(
            env.get(1).await.unwrap().status.provisioning.state.to_string(),
            "provisioning"
        );
        env.ironic.lose_database();
        env.until(1, "running host", runs).await;
        assert_eq!(made(&env).await, [20], "lost after {seconds} s");
        assert_eq!(volumes(&env.get(1).await.unwrap()), root, "lost after {seconds} s");
    }
}

/// Makes volumes and removes them. Returns the numbers of requests to Ironic and of writes of the status.
async fn life(case: Case) -> (usize, u64) {
    let env = TestEnv::new(Setup::default());
    case.inject(&env, Some("baremetalhosts/status"));
    env.host(1, json!({ "raid": mirror(20), "online": false })).await;
    until_made(&env, &mirror(20)).await;
    assert_eq!(made(&env).await, [20], "{case:?}");
    env.edit(1, json!({ "spec": { "raid": null } })).await;
    until_made(&env, &json!({ "softwareRAIDVolumes": [] })).await;
    assert_eq!(made(&env).await, [0; 0], "{case:?}");
    assert!(done(&env, CLEAN) <= 3, "{case:?}: {:#?}", env.interceptor.log().asked);
    let writes = env.status_writes();
    (env.interceptor.log().asked.len(), writes)
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_or_a_write_ends_with_the_volumes_that_are_asked_for() {
    for case in Case::all(life(Case::NoFault).await, 7) {
        life(case).await;
    }
}
