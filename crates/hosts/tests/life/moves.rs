//! `clusterctl move`, as source and target see it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic::model::state::PowerState;
use serde_json::json;
use tokio::time::sleep;

use crate::disturbances::provisioned;
use crate::env::{Setup, TestEnv};
use crate::phases::runs;

const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// The host leaves the source as `clusterctl` takes it away: paused, then deleted. Returns what the target gets.
async fn take_away(env: &TestEnv) -> BareMetalHost {
    let host = env.get(1).await.unwrap();
    env.edit(
        1,
        json!({ "metadata": { "annotations": { PAUSED: "metal3.io/capm3" } } }),
    )
    .await;
    env.delete(1).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    env.until(1, "end", |host| host.is_none()).await;
    host
}

/// Creates the host in the target as `clusterctl` does: paused, with its status in an annotation; then it continues.
async fn bring(env: &TestEnv, host: &BareMetalHost) {
    let status = serde_json::to_string(&host.status).unwrap();
    let annotations = json!({ PAUSED: "metal3.io/capm3", "baremetalhost.metal3.io/status": status });
    let moved = json!({ "metadata": { "name": host.metadata.name, "annotations": annotations }, "spec": host.spec });
    env.make::<BareMetalHost>(moved).await;
    sleep(Duration::from_secs(5)).await;
    env.edit(1, json!({ "metadata": { "annotations": { PAUSED: null } } }))
        .await;
}

/// Creates the host in the target without its status: `clusterctl` knows only that of a machine's host.
async fn bring_without_status(env: &TestEnv, host: &BareMetalHost) {
    let moved = json!({ "metadata": { "name": host.metadata.name }, "spec": host.spec });
    env.make::<BareMetalHost>(moved).await;
}

/// Requests to Ironic with one of these methods.
fn requests(env: &TestEnv, methods: &[&str]) -> u64 {
    let audit = env.ironic.audit();
    let counts = audit
        .counts()
        .filter(|((method, _), _)| methods.contains(&method.as_str()));
    counts.map(|(_, number)| number).sum()
}

#[tokio::test(start_paused = true)]
async fn moved_free_host_gets_no_order() {
    for online in [true, false] {
        let env = TestEnv::new(Setup::default());
        env.host(1, json!({ "online": online })).await;
        env.until_state(1, "available").await;
        sleep(Duration::from_mins(10)).await;
        let machine = env.machine(1, |machine| machine.counts);
        let there = take_away(&env).await;
        // The target has a Secret of its own, so its version says nothing about the login that Ironic has.
        let secrets = env.api::<Secret>();
        let mut login = secrets.get("bmc-1").await.unwrap();
        let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        secrets.delete("bmc-1", &DeleteParams::default()).await.unwrap();
        secrets
            .patch("bmc-1", &PatchParams::default(), &released)
            .await
            .unwrap();
        login.metadata = ObjectMeta {
            name: login.metadata.name,
            labels: login.metadata.labels,
            ..ObjectMeta::default()
        };
        secrets.create(&PostParams::default(), &login).await.unwrap();
        const ORDERS: [&str; 3] = ["PUT", "POST", "DELETE"];
        let before = (requests(&env, &ORDERS), requests(&env, &["PATCH"]));
        bring(&env, &there).await;
        sleep(Duration::from_hours(1)).await;
        env.until_state(1, "available").await;
        let log = env.interceptor.log();
        assert_eq!(requests(&env, &ORDERS), before.0, "online: {online}; {:?}", log.asked);
        assert_eq!(requests(&env, &["PATCH"]) - before.1, 1, "the login");
        env.machine(1, |here| assert_eq!(here.counts, machine));
    }
}

#[tokio::test(start_paused = true)]
async fn moved_free_host_without_a_status_gets_no_order_unless_it_is_to_be_inspected() {
    for (has_data, asks) in [(true, false), (false, false), (true, true)] {
        let env = TestEnv::new(Setup::default());
        // Once it had an image, its node is available too.
        provisioned(&env, 1).await;
        env.edit(1, json!({ "spec": { "image": null, "online": false } })).await;
        env.until_state(1, "available").await;
        sleep(Duration::from_mins(10)).await;
        let machine = env.machine(1, |machine| machine.counts);
        let mut there = take_away(&env).await;
        if !has_data {
            let data = env.api::<HardwareData>();
            drop(
                data.delete(&there.metadata.name.clone().unwrap(), &DeleteParams::default())
                    .await,
            );
        }
        const ORDERS: [&str; 3] = ["PUT", "POST", "DELETE"];
        let before = requests(&env, &ORDERS);
        there.metadata.annotations = None;
        bring_without_status(&env, &there).await;
        if asks {
            env.edit(1, json!({ "metadata": { "annotations": { "inspect.metal3.io": "" } } }))
                .await;
        }
        env.until_state(1, "available").await;
        sleep(Duration::from_hours(1)).await;
        let here = env.get(1).await.unwrap();
        assert!(here.status.hardware.is_some(), "the inventory is known");
        let orders = requests(&env, &ORDERS) - before;
        if asks {
            assert!(orders > 0, "an inspection that is asked for is done");
            continue;
        }
        assert_eq!(orders, 0, "{:?}", env.interceptor.log().asked);
        env.machine(1, |here| assert_eq!(here.counts, machine));
    }
}

#[tokio::test(start_paused = true)]
async fn moving_host_is_not_touched_with_any_annotations() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    env.edit(
        1,
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3" } } }),
    )
    .await;
    sleep(Duration::from_secs(5)).await;
    const CHANGES: [&str; 4] = ["PUT", "PATCH", "POST", "DELETE"];
    let before = requests(&env, &CHANGES);
    let counts = env.machine(1, |machine| machine.counts);
    // All annotations are replaced by the one that marks the move; then the object is deleted.
    let stripped = json!({ "baremetalhost.metal3.io/paused": null, "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    env.edit(1, json!({ "metadata": { "annotations": stripped } })).await;
    env.interceptor.kill();
    env.delete(1).await;
    sleep(Duration::from_hours(1)).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    env.until(1, "end", |host| host.is_none()).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(requests(&env, &CHANGES), before);
    env.machine(1, |machine| {
        assert_eq!((machine.counts, machine.power.clone()), (counts, PowerState::On))
    });
}

#[tokio::test(start_paused = true)]
async fn moved_host_keeps_running_and_is_deprovisioned_on_request() {
    let env = TestEnv::new(Setup::default());
    provisioned(&env, 1).await;
    let counts = env.machine(1, |machine| machine.counts);
    let there = take_away(&env).await;
    bring(&env, &there).await;
    env.until(1, "host that runs here", runs).await;
    sleep(Duration::from_hours(1)).await;
    env.machine(1, |machine| assert_eq!(machine.counts, counts));
    let here = env.get(1).await.unwrap();
    assert_ne!(here.metadata.uid, there.metadata.uid);
    assert_eq!(env.node(1).await.unwrap().instance_uuid, there.metadata.uid);
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until_state(1, "available").await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
    let annotations = env.get(1).await.unwrap().metadata.annotations.unwrap_or_default();
    assert!(annotations.is_empty(), "{annotations:?}");
}
