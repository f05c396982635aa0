//! One object of each kind with every member set, hand-written from objects that the Go manager stores. The tests check
//! that types, schema and wire format agree.

use serde_json::{Value, json};

use super::definitions;
use crate::crd::Version;

const SAMPLES: [&str; 13] = [
    include_str!("samples/baremetalhost.json"),
    include_str!("samples/baremetalswitch.json"),
    include_str!("samples/bmceventsubscription.json"),
    include_str!("samples/dataimage.json"),
    include_str!("samples/firmwareschema.json"),
    include_str!("samples/hardwaredata.json"),
    include_str!("samples/hostclaim.json"),
    include_str!("samples/hostdeploypolicy.json"),
    include_str!("samples/hostfirmwarecomponents.json"),
    include_str!("samples/hostfirmwaresettings.json"),
    include_str!("samples/hostnetworkattachment.json"),
    include_str!("samples/hostupdatepolicy.json"),
    include_str!("samples/preprovisioningimage.json"),
];

/// Each definition's version with its sample.
fn samples() -> Vec<(Version, Value)> {
    let objects: Vec<Value> = SAMPLES.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    definitions()
        .into_iter()
        .map(|crd| {
            let sample = objects.iter().find(|object| object["kind"] == crd.kind).unwrap();
            (crd.versions.into_iter().next().unwrap(), sample.clone())
        })
        .collect()
}

/// Members of the schema that no value sets.
fn unset(path: &str, schema: &Value, values: &[&Value], found: &mut Vec<String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let below: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if below.is_empty() {
            found.push(path);
        } else {
            unset(&path, member, &below, found);
        }
    }
    if let Some(items) = schema.get("items") {
        let below: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        unset(path, items, &below, found);
    }
    if let Some(entries) = schema.get("additionalProperties") {
        let below: Vec<&Value> = values
            .iter()
            .filter_map(|value| value.as_object())
            .flat_map(|map| map.values())
            .collect();
        unset(path, entries, &below, found);
    }
}

#[test]
fn an_object_with_every_member_survives_decoding_and_encoding() {
    for (version, sample) in samples() {
        assert_eq!((version.reencode)(&sample).unwrap(), sample);
    }
}

#[test]
fn samples_set_every_member_of_the_schemas() {
    let mut found = Vec::new();
    for (version, sample) in samples() {
        let kind = sample["kind"].as_str().unwrap().to_owned();
        unset(&kind, &(version.schema)(), &[&sample], &mut found);
    }
    let silent = ["HostDeployPolicy.status", "HostUpdatePolicy.status"];
    found.retain(|path| !silent.contains(&path.as_str()));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_status_is_written_with_the_empty_members_that_the_go_manager_writes() {
    let host: super::v1alpha1::BareMetalHost = serde_json::from_value(json!({
        "spec": { "online": true },
        "status": {
            "operationalStatus": "OK", "errorMessage": "", "poweredOn": false,
            "provisioning": { "state": "unmanaged", "ID": "" },
        },
    }))
    .unwrap();
    let never = json!({ "start": null, "end": null });
    assert_eq!(
        serde_json::to_value(&host).unwrap()["status"],
        json!({
            "operationalStatus": "OK", "errorMessage": "", "poweredOn": false,
            "errorCount": 0, "provisioningFailCount": 0,
            "goodCredentials": {}, "triedCredentials": {},
            "operationHistory": { "register": never, "inspect": never, "provision": never, "deprovision": never },
            "provisioning": { "state": "unmanaged", "ID": "", "image": { "url": "" } },
        })
    );
}

#[test]
fn absent_raid_volumes_differ_from_none_and_null_is_absent() {
    let written = |raid: Value| {
        let host = json!({ "spec": { "online": true, "raid": raid } });
        let host: super::v1alpha1::BareMetalHost = serde_json::from_value(host).unwrap();
        serde_json::to_value(&host).unwrap()["spec"]["raid"].clone()
    };
    assert_eq!(
        written(json!({ "hardwareRAIDVolumes": [] })),
        json!({ "hardwareRAIDVolumes": [] })
    );
    assert_eq!(written(json!({ "hardwareRAIDVolumes": null })), json!({}));
}

#[test]
fn an_unknown_provisioning_state_is_kept() {
    use super::v1alpha1::ProvisioningState;
    for (text, state) in [
        ("", ProvisioningState::None),
        ("externally provisioned", ProvisioningState::ExternallyProvisioned),
        ("dreaming", ProvisioningState::Other("dreaming".to_owned())),
    ] {
        assert_eq!(serde_json::from_value::<ProvisioningState>(json!(text)).unwrap(), state);
        assert_eq!(serde_json::to_value(&state).unwrap(), json!(text));
        assert_eq!(state.to_string(), text);
    }
}
