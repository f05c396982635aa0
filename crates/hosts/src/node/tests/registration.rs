//! Created and updated nodes.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails};
use serde_json::{Map, Value, json};

use super::super::{AgentNetwork, Changes, NodeRecord, NodeSettings, Passwords};
use super::record::{Record, lines};
use super::{PASSWORD, VIRTUAL_MEDIA, bmc, credentials, host, merge, record_of, settings, with_status};

pub(super) fn wanted(host: &BareMetalHost, settings: &NodeSettings) -> NodeRecord {
    record_of(host, &credentials("admin", PASSWORD), settings).unwrap()
}

fn body(host: &BareMetalHost) -> Value {
    let new = wanted(host, &settings()).creation();
    let mut body = Value::Object(new.more);
    merge(&mut body, &json!({"name": new.name, "driver": new.driver}));
    body["driver_info"] = Value::Object(new.driver_info);
    body["properties"] = Value::Object(new.properties);
    if let Some(forbidden) = new.disable_power_off {
        body["disable_power_off"] = forbidden.into();
    }
    body
}

/// The record of the node created for this host.
pub(super) fn created(host: &BareMetalHost) -> Record {
    Record::created(wanted(host, &settings()).creation())
}

/// The changes of this record for this host, whose credentials Ironic has.
fn compare(record: &Record, host: &BareMetalHost) -> Changes {
    let wanted = wanted(host, &settings());
    wanted.changes(&record.shown(), Passwords::AsSent).unwrap()
}

/// The same as lines, with none postponed.
fn changed(record: &Record, host: &BareMetalHost) -> Vec<String> {
    let changes = compare(record, host);
    assert_eq!(changes.postponed, Vec::<String>::new());
    lines(&changes.patch)
}

#[test]
fn new_node_is_created_complete() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let expected = json!({
        "name": "metal~host-0", "driver": "redfish", "automated_clean": true,
        "boot_interface": "redfish-virtual-media", "firmware_interface": "redfish",
        "inspect_interface": "agent", "raid_interface": "redfish",
        "driver_info": {"redfish_address": "http://192.0.2.10:8000", "redfish_system_id": "/redfish/v1/Systems/1",
                        "redfish_username": "admin", "redfish_password": PASSWORD},
        "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
    });
    assert_eq!(body(&host), expected);
}

#[test]
fn each_kind_of_bmc_has_its_driver_and_interfaces() {
    let rows = [
        ("ipmi", "ipmi", "ipxe", Some("no-raid"), None),
        ("libvirt", "ipmi", "ipxe", Some("no-raid"), None),
        ("redfish", "redfish", "ipxe", Some("redfish"), None),
        ("ilo5-redfish", "redfish", "ipxe", Some("redfish"), None),
        (
            "idrac-redfish",
            "idrac",
            "ipxe",
            Some("idrac-redfish"),
            Some("idrac-redfish"),
        ),
        (
            "redfish-virtualmedia",
            "redfish",
            "redfish-virtual-media",
            Some("redfish"),
            None,
        ),
        (
            "ilo5-virtualmedia",
            "redfish",
            "redfish-virtual-media",
            Some("redfish"),
            None,
        ),
        (
            "idrac-virtualmedia",
            "idrac",
            "idrac-redfish-virtual-media",
            Some("idrac-redfish"),
            Some("idrac-redfish"),
        ),
        ("redfish-uefihttp", "redfish", "redfish-https", Some("redfish"), None),
        ("fake", "fake-hardware", "fake", Some("fake"), Some("fake")),
    ];
    for (scheme, driver, boot, raid, own) in rows {
        let bmc = bmc(&format!("{scheme}://192.0.2.1/x"));
        let body = body(&host(json!({"bmc": bmc, "bootMACAddress": "52:54:00:11:22:01"})));
        let shown = |field: &str| body.get(field).and_then(Value::as_str);
        assert_eq!(
            (shown("driver"), shown("boot_interface")),
            (Some(driver), Some(boot)),
            "{scheme}"
        );
        assert_eq!(
            (shown("inspect_interface"), shown("raid_interface")),
            (Some("agent"), raid),
            "{scheme}"
        );
        for kind in [
            "bios_interface",
            "management_interface",
            "power_interface",
            "vendor_interface",
        ] {
            assert_eq!(shown(kind), own, "{scheme} {kind}");
        }
    }
}

