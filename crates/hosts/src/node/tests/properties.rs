//! Properties of all hosts and nodes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{
    AgentNetwork, Deployment, Instance, InstanceOwner, NodeRecord, NodeSettings, Passwords, Ramdisk, Ramdisks,
};
use super::record::Record;
use super::{UID, bmc, credentials, settings, with_status};
use metal3_api::metal3::v1alpha1::BareMetalHost;

const STATES: [&str; 12] = [
    "enroll",
    "manageable",
    "available",
    "active",
    "deploy failed",
    "clean failed",
    "inspect wait",
    "verifying",
    "cleaning",
    "wait call-back",
    "error",
    "polishing",
];

fn addresses() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "ipmi",
        "libvirt",
        "redfish",
        "redfish+http",
        "ilo5-redfish",
        "idrac-redfish",
        "redfish-virtualmedia",
        "idrac-virtualmedia",
        "redfish-uefihttp",
        "fake",
    ]);
    let place = prop::sample::select(vec!["192.0.2.1", "192.0.2.2:8000", "[2001:db8::1]", "bmc.example.com"]);
    let path = prop::sample::select(vec![
        "",
        "/redfish/v1",
        "/redfish/v1/Systems/1",
        "/redfish/v1/Systems/2",
    ]);
    (scheme, place, path).prop_map(|(scheme, place, path)| format!("{scheme}://{place}{path}"))
}

fn images() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"url": "http://192.0.2.9/a.img", "checksum": "aa", "checksumType": "sha256", "format": "raw"}),
        json!({"url": "http://192.0.2.9/b.img?token=t", "checksum": "bb", "format": "qcow2"}),
        json!({"url": "http://192.0.2.9/b.img", "checksum": "bb", "checksumType": "auto"}),
        json!({"url": "http://192.0.2.9/c.iso", "format": "live-iso"}),
    ])
}

prop_compose! {
    fn hosts()(
        address in addresses(),
        image in images(),
        mode in prop::sample::select(vec!["UEFI", "legacy"]),
        switches in any::<[bool; 5]>(),
        architecture in prop::option::of(prop::sample::select(vec!["x86_64", "aarch64"])),
        hints in prop::sample::select(vec![Value::Null, json!({}), json!({"deviceName": "/dev/sda", "rotational": false})]),
        state in prop::sample::select(vec!["registering", "provisioned", "available"]),
    ) -> BareMetalHost {
        let [unverified, unclean, always_on, has_mode, kept] = switches;
        let mut bmc = bmc(&address);
        bmc["disableCertificateVerification"] = unverified.into();
        let spec = json!({
            "bmc": bmc, "bootMACAddress": "52:54:00:11:22:01", "image": image, "disablePowerOff": always_on,
            "automatedCleaningMode": if unclean { "disabled" } else { "metadata" }, "architecture": architecture,
            "bootMode": has_mode.then_some(mode),
        });
        let mut status = json!({"state": state, "rootDeviceHints": hints});
        if kept {
            status["bootMode"] = mode.into();
        }
        with_status(spec, &status)
    }
}

prop_compose! {
    fn lab()(switches in any::<[bool; 3]>()) -> NodeSettings {
        let [iso, kernel, external] = switches;
        let url = |on: bool, path: &str| on.then(|| format!("http://192.0.2.9/{path}"));
        let usual = Ramdisk { iso: url(iso, "iso?token=x"), kernel: url(kernel, "kernel"), initramfs: url(kernel, "ramdisk") };
        NodeSettings {
            ramdisks: Ramdisks { usual, ..Ramdisks::default() },
            external_url_v6: url(external, "v6"),
            ..settings()
        }
    }
}

fn networks() -> impl Strategy<Value = AgentNetwork> {
    let data = |text: &str| AgentNetwork::of(&super::values(&[("value", text)])).unwrap();
    prop::sample::select(vec![
        AgentNetwork::Unread,
        AgentNetwork::None,
        data("a: 1"),
        data("b: [x]"),
    ])
}

prop_compose! {
    /// A node created for another host and changed since.
    fn found()(
        host in hosts(), lab in lab(), network in networks(), state in prop::sample::select(STATES.to_vec()),
        maintenance in any::<bool>(), occupant in prop::sample::select(vec![Value::Null, json!(UID), json!("00000000-0000-4000-8000-000000000001")]),
        capabilities in prop::option::of(prop::sample::select(vec!["", "cpu_vt:true", "secure_boot:true,boot_mode:uefi,a:b"])),
    ) -> Record {
        let record = NodeRecord::of(&host, Some(&credentials("former", "former")), None, &network, &lab).unwrap();
        let mut record = Record::created(record.creation());
        let patch = Instance::of(&host, &Deployment::asked(&host), &lab).unwrap().changes(&record.shown()).patch;
        record = record.patched(patch);
        record.0["provision_state"] = state.into();
        record.0["maintenance"] = maintenance.into();
        record.0["instance_uuid"] = occupant;
        record.0["driver_info"]["custom"] = "stays".into();
        record.0["instance_info"]["configdrive"] = "secret".into();
        if let Some(capabilities) = capabilities {
            record.0["properties"]["capabilities"] = capabilities.into();
        }
        record
    }
}

