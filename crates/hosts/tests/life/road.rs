//! The main road.

use metal3_api::metal3::v1alpha1::ProvisioningState;
use metal3_ironic::model::state::PowerState;
use serde_json::json;

use crate::lab::{Lab, Setup};

#[tokio::test(start_paused = true)]
async fn a_host_goes_from_an_address_to_an_image_and_back_and_is_gone() {
    let lab = Lab::new(Setup::default());
    lab.host(1, json!({})).await;
    lab.until_state(1, "available").await;
    let image = json!({ "url": "http://images.example/disk.raw", "checksum": "c".repeat(64), "checksumType": "sha256",
        "format": "raw" });
    lab.edit(1, json!({ "spec": { "image": image } })).await;
    lab.until(1, "provisioned host that runs", |host| {
        host.is_some_and(|host| {
            let status = &host.status;
            status.provisioning.state == ProvisioningState::Provisioned && status.powered_on
        })
    })
    .await;
    lab.machine(1, |machine| {
        assert_eq!(machine.power, PowerState::On);
        assert_eq!(machine.disk.as_ref().unwrap().source, "http://images.example/disk.raw");
        assert_eq!(machine.tally.written, 1);
    });
    lab.edit(1, json!({ "spec": { "image": null } })).await;
    lab.until_state(1, "available").await;
    lab.machine(1, |machine| assert!(machine.disk.is_none()));
    lab.delete(1).await;
    lab.until(1, "end", |host| host.is_none()).await;
    assert!(lab.node(1).await.is_none());
}