#[test]
fn fake_hardware_has_its_own_deploy_interface_and_no_credentials() {
    let body = body(&host(json!({"bmc": bmc("fake://rack-1")})));
    assert_eq!(
        (&body["deploy_interface"], &body["driver_info"]),
        (&json!("fake"), &json!({}))
    );
}

/// The field of the node created for this spec and status.
fn made(mut spec: Value, status: &Value, field: &str) -> Value {
    merge(&mut spec, &json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    body(&with_status(spec, status)).get(field).cloned().unwrap_or_default()
}

#[test]
fn fields_of_the_spec_are_in_the_new_node() {
    let properties = |capabilities, arch| json!({"capabilities": capabilities, "cpu_arch": arch});
    let secure = json!({"bootMode": "UEFISecureBoot", "architecture": "aarch64"});
    let rows = [
        (
            json!({"bootMode": "legacy"}),
            "properties",
            properties("boot_mode:bios", "x86_64"),
        ),
        (
            secure,
            "properties",
            properties("boot_mode:uefi,secure_boot:true", "aarch64"),
        ),
        (
            json!({"automatedCleaningMode": "disabled"}),
            "automated_clean",
            json!(false),
        ),
        (json!({"disablePowerOff": true}), "disable_power_off", json!(true)),
        (json!({"disablePowerOff": false}), "disable_power_off", Value::Null),
        (json!({"inspectionMode": "fast"}), "inspect_interface", json!("redfish")),
    ];
    for (spec, field, expected) in rows {
        assert_eq!(made(spec.clone(), &json!({}), field), expected, "{spec}");
    }
    let in_force = made(
        json!({"bootMode": "UEFI"}),
        &json!({"bootMode": "legacy"}),
        "properties",
    );
    assert_eq!(in_force, properties("boot_mode:bios", "x86_64"));
}

#[test]
fn recreated_node_has_the_deploy_interface_of_the_running_image() {
    let image = json!({"url": "http://192.0.2.9/a.iso", "format": "live-iso"});
    let method = json!({"customDeploy": {"method": "install"}});
    let with_image = |method: &Value, image: &Value| json!({"customDeploy": method["customDeploy"], "image": image});
    let rows = [
        (json!({}), json!({"image": image}), json!("ramdisk")),
        (json!({}), method.clone(), json!("custom-agent")),
        (method.clone(), json!({"state": "provisioning"}), json!("custom-agent")),
        (
            method.clone(),
            json!({"state": "externally provisioned"}),
            json!("custom-agent"),
        ),
        (method.clone(), json!({"state": "deprovisioning"}), Value::Null),
        (
            json!({"image": image}),
            with_image(&method, &image),
            json!("custom-agent"),
        ),
        (json!({"image": image}), json!({}), Value::Null),
        (
            json!({"image": image}),
            json!({"state": "provisioning"}),
            json!("ramdisk"),
        ),
    ];
    for (spec, status, expected) in rows {
        assert_eq!(
            made(spec.clone(), &status, "deploy_interface"),
            expected,
            "{spec} {status}"
        );
    }
}

#[test]
fn matching_node_is_not_changed() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let record = created(&host);
    assert_eq!(changed(&record, &host), Vec::<String>::new());
}

