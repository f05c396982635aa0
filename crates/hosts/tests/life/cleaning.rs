//! Disks that a host keeps: never erased, whatever fails in its life, and erased once the user lets go of them.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_bmc::profile::{BUILT_IN, parse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::env::{Setup, TestEnv};
use crate::phases::{image, runs};

const SYSTEM: &str = "/dev/sda";
const DATA: &str = "/dev/sdb";
const DELETED: &str = "PUT nodes/_/states/provision deleted";

fn by_serial(number: &Value) -> Value {
    json!({ "serialNumber": number })
}

/// A machine with a disk for the system and one for data, both with data. Returns their serial numbers.
fn filled(env: &TestEnv) -> [Value; 2] {
    env.machine(1, |machine| {
        machine.profile = parse(BUILT_IN).unwrap().remove("storage").unwrap();
        machine.data = [SYSTEM, DATA].map(|disk| (disk.to_owned(), "data".to_owned())).into();
        let disks = &machine.inventory()["inventory"]["disks"];
        [0, 1].map(|index: usize| disks[index]["serial"].clone())
    })
}

fn left(env: &TestEnv) -> Vec<String> {
    env.machine(1, |machine| machine.data.keys().cloned().collect())
}

fn has_system(env: &TestEnv) -> bool {
    env.machine(1, |machine| machine.disk.is_some())
}

fn is_available(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| {
        host.status.provisioning.state.to_string() == "available" && host.status.error_message.is_empty()
    })
}

/// The orders that erase, each with the reason of the condition that the host had then.
fn announced(env: &TestEnv) -> Arc<Mutex<Vec<(String, String)>>> {
    let (reason, orders) = (Arc::new(Mutex::new(String::new())), Arc::<Mutex<Vec<_>>>::default());
    let said = Arc::clone(&reason);
    env.cluster.observe_writes(move |write| {
        if write.object["kind"] == "BareMetalHost" {
            let conditions = write.object["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let plan = conditions.iter().find(|one| one["type"] == "CleaningPlan");
            *said.lock() = plan.map_or_else(String::new, |one| one["reason"].as_str().unwrap_or_default().to_owned());
        }
    });
    let found = Arc::clone(&orders);
    env.interceptor.observe(Arc::new(move |request, node| {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let target = body["target"].as_str().unwrap_or_default();
        if matches!(target, "deleted" | "provide") && node["automated_clean"] != false {
            found.lock().push((target.to_owned(), reason.lock().clone()));
        }
    }));
    orders
}

/// Enrols a host that keeps its second disk.
async fn enrolled(env: &TestEnv) -> [Value; 2] {
    let [system, data] = filled(env);
    let kept = json!({ "keepDisks": [by_serial(&data)] });
    env.host(1, json!({ "rootDeviceHints": by_serial(&system), "cleaning": kept }))
        .await;
    env.until(1, "available host", is_available).await;
    [system, data]
}

async fn deploy_and_remove(env: &TestEnv) {
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until(1, "running host", runs).await;
    assert!(has_system(env));
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until(1, "available host", is_available).await;
}

#[tokio::test(start_paused = true)]
async fn kept_disk_outlives_deployments_until_the_user_lets_go_of_it() {
    let env = TestEnv::new(Setup::default());
    env.admit();
    let orders = announced(&env);
    enrolled(&env).await;
    for _ in 0..2 {
        deploy_and_remove(&env).await;
        assert_eq!(left(&env), [DATA]);
        assert!(!has_system(&env), "the other disk is erased");
    }
    assert!(!orders.lock().is_empty());
    let said = |orders: &[(String, String)], reason: &str| orders.iter().all(|(_, said)| said == reason);
    assert!(said(&orders.lock(), "DisksKept"), "{:?}", orders.lock());
    let node = env.node(1).await.unwrap();
    assert_eq!(
        node.properties
            .get("skip_block_devices")
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        4
    );
    orders.lock().clear();
    env.edit(1, json!({ "spec": { "cleaning": null } })).await;
    deploy_and_remove(&env).await;
    assert_eq!(left(&env), [""; 0]);
    assert!(said(&orders.lock(), ""), "{:?}", orders.lock());
    let node = env.node(1).await.unwrap();
    assert!(node.properties.get("skip_block_devices").is_none());
}

#[tokio::test(start_paused = true)]
async fn host_that_keeps_an_unknown_disk_runs_on_until_that_is_corrected() {
    let env = TestEnv::new(Setup::default());
    let [_, data] = enrolled(&env).await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until(1, "running host", runs).await;
    let removed = json!({ "image": null, "cleaning": { "keepDisks": [by_serial(&json!("D9"))] } });
    env.edit(1, json!({ "spec": removed })).await;
    let is_refused = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status
                .error_message
                .contains("spec.cleaning.keepDisks[0] names no disk")
        })
    };
    env.until(1, "error", is_refused).await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert!(has_system(&env));
    assert_eq!(env.node(1).await.unwrap().provision_state, ProvisionState::Active);
    assert_eq!(env.interceptor.log().done.get(DELETED), None);
    env.edit(
        1,
        json!({ "spec": { "cleaning": { "keepDisks": [by_serial(&data)] } } }),
    )
    .await;
    env.until(1, "available host", is_available).await;
    assert_eq!((left(&env), has_system(&env)), (vec![DATA.to_owned()], false));
}

