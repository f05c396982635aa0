//! `clusterctl move` as the target sees it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::json;
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};

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
    const PAUSED: &str = "baremetalhost.metal3.io/paused";
    for online in [true, false] {
        let env = TestEnv::new(Setup::default());
        env.host(1, json!({ "online": online })).await;
        env.until_state(1, "available").await;
        sleep(Duration::from_mins(10)).await;
        let (there, machine) = (env.get(1).await.unwrap(), env.machine(1, |machine| machine.counts));
        env.edit(
            1,
            json!({ "metadata": { "annotations": { PAUSED: "metal3.io/capm3" } } }),
        )
        .await;
        env.delete(1).await;
        env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
        env.until(1, "end", |host| host.is_none()).await;
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
        let status = serde_json::to_string(&there.status).unwrap();
        let annotations = json!({ PAUSED: "metal3.io/capm3", "baremetalhost.metal3.io/status": status });
        let moved =
            json!({ "metadata": { "name": there.metadata.name, "annotations": annotations }, "spec": there.spec });
        env.make::<BareMetalHost>(moved).await;
        sleep(Duration::from_secs(5)).await;
        env.edit(1, json!({ "metadata": { "annotations": { PAUSED: null } } }))
            .await;
        sleep(Duration::from_hours(1)).await;
        env.until_state(1, "available").await;
        let log = env.interceptor.log();
        assert_eq!(requests(&env, &ORDERS), before.0, "online: {online}; {:?}", log.asked);
        assert_eq!(requests(&env, &["PATCH"]) - before.1, 1, "the login");
        env.machine(1, |here| assert_eq!(here.counts, machine));
    }
}
