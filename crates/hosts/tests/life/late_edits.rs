//! Edits that arrive after a reconcile has begun, before its request.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::{Phase, image};

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
