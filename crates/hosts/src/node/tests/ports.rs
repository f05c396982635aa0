//! The ports of a node.

use metal3_api::metal3::v1alpha1::HardwareDetails;
use metal3_ironic::model::port::Port;
use metal3_ironic::model::state::ProvisionState;
use serde_json::{Value, json};

use super::super::ports::{may_be_created, missing, wanted};
use super::host;

fn hardware(nics: Value) -> HardwareDetails {
    serde_json::from_value(json!({"nics": nics})).unwrap()
}

fn found(addresses: &[&str]) -> Vec<Port> {
    let node = "b74c1d12-05c4-4f4e-9c00-5e0e3a8d9fd7";
    let port =
        |address: &&str| serde_json::from_value(json!({"uuid": "p", "node_uuid": node, "address": address})).unwrap();
    addresses.iter().map(port).collect()
}

#[test]
fn every_address_gets_one_port_and_the_boot_address_boots() {
    let nics = json!([
        {"name": "eno1", "mac": "52:54:00:11:22:01", "ip": "192.0.2.1"},
        {"name": "eno1", "mac": "52:54:00:11:22:01", "ip": "2001:db8::1"},
        {"name": "eno2", "mac": "52:54:00:11:22:02", "pxe": true},
        {"name": "eno3", "mac": "52:54:00:11:22:03"},
        {"name": "ib0", "mac": "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0d:3b:5f"},
        {"name": "lo", "mac": "none"},
        {"name": "dummy"},
    ]);
    let rows = [
        (json!({}), Value::Null, vec![]),
        (json!({"bootMACAddress": ""}), json!([]), vec![]),
        (
            json!({"bootMACAddress": "52:54:00:11:22:0A"}),
            Value::Null,
            vec![("52:54:00:11:22:0a", true)],
        ),
        (
            json!({"bootMACAddress": "52:54:00:11:22:01"}),
            nics.clone(),
            vec![
                ("52:54:00:11:22:01", true),
                ("52:54:00:11:22:02", true),
                ("52:54:00:11:22:03", false),
            ],
        ),
        (
            json!({}),
            nics,
            vec![
                ("52:54:00:11:22:01", false),
                ("52:54:00:11:22:02", true),
                ("52:54:00:11:22:03", false),
            ],
        ),
    ];
    for (spec, nics, expected) in rows {
        let hardware = (!nics.is_null()).then(|| hardware(nics));
        let ports = wanted(&host(spec.clone()), hardware.as_ref()).unwrap();
        let shown: Vec<_> = ports
            .iter()
            .map(|port| (port.address.to_string(), port.pxe_enabled))
            .collect();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(address, boots)| (address.to_owned(), boots))
            .collect();
        assert_eq!(shown, expected, "{spec}");
    }
}

#[test]
fn existing_port_is_not_created_again_in_any_case() {
    let host = host(json!({"bootMACAddress": "52:54:00:AB:CD:EF"}));
    let lacking = |addresses: &[&str]| missing(&host, None, &found(addresses)).unwrap().len();
    assert_eq!(lacking(&[]), 1);
    assert_eq!(lacking(&["52:54:00:11:22:01"]), 1);
    assert_eq!(lacking(&["52:54:00:11:22:01", "52:54:00:ab:cd:ef"]), 0);
}

#[test]
fn ports_are_created_in_stable_states() {
    let may: Vec<_> = ProvisionState::KNOWN
        .iter()
        .filter(|state| may_be_created(state))
        .map(ProvisionState::as_str)
        .collect();
    assert_eq!(
        may,
        [
            "enroll",
            "manageable",
            "inspect failed",
            "clean failed",
            "available",
            "deploy failed",
            "active",
            "error",
            "adopt failed",
            "service failed"
        ]
    );
    assert!(!may_be_created(&ProvisionState::Other("polishing".to_owned())));
}