#[test]
fn only_what_differs_is_changed() {
    let made_for = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let record = created(&made_for);
    let rows = [
        (
            json!({"automatedCleaningMode": "disabled"}),
            "manageable",
            vec!["/automated_clean: false"],
        ),
        (
            json!({"disablePowerOff": true}),
            "active",
            vec!["/disable_power_off: true"],
        ),
        (
            json!({"architecture": "aarch64"}),
            "available",
            vec![r#"/properties/cpu_arch: "aarch64""#],
        ),
        (
            json!({"bootMode": "legacy"}),
            "enroll",
            vec![r#"/properties/capabilities: "boot_mode:bios""#],
        ),
        (
            json!({"inspectionMode": "fast"}),
            "manageable",
            vec![r#"/inspect_interface: "redfish""#],
        ),
        (
            json!({"bmc": bmc("redfish-virtualmedia+http://192.0.2.11:8000/redfish/v1/Systems/1")}),
            "active",
            vec![
                r#"/driver_info/redfish_address: "http://192.0.2.11:8000""#,
                r#"/driver_info/redfish_password: "canary-p4ssw0rd""#,
            ],
        ),
        (
            json!({"bmc": bmc("redfish-virtualmedia+http://192.0.2.10:8000")}),
            "active",
            vec![
                r#"/driver_info/redfish_password: "canary-p4ssw0rd""#,
                "/driver_info/redfish_system_id",
            ],
        ),
        (
            json!({"bmc": {"address": VIRTUAL_MEDIA, "credentialsName": "bmc", "disableCertificateVerification": true}}),
            "active",
            vec![
                r#"/driver_info/redfish_password: "canary-p4ssw0rd""#,
                "/driver_info/redfish_verify_ca: false",
            ],
        ),
    ];
    for (difference, state, expected) in rows {
        let mut spec = json!({"bmc": bmc(VIRTUAL_MEDIA)});
        merge(&mut spec, &difference);
        let mut record = record.clone();
        record.0["provision_state"] = state.into();
        assert_eq!(changed(&record, &host(spec)), expected, "{difference}");
    }
}

#[test]
fn password_is_sent_again_only_after_a_change() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let record = created(&host);
    let renewed = record_of(&host, &credentials("admin", "renewed"), &settings()).unwrap();
    let patch = |passwords| renewed.changes(&record.shown(), passwords).unwrap().patch;
    assert!(patch(Passwords::AsSent).is_empty());
    assert_eq!(
        lines(&patch(Passwords::Changed)),
        [r#"/driver_info/redfish_password: "renewed""#]
    );
}

#[test]
fn record_without_credentials_compares_the_rest_and_asks_for_them_when_the_destination_changes() {
    let settings = settings();
    let record = created(&host(json!({"bmc": bmc(VIRTUAL_MEDIA)})));
    let changes = |spec| {
        let unread = NodeRecord::of(&host(spec), None, None, &AgentNetwork::None, &settings).unwrap();
        let changes = unread.changes(&record.shown(), Passwords::AsSent).unwrap();
        (lines(&changes.patch), changes.needs_login)
    };
    assert_eq!(changes(json!({"bmc": bmc(VIRTUAL_MEDIA)})), (vec![], false));
    let restricted = json!({"bmc": bmc(VIRTUAL_MEDIA), "automatedCleaningMode": "disabled"});
    assert_eq!(changes(restricted), (vec!["/automated_clean: false".to_owned()], false));
    let elsewhere = json!({"bmc": bmc("redfish-virtualmedia://192.0.2.99/redfish/v1/Systems/1")});
    assert!(changes(elsewhere).1);
    let trusting =
        json!({"bmc": {"address": VIRTUAL_MEDIA, "credentialsName": "bmc", "disableCertificateVerification": true}});
    assert!(changes(trusting).1);
}

#[test]
fn unmanaged_keys_are_kept() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let mut record = created(&host);
    record.0["driver_info"]["redfish_auth_type"] = "basic".into();
    record.0["driver_info"]["redfish_verify_ca"] = "/etc/ironic/bmc-ca.pem".into();
    record.0["driver_info"]["deploy_kernel"] = "http://192.0.2.9/kernel".into();
    record.0["driver_info"]["force_persistent_boot_device"] = "Never".into();
    record.0["properties"]["vendor"] = "Lab".into();
    record.0["properties"]["capabilities"] = "cpu_vt:true,boot_mode:uefi".into();
    record.0["raid_interface"] = "agent".into();
    record.0["firmware_interface"] = "no-firmware".into();
    assert_eq!(changed(&record, &host), Vec::<String>::new());
}

#[test]
fn certificate_verification_can_be_enabled_again() {
    let trusting = json!({"address": VIRTUAL_MEDIA, "credentialsName": "bmc", "disableCertificateVerification": true});
    let record = created(&host(json!({"bmc": trusting})));
    let careful = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let expected = [
        &format!("/driver_info/redfish_password: {PASSWORD:?}"),
        "/driver_info/redfish_verify_ca",
    ];
    assert_eq!(changed(&record, &careful), expected);
}

#[test]
fn bmc_type_change_updates_driver_interfaces_and_credentials() {
    let old = host(json!({"bmc": bmc("ipmi://192.0.2.1"), "bootMACAddress": "52:54:00:11:22:01"}));
    let record = created(&old);
    let new = host(json!({"bmc": bmc("redfish://192.0.2.1/redfish/v1/Systems/1")}));
    let expected = [
        r#"/driver: "redfish""#,
        "/bios_interface",
        r#"/firmware_interface: "redfish""#,
        "/management_interface",
        "/power_interface",
        r#"/raid_interface: "redfish""#,
        "/vendor_interface",
        "/driver_info/ipmi_address",
        "/driver_info/ipmi_password",
        "/driver_info/ipmi_port",
        "/driver_info/ipmi_priv_level",
        "/driver_info/ipmi_username",
        r#"/driver_info/redfish_address: "https://192.0.2.1""#,
        r#"/driver_info/redfish_password: "canary-p4ssw0rd""#,
        r#"/driver_info/redfish_system_id: "/redfish/v1/Systems/1""#,
        r#"/driver_info/redfish_username: "admin""#,
    ];
    assert_eq!(changed(&record, &new), expected);
}

#[test]
fn driver_and_interface_changes_wait_for_an_allowed_state() {
    let old = host(json!({"bmc": bmc("redfish://192.0.2.10:8000/redfish/v1/Systems/1")}));
    let mut record = created(&old);
    record.0["provision_state"] = "active".into();
    let new = host(json!({"bmc": bmc("redfish-virtualmedia://192.0.2.10:8000/redfish/v1/Systems/1")}));
    let changes = compare(&record, &new);
    assert!(changes.patch.is_empty());
    assert_eq!(
        changes.postponed,
        [
            "bios_interface",
            "boot_interface",
            "management_interface",
            "power_interface",
            "vendor_interface"
        ]
    );
    record.0["maintenance"] = true.into();
    let changes = compare(&record, &new);
    assert_eq!(changes.postponed, Vec::<String>::new());
    assert!(lines(&changes.patch).contains(&r#"/boot_interface: "redfish-virtual-media""#.to_owned()));
}

#[test]
fn postponed_driver_postpones_driver_info() {
    let old = host(json!({"bmc": bmc("ipmi://192.0.2.1"), "bootMACAddress": "52:54:00:11:22:01"}));
    let mut record = created(&old);
    record.0["provision_state"] = "active".into();
    let new = host(json!({"bmc": bmc(VIRTUAL_MEDIA), "automatedCleaningMode": "disabled"}));
    let changes = wanted(&new, &settings())
        .changes(&record.shown(), Passwords::Changed)
        .unwrap();
    assert_eq!(lines(&changes.patch), ["/automated_clean: false"]);
    assert!(changes.is_login_postponed());
    for waits in ["driver", "driver_info/ipmi_address", "driver_info/redfish_password"] {
        assert!(changes.postponed.iter().any(|field| field == waits), "{waits}");
    }
}

#[test]
fn locked_node_gets_no_changes() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA), "automatedCleaningMode": "disabled"}));
    let rows = [
        ("manageable", Value::Null, true),
        ("manageable", json!("available"), false),
        ("cleaning", json!("available"), false),
        ("clean wait", json!("available"), false),
        ("clean failed", json!("available"), true),
        ("deploying", json!("active"), false),
        ("wait call-back", json!("active"), false),
        ("deploy failed", json!("active"), true),
        ("inspecting", json!("manageable"), false),
        ("inspect wait", json!("manageable"), true),
        ("verifying", json!("manageable"), true),
        ("active", Value::Null, true),
        ("polishing", Value::Null, false),
    ];
    for (state, target, takes) in rows {
        let mut record = created(&host);
        record.0["automated_clean"] = true.into();
        record.0["provision_state"] = state.into();
        record.0["target_provision_state"] = target;
        let changes = compare(&record, &host);
        assert_eq!(changes.patch.is_empty(), !takes, "{state}");
        assert_eq!(changes.postponed == ["automated_clean"], !takes, "{state}");
    }
}

