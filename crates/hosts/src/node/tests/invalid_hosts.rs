//! Invalid hosts, and the remedies in the messages.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::super::{BmcEndpoint, Credentials, InvalidHost, NodeSettings, name};
use super::{PASSWORD, VIRTUAL_MEDIA, bmc, credentials, host, merge, record_of, settings, values};

fn invalid(host: &BareMetalHost, settings: &NodeSettings) -> Option<InvalidHost> {
    record_of(host, &credentials("admin", PASSWORD), settings).err()
}

fn check(spec: &Value, settings: &NodeSettings, field: &str, words: &str) {
    let invalid = invalid(&host(spec.clone()), settings).unwrap_or_else(|| panic!("{spec} passes"));
    assert_eq!(invalid.field(), field, "{spec}");
    assert!(invalid.to_string().contains(words), "{spec}: {invalid}");
    assert!(!format!("{invalid} {invalid:?}").contains(PASSWORD));
}

#[test]
fn invalid_address_is_rejected_with_field_and_remedy() {
    let no_lab = NodeSettings {
        fake_hardware: false,
        ..settings()
    };
    let rows = [
        ("", "spec.bmc.address", "set bmc.address"),
        (
            "pigeon://loft",
            "spec.bmc.address",
            "Unknown BMC type 'pigeon' for address pigeon://loft; begin",
        ),
        ("redfish://[::1", "spec.bmc.address", "write it like redfish://"),
        ("redfish://under_score/x", "spec.bmc.address", "labels are letters"),
        ("fake://x", "spec.bmc.address", "--lab-fake-hardware"),
        ("FAKE://x", "spec.bmc.address", "--lab-fake-hardware"),
        ("redfish://192.0.2.1/x\ny", "spec.bmc.address", "control character"),
        (
            "redfish://192.0.2.1/x%0Ay",
            "driver_info/redfish_system_id",
            "control character",
        ),
    ];
    for (address, field, words) in rows {
        check(&json!({"bmc": bmc(address)}), &no_lab, field, words);
    }
    check(&json!({}), &no_lab, "spec.bmc.address", "is missing");
    let no_network = NodeSettings {
        provisioning_network_disabled: true,
        ..settings()
    };
    let words = "ipmi requires a provisioning network";
    check(
        &json!({"bmc": bmc("ipmi://192.0.2.1")}),
        &no_network,
        "spec.bmc.address",
        words,
    );
}

#[test]
fn unsupported_bmc_function_is_rejected_with_field_and_remedy() {
    let (ipmi, libvirt) = ("ipmi://192.0.2.1", "libvirt://192.0.2.1");
    let rows = [
        (
            ipmi,
            json!({"inspectionMode": "fast"}),
            "spec.inspectionMode",
            "set spec.inspectionMode to agent",
        ),
        (
            ipmi,
            json!({"bootMode": "UEFISecureBoot"}),
            "spec.bootMode",
            "set spec.bootMode to UEFI",
        ),
        (
            libvirt,
            json!({}),
            "spec.bootMACAddress",
            "libvirt requires a BootMACAddress value",
        ),
        (
            VIRTUAL_MEDIA,
            json!({"inspectionMode": "disabled"}),
            "spec.bootMACAddress",
            "or allow inspection",
        ),
        (
            libvirt,
            json!({"bootMACAddress": "x52:54:00:11:22:01"}),
            "spec.bootMACAddress",
            "write 6 pairs",
        ),
        (
            libvirt,
            json!({"bootMACAddress": "02:00:5e:10:00:00:00:01"}),
            "spec.bootMACAddress",
            "set the Ethernet address",
        ),
    ];
    for (address, mut spec, field, words) in rows {
        merge(&mut spec, &json!({"bmc": bmc(address)}));
        check(&spec, &settings(), field, words);
    }
}

#[test]
fn ramdisk_url_with_line_break_is_rejected() {
    let mut settings = settings();
    settings.ramdisks.usual.iso = Some("http://192.0.2.9/i\nroot=/dev/sda".to_owned());
    let invalid = invalid(&host(json!({"bmc": bmc(VIRTUAL_MEDIA)})), &settings).unwrap();
    assert_eq!(invalid.field(), "driver_info/deploy_iso");
}

#[test]
fn credentials_are_single_lines_of_text() {
    assert!(Credentials::of(&values(&[("username", " admin\n"), ("password", "a b\n")])).is_ok());
    let rows: [(BTreeMap<String, ByteString>, &str); 6] = [
        (values(&[]), "no \"username\""),
        (values(&[("username", "a")]), "no \"password\""),
        (
            values(&[("username", " \n"), ("password", PASSWORD)]),
            "no \"username\"",
        ),
        (values(&[("username", "a"), ("password", "")]), "no \"password\""),
        (
            values(&[("username", "a"), ("password", "canary-p4ss\nw0rd")]),
            "\"password\" in the Secret",
        ),
        (
            BTreeMap::from([("username".to_owned(), ByteString(vec![0xff]))]),
            "not UTF-8",
        ),
    ];
    for (values, words) in rows {
        let invalid = Credentials::of(&values).unwrap_err();
        assert!(invalid.to_string().contains(words), "{invalid}");
        assert!(
            invalid
                .to_string()
                .starts_with("Validation error with BMC credentials: "),
            "{invalid}"
        );
        assert_eq!(invalid.field(), "spec.bmc.credentialsName");
        assert!(!format!("{invalid:?}").contains("canary"));
    }
}

#[test]
fn debug_contains_no_credentials() {
    let login = credentials("canary-user", PASSWORD);
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let record = record_of(&host, &login, &settings()).unwrap();
    let shown = format!("{login:?} {record:?} {:?}", record.creation());
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn node_name_consists_of_namespace_and_name() {
    let named = |namespace: Option<String>, name: Option<String>| {
        let mut host = host(json!({}));
        (host.metadata.namespace, host.metadata.name) = (namespace, name);
        name::of(&host)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        named(text("metal"), text("h.example.com")),
        Ok("metal~h.example.com".to_owned())
    );
    let rows = [
        (None, text("host"), "metadata.namespace"),
        (text("metal"), None, "metadata.name"),
        (text("me~tal"), text("host"), "metadata.namespace"),
        (text(&"n".repeat(60)), text(&"h".repeat(200)), "metadata.name"),
    ];
    for (namespace, name, field) in rows {
        assert_eq!(named(namespace, name).unwrap_err().field(), field);
    }
}

#[test]
fn bmc_type_determines_use_of_the_provisioning_network() {
    for (address, loads) in [
        ("ipmi://192.0.2.1", true),
        (VIRTUAL_MEDIA, false),
        ("redfish-uefihttp://192.0.2.1", false),
        ("fake://x", true),
    ] {
        assert_eq!(
            BmcEndpoint::of(address, &settings())
                .unwrap()
                .loads_provisioning_network(),
            loads,
            "{address}"
        );
    }
}
