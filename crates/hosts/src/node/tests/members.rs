//! Each member of a host, removed alone, changes its node, its instance or a plan.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_harness::without_effect;
use serde_json::{Value, json};

use super::super::cleaning::is_cleaned;
use super::super::{Deployment, Instance, config_drive, hints, ports, profile, raid};
use super::record::{Record, lines};
use super::{PASSWORD, credentials, host, record_of, settings};
use crate::tests::fixture::{Fixture, MAC, node};

/// Members with a row of another class, or that other controllers read.
const ELSEWHERE: [&str; 6] = [
    "spec.consumerRef.",
    "spec.description",
    "spec.firmware.",
    "spec.image.ociAuthSecretName",
    "spec.networkInterfaces[].",
    "spec.taints[].",
];

/// Hosts that together have every other member.
fn documents() -> Vec<Value> {
    let hints = json!({
        "deviceName": "/dev/sda", "hctl": "1:0:0:0", "model": "m", "vendor": "v", "serialNumber": "s", "minSizeGigabytes": 9,
        "wwn": "w", "wwnWithExtension": "we", "wwnVendorExtension": "e", "rotational": true,
    });
    let image = json!({ "url": "http://192.0.2.9/os.img", "checksum": "0".repeat(64), "checksumType": "sha256", "format": "raw" });
    let bmc = json!({
        "address": "redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc",
        "disableCertificateVerification": true,
    });
    let with = |spec: Value| {
        let mut all = json!({ "online": true, "bmc": bmc });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        json!({ "spec": all })
    };
    let named = |name: &str| json!({ "name": name });
    vec![
        with(json!({
            "image": image, "rootDeviceHints": hints, "userData": named("u"), "metaData": named("m"), "networkData": named("n"),
            "preprovisioningNetworkDataName": "a",
        })),
        with(json!({ "customDeploy": { "method": "install" } })),
        with(json!({ "bootMACAddress": "52:54:00:00:00:01", "bootMode": "legacy", "architecture": "aarch64" })),
        with(json!({ "automatedCleaningMode": "disabled", "disablePowerOff": true })),
        with(
            json!({ "cleaning": { "keepDisks": [{ "serialNumber": "s", "wwn": "w", "wwnWithExtension": "we" }], "when": "first" } }),
        ),
        with(json!({ "inspectionMode": "fast", "hardwareProfile": "dell" })),
        with(
            json!({ "raid": { "hardwareRAIDVolumes": [{ "level": "1", "name": "n", "sizeGibibytes": 9, "rotational": true,
            "numberOfPhysicalDisks": 1, "controller": "c", "physicalDisks": ["d"] }] } }),
        ),
        with(
            json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": 9, "rootVolume": true,
            "physicalDisks": [hints, hints] }] } }),
        ),
        // Those of the fixtures, whose nodes need no change.
        json!({ "spec": {
            "online": true, "bootMACAddress": MAC, "architecture": "x86_64", "cleaning": { "when": "first" },
            "bmc": { "address": "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc" },
        } }),
        json!({ "spec": {
            "online": true, "bootMACAddress": MAC, "architecture": "x86_64", "externallyProvisioned": true,
            "bmc": { "address": "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc" },
        } }),
    ]
}

/// The node, the instance and the plans of a host, with all values. `None` when the host does not decode.
fn outcome(document: &Value) -> Option<String> {
    let spec = &document["spec"];
    let planned = |state: &str, node: &str, power: &str| {
        let on = power == "power on";
        let mut fixture = Fixture::new(state).status(json!({ "poweredOn": on }));
        fixture.host["spec"] = spec.clone();
        fixture.node_with(node, json!({ "power_state": power })).live()
    };
    let provisioned = planned("provisioned", "active", "power on");
    let used = serde_json::from_value::<BareMetalHost>(provisioned.host.clone()).ok()?;
    let host = host(spec.clone());
    let record = record_of(&host, &credentials("admin", PASSWORD), &settings()).map(|record| {
        let new = record.creation();
        let parts = [new.driver_info, new.properties, new.more].map(Value::Object);
        format!("{} {} {parts:?} {:?}", new.name, new.driver, new.disable_power_off)
    });
    let available = Record::new(&json!({ "provision_state": "available" }));
    let instance = Instance::of(&host, &Deployment::asked(&host), &settings());
    let instance = instance.map(|instance| (lines(&instance.changes(&available.shown()).patch), instance.steps()));
    let secrets = config_drive::references(&host).map(|all| {
        let names = [all.user_data, all.meta_data, all.network_data, all.agent_network];
        names.map(|name| name.map(str::to_owned))
    });
    let root = profile::root_device(&host).map(|hints| hints.map(|hints| hints::to_ironic(&hints)));
    let profile = super::super::BmcEndpoint::of(&host.spec.bmc.clone().unwrap_or_default().address, &settings());
    let shown = serde_json::from_value(node("manageable")).unwrap();
    let volumes = profile.and_then(|endpoint| raid::change(&host, &endpoint.profile(), &shown));
    let volumes = volumes.map(|change| change.map(|change| (change.logical_disks, change.steps.len())));
    let ports = ports::wanted(&host, None).map(|ports| ports.len());
    let plans = [
        provisioned,
        planned("available", "available", "power off"),
        planned("registering", "enroll", "power off"),
        planned("externally provisioned", "active", "power on"),
    ]
    .map(|fixture| fixture.summary());
    Some(format!(
        "{record:?} {instance:?} {secrets:?} {root:?} {volumes:?} {ports:?} {:?} {plans:?} {}",
        profile::choose(&host),
        is_cleaned(&used),
    ))
}

#[test]
fn each_member_of_a_host_changes_its_node_or_a_plan() {
    let mut silent = without_effect(("BareMetalHost", "v1alpha1"), &documents(), outcome);
    silent.retain(|path| !ELSEWHERE.iter().any(|known| path.starts_with(known)));
    // The namespace of a Secret is that of the host.
    silent.retain(|path| !path.ends_with("Data.namespace"));
    assert_eq!(silent, [""; 0]);
}