fn wanted(host: &BareMetalHost, password: &str, network: &AgentNetwork, lab: &NodeSettings) -> NodeRecord {
    NodeRecord::of(host, Some(&credentials("admin", password)), None, network, lab).unwrap()
}

proptest! {
    #[test]
    fn created_node_needs_no_change(host in hosts(), lab in lab(), network in networks()) {
        let record = wanted(&host, "p", &network, &lab);
        let node = Record::created(record.creation()).shown();
        let changes = record.changes(&node, Passwords::AsSent).unwrap();
        prop_assert_eq!(super::record::lines(&changes.patch), Vec::<String>::new());
        prop_assert_eq!(changes.postponed, Vec::<String>::new());
    }

    #[test]
    fn applied_change_is_not_requested_again(
        host in hosts(), lab in lab(), network in networks(), found in found(), renewed in any::<bool>(),
    ) {
        let record = wanted(&host, "p", &network, &lab);
        let passwords = if renewed { Passwords::Changed } else { Passwords::AsSent };
        let changes = record.changes(&found.shown(), passwords).unwrap();
        let passwords = if changes.is_login_postponed() { passwords } else { Passwords::AsSent };
        let now = found.patched(changes.patch);
        let again = record.changes(&now.shown(), passwords).unwrap();
        prop_assert_eq!(super::record::lines(&again.patch), Vec::<String>::new());
        prop_assert_eq!(again.postponed, changes.postponed);
        prop_assert_eq!(&now.0["driver_info"]["custom"], &json!("stays"));
    }

    #[test]
    fn changed_stable_node_equals_a_created_one(host in hosts(), lab in lab(), found in found()) {
        let record = wanted(&host, "p", &AgentNetwork::None, &lab);
        let mut found = found;
        found.0["provision_state"] = "manageable".into();
        let changes = record.changes(&found.shown(), Passwords::Changed).unwrap();
        prop_assert_eq!(changes.postponed, Vec::<String>::new());
        let now = found.patched(changes.patch);
        let fresh = Record::created(record.creation());
        for field in ["name", "driver", "boot_interface", "inspect_interface", "automated_clean", "network_data"] {
            prop_assert_eq!(&now.0[field], &fresh.0[field], "{}", field);
        }
        for (key, value) in fresh.0["driver_info"].as_object().unwrap() {
            prop_assert_eq!(&now.0["driver_info"][key], value, "{}", key);
        }
        for key in now.0["driver_info"].as_object().unwrap().keys().filter(|key| key.contains("_address") || key.contains("password")) {
            prop_assert!(fresh.0["driver_info"].get(key).is_some(), "{} is left of another BMC", key);
        }
    }

    #[test]
    fn written_instance_needs_no_change(host in hosts(), lab in lab(), found in found()) {
        let instance = Instance::of(&host, &Deployment::asked(&host), &lab).unwrap();
        let changes = instance.changes(&found.shown());
        let is_open = !changes.patch.is_empty();
        let now = found.patched(changes.patch);
        let again = instance.changes(&now.shown());
        prop_assert_eq!(super::record::lines(&again.patch), Vec::<String>::new());
        prop_assert_eq!(&again.postponed, &changes.postponed);
        if is_open {
            prop_assert!(instance.is_written_on(&now.shown()));
        }
        if !matches!(instance.owner_of(&now.shown()), InstanceOwner::Other(_)) && again.postponed.is_empty() {
            prop_assert_eq!(instance.owner_of(&now.shown()), InstanceOwner::ThisHost);
        }
        prop_assert_eq!(&now.0["instance_info"]["configdrive"], &json!("secret"));
    }

    #[test]
    fn registration_and_instance_change_disjoint_keys(host in hosts(), lab in lab(), found in found()) {
        let mut found = found;
        found.0["provision_state"] = "available".into();
        found.0["instance_uuid"] = Value::Null;
        let record = wanted(&host, "p", &AgentNetwork::Unread, &lab);
        let instance = Instance::of(&host, &Deployment::asked(&host), &lab).unwrap();
        let patch = record.changes(&found.shown(), Passwords::Changed).unwrap().patch;
        let found = found.patched(patch);
        let patch = instance.changes(&found.shown()).patch;
        let found = found.patched(patch);
        prop_assert!(record.changes(&found.shown(), Passwords::AsSent).unwrap().patch.is_empty());
        prop_assert!(instance.changes(&found.shown()).patch.is_empty());
    }

    #[test]
    fn arbitrary_address_does_not_panic(address in "\\PC{0,40}|[a-z+-]{0,12}:(//)?[ -~]{0,30}") {
        let host = with_status(json!({"bmc": bmc(&address)}), &json!({}));
        let made = NodeRecord::of(&host, Some(&credentials("u", "p")), None, &AgentNetwork::None, &settings());
        if let Err(invalid) = made {
            prop_assert!(!invalid.field().is_empty() && !invalid.to_string().is_empty());
        }
    }
}
