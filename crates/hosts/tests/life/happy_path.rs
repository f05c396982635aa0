//! The life cycle without disturbance.

use metal3_ironic::model::state::PowerState;
use serde_json::json;

use crate::env::{Setup, TestEnv};
use crate::phases::{Phase, SOURCE, runs};

#[tokio::test(start_paused = true)]
async fn host_is_enrolled_provisioned_deprovisioned_and_deleted() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    Phase::Provision.begin(&env, 1).await;
    env.until(1, "provisioned host that runs", runs).await;
    env.machine(1, |machine| {
        assert_eq!(machine.power, PowerState::On);
        assert_eq!(machine.disk.as_ref().unwrap().source, SOURCE);
        assert_eq!(machine.counts.written, 1);
    });
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until_state(1, "available").await;
    env.machine(1, |machine| assert!(machine.disk.is_none()));
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(env.node(1).await.is_none());
}