#[test]
fn guessed_architecture_replaces_no_existing_one() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let mut record = created(&host);
    record.0["properties"]["cpu_arch"] = "aarch64".into();
    assert_eq!(changed(&record, &host), Vec::<String>::new());
    record.0["properties"].as_object_mut().unwrap().remove("cpu_arch");
    assert_eq!(changed(&record, &host), [r#"/properties/cpu_arch: "x86_64""#]);
    let hardware: HardwareDetails = serde_json::from_value(json!({"cpu": {"arch": "ppc64le"}})).unwrap();
    let inspected = NodeRecord::of(
        &host,
        Some(&credentials("admin", PASSWORD)),
        Some(&hardware),
        &AgentNetwork::None,
        &settings(),
    )
    .unwrap();
    let changes = inspected.changes(&record.shown(), Passwords::AsSent).unwrap();
    assert_eq!(lines(&changes.patch), [r#"/properties/cpu_arch: "ppc64le""#]);
}

#[test]
fn host_without_recorded_boot_mode_keeps_its_boot_mode() {
    let host = with_status(json!({"bmc": bmc(VIRTUAL_MEDIA)}), &json!({"state": "provisioned"}));
    let mut record = created(&host);
    record.0["properties"]["capabilities"] = "boot_mode:bios".into();
    assert_eq!(changed(&record, &host), Vec::<String>::new());
}

#[test]
fn old_api_version_gets_no_unknown_fields() {
    let plain = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let mut record = created(&plain);
    record.0["disable_power_off"] = Value::Null;
    assert_eq!(changed(&record, &plain), Vec::<String>::new());
    let kept_on = host(json!({"bmc": bmc(VIRTUAL_MEDIA), "disablePowerOff": true}));
    let invalid = wanted(&kept_on, &settings())
        .changes(&record.shown(), Passwords::AsSent)
        .unwrap_err();
    assert_eq!(invalid.field(), "spec.disablePowerOff");
}

#[test]
fn external_url_is_set_only_for_ipv6_bmcs() {
    let url = "http://[2001:db8::1]:6180";
    let settings = NodeSettings {
        external_url_v6: Some(url.to_owned()),
        ..settings()
    };
    for (address, expected) in [
        ("redfish://[2001:db8::7]/x", Some(url)),
        ("redfish://192.0.2.1/x", None),
        ("redfish://[::ffff:192.0.2.1]/x", None),
        ("redfish://bmc.example.com/x", None),
        ("fake://x", None),
    ] {
        let new = wanted(&host(json!({"bmc": bmc(address)})), &settings).creation();
        assert_eq!(
            new.driver_info.get("external_http_url").and_then(Value::as_str),
            expected,
            "{address}"
        );
    }
}

#[test]
fn agent_network_follows_the_host_and_is_kept_while_unread() {
    let host = host(json!({"bmc": bmc(VIRTUAL_MEDIA)}));
    let data = Map::from_iter([("links".to_owned(), json!([]))]);
    let with = |network: &AgentNetwork| {
        NodeRecord::of(&host, Some(&credentials("admin", PASSWORD)), None, network, &settings()).unwrap()
    };
    let mut record = Record::created(with(&AgentNetwork::Data(data.clone())).creation());
    assert_eq!(record.0["network_data"], json!({"links": []}));
    let patch = |record: &Record, network: &AgentNetwork| {
        lines(&with(network).changes(&record.shown(), Passwords::AsSent).unwrap().patch)
    };
    assert_eq!(patch(&record, &AgentNetwork::Unread), Vec::<String>::new());
    assert_eq!(patch(&record, &AgentNetwork::Data(data.clone())), Vec::<String>::new());
    assert_eq!(patch(&record, &AgentNetwork::None), ["/network_data: {}"]);
    record.0["network_data"] = json!({});
    assert_eq!(
        patch(&record, &AgentNetwork::Data(data)),
        [r#"/network_data: {"links":[]}"#]
    );
    assert_eq!(patch(&record, &AgentNetwork::None), Vec::<String>::new());
}

#[test]
fn node_of_the_go_manager_needs_no_change() {
    let mut record = Record::new(&json!({
        "name": "metal~host-0", "driver": "redfish", "provision_state": "active", "automated_clean": true,
        "boot_interface": "redfish-virtual-media", "firmware_interface": "redfish", "inspect_interface": "agent",
        "raid_interface": "redfish", "instance_uuid": super::UID,
        "driver_info": {"deploy_kernel": "http://192.0.2.9/k", "deploy_ramdisk": "http://192.0.2.9/r",
            "force_persistent_boot_device": "Default", "redfish_address": "http://192.0.2.10:8000",
            "redfish_password": "x", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "admin"},
        "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64", "vendor": "Sushy Emulator"},
    }));
    let host = with_status(
        json!({"bmc": bmc(VIRTUAL_MEDIA), "architecture": "x86_64"}),
        &json!({"state": "provisioned", "bootMode": "UEFI"}),
    );
    assert_eq!(changed(&record, &host), Vec::<String>::new());
    record.0["name"] = "host-0".into();
    assert_eq!(
        changed(&record, &host),
        [r#"/name: "metal~host-0""#],
        "a record from before namespaces"
    );
}
