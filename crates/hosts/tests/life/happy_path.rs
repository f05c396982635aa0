//! The life cycle without disturbance.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_ironic::model::state::PowerState;
use metal3_sim_bmc::fault::Fault;
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

/// The BMC reports the hardware: the machine is not switched on before its first cleaning.
#[tokio::test(start_paused = true)]
async fn host_is_inspected_by_its_bmc_without_a_boot() {
    let env = TestEnv::new(Setup::default());
    // An agent would not respond.
    env.set_faults(1, &[Fault::NoBoot]);
    let found = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.hardware.is_some());
    env.host(1, json!({ "inspectionMode": "fast", "online": false })).await;
    env.until(1, "hardware", found).await;
    let host = env.get(1).await.unwrap();
    let hardware = host.status.hardware.unwrap();
    let cpu = hardware.cpu.unwrap();
    assert!(cpu.count.is_some() && cpu.clock_megahertz.is_some(), "{cpu:?}");
    let macs: Vec<_> = hardware.nics.into_iter().filter_map(|card| card.mac).collect();
    assert_eq!(macs, env.machine(1, |machine| machine.macs()));
    assert!(!hardware.storage.is_empty() && hardware.system_vendor.is_some());
    env.set_faults(1, &[]);
    env.until_state(1, "available").await;
    // An agent inspects it once this is asked for.
    env.edit(
        1,
        json!({ "spec": { "inspectionMode": "agent" }, "metadata": { "annotations": { "inspect.metal3.io": "" } } }),
    )
    .await;
    let has_path = |host: Option<&BareMetalHost>| {
        host.and_then(|host| host.status.hardware.as_ref())
            .is_some_and(|found| {
                found
                    .storage
                    .iter()
                    .any(|disk| disk.name.as_deref().is_some_and(|name| name.starts_with("/dev/")))
            })
    };
    env.until(1, "inventory of an agent", has_path).await;
    env.until_state(1, "available").await;
}

#[tokio::test(start_paused = true)]
async fn failed_inspection_by_the_bmc_is_reported_and_repeated() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/provision inspect", 409));
    env.host(1, json!({ "inspectionMode": "fast" })).await;
    env.until_state(1, "inspecting").await;
    env.set_faults(1, &[Fault::DeadBmc]);
    env.interceptor.log().rejected = None;
    let has_failed =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type == Some(ErrorType::Inspection));
    env.until(1, "error", has_failed).await;
    env.set_faults(1, &[]);
    env.until_state(1, "available").await;
}