#[tokio::test(start_paused = true)]
async fn machine_that_is_cleaned_first_keeps_what_its_later_systems_leave() {
    let env = TestEnv::new(Setup::default());
    filled(&env);
    env.host(1, json!({ "cleaning": { "when": "first" } })).await;
    env.until(1, "available host", is_available).await;
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until(1, "running host", runs).await;
    assert_eq!(left(&env), [""; 0], "cleaned before the first deployment");
    env.machine(1, |machine| {
        machine.data.insert(DATA.to_owned(), "of the system".to_owned())
    });
    for _ in 0..2 {
        env.edit(1, json!({ "spec": { "image": null } })).await;
        env.until(1, "available host", is_available).await;
        env.edit(1, json!({ "spec": { "image": image() } })).await;
        env.until(1, "running host", runs).await;
    }
    // A node that is made again is not cleaned, either.
    env.ironic.lose_database();
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until(1, "available host", is_available).await;
    assert_eq!(left(&env), [DATA]);
    assert_eq!(env.machine(1, |machine| machine.counts.erased), 1);
}

#[tokio::test(start_paused = true)]
async fn kept_disk_outlives_a_lost_database() {
    for seconds in [1, 30, 70] {
        let env = TestEnv::new(Setup::default());
        enrolled(&env).await;
        env.edit(1, json!({ "spec": { "image": image() } })).await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        env.ironic.lose_database();
        env.until(1, "running host", runs).await;
        env.edit(1, json!({ "spec": { "image": null } })).await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        env.ironic.lose_database();
        env.until(1, "available host", is_available).await;
        assert!(left(&env).contains(&DATA.to_owned()), "lost after {seconds} s");
    }
}

/// Enrols, deploys and deprovisions. Returns the numbers of requests to Ironic and of writes of the status.
async fn life(case: Case) -> (usize, u64) {
    let env = TestEnv::new(Setup::default());
    let orders = announced(&env);
    case.inject(&env, Some("baremetalhosts/status"));
    enrolled(&env).await;
    deploy_and_remove(&env).await;
    assert_eq!(left(&env), [DATA], "{case:?}");
    assert!(!has_system(&env), "{case:?}");
    let is_said = orders.lock().iter().all(|(_, said)| said == "DisksKept");
    assert!(is_said, "{case:?}: {:?}", orders.lock());
    let writes = env.status_writes();
    (env.interceptor.log().asked.len(), writes)
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_or_a_write_spares_the_kept_disk() {
    for case in Case::all(life(Case::NoFault).await, 5) {
        life(case).await;
    }
}
