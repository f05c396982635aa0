//! Hardware, field by field.

use metal3_ironic::model::inventory::Inspection;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::inventory::details;

/// The details as they are written into HardwareData.
fn shown(inspection: Value) -> Value {
    let inspection: Inspection = serde_json::from_value(inspection).unwrap();
    serde_json::to_value(details(&inspection)).unwrap()
}

fn nic(address: Option<&str>, boots: bool) -> Value {
    let mut nic = json!({
        "name": "eno1", "model": "0x8086 0x1572", "mac": "52:54:00:11:22:01", "speedGbps": 25,
        "pciAddress": "0000:19:00.0", "vlanId": 100, "vlans": [{"id": 100, "name": "vlan100"}],
        "lldp": {"portID": "Ethernet1/1", "switchID": "64:64:9b:32:f3:00", "switchSystemName": "sw01.example.com"},
    });
    if let Some(address) = address {
        nic["ip"] = address.into();
    }
    if boots {
        nic["pxe"] = true.into();
    }
    nic
}

#[test]
fn a_real_inventory_becomes_the_documented_details() {
    let by_path = "/dev/disk/by-path/pci-0000:65:00.0-scsi-0:3:111:0";
    let nvme = "/dev/disk/by-path/pci-0000:c1:00.0-nvme-1";
    let expected = json!({
        "systemVendor": {"manufacturer": "Dell Inc.", "serialNumber": "ABC1234",
                         "productName": "PowerEdge R650 (SKU=090E;ModelName=PowerEdge R650)"},
        "firmware": {"bios": {"date": "11/17/2022", "vendor": "Dell Inc.", "version": "1.9.2"}},
        "ramMebibytes": 524_288,
        "hostname": "localhost.localdomain",
        "cpu": {"arch": "x86_64", "model": "Intel(R) Xeon(R) Gold 6338N CPU @ 2.20GHz", "clockMegahertz": 3500,
                "count": 128, "flags": ["aes", "fpu", "vmx"]},
        "nics": [
            nic(Some("172.22.0.101"), true),
            nic(Some("fe80::5054:ff:fe11:2201%eno1"), true),
            {"name": "eno2", "model": "0x8086 0x1572", "mac": "52:54:00:11:22:02", "pciAddress": "0000:19:00.1"},
        ],
        "storage": [
            {"name": by_path, "alternateNames": ["/dev/sda", by_path], "type": "SSD", "sizeBytes": 479_559_942_144_u64,
             "vendor": "DELL", "model": "PERC H755 Front", "hctl": "0:3:111:0",
             "serialNumber": "6f4ee0806b0f2e002c8a1c4b0d5a1e3f", "wwn": "0x6f4ee0806b0f2e00",
             "wwnVendorExtension": "0x2c8a1c4b0d5a1e3f", "wwnWithExtension": "0x6f4ee0806b0f2e002c8a1c4b0d5a1e3f"},
            {"name": nvme, "alternateNames": ["/dev/nvme0n1", nvme], "type": "NVME", "sizeBytes": 1_920_383_410_176_u64,
             "model": "Dell Ent NVMe v2 AGN RI U.2 1.92TB", "serialNumber": "S6CFNE0R507348",
             "wwn": "eui.36434630525073480025384500000001", "wwnWithExtension": "eui.36434630525073480025384500000001"},
            {"name": "/dev/sdb", "alternateNames": ["/dev/sdb"], "type": "HDD", "rotational": true,
             "sizeBytes": 4_000_787_030_016_u64, "vendor": "ATA", "model": "ST4000NM0035", "hctl": "1:0:0:0",
             "serialNumber": "ZC1ABCDE", "wwn": "0x5000c500a1b2c3d4", "wwnWithExtension": "0x5000c500a1b2c3d4"},
        ],
    });
    let delivered = serde_json::from_str(include_str!("inventory.json")).unwrap();
    assert_eq!(shown(delivered), expected);
}

#[test]
fn empty_inventory_equals_the_go_managers_details() {
    let expected = json!({"systemVendor": {}, "firmware": {"bios": {}}, "cpu": {}});
    assert_eq!(shown(json!({})), expected);
    let nulls =
        json!({"inventory": {"cpu": null, "memory": null, "disks": null, "interfaces": null}, "plugin_data": null});
    assert_eq!(shown(nulls), expected);
}

#[test]
fn clock_is_a_number_or_text_with_a_leading_number() {
    let rows = [
        (json!("3500.0000"), json!(3500)),
        (json!("2095.078"), json!(2095)),
        (json!("2400.6 MHz"), json!(2401)),
        (json!(" 2400"), json!(2400)),
        (json!(3400), json!(3400)),
        (json!(3400.5), json!(3401)),
        (json!("0"), Value::Null),
        (json!(""), Value::Null),
        (json!("fast"), Value::Null),
        (json!("1.2.3"), Value::Null),
        (json!(-5), Value::Null),
        (json!(1e300), Value::Null),
    ];
    for (frequency, expected) in rows {
        let found = shown(json!({"inventory": {"cpu": {"frequency": frequency}}}));
        assert_eq!(
            found["cpu"].get("clockMegahertz").unwrap_or(&Value::Null),
            &expected,
            "{frequency}"
        );
    }
}

#[test]
fn card_has_one_entry_per_address_or_one_without() {
    let rows = [
        (json!({}), vec![Value::Null]),
        (json!({"ipv4_address": "192.0.2.1"}), vec![json!("192.0.2.1")]),
        (json!({"ipv6_address": "2001:db8::1"}), vec![json!("2001:db8::1")]),
        (
            json!({"ipv4_address": "192.0.2.1", "ipv6_address": "2001:db8::1"}),
            vec![json!("192.0.2.1"), json!("2001:db8::1")],
        ),
    ];
    for (card, expected) in rows {
        let found = shown(json!({"inventory": {"interfaces": [card.clone()]}}));
        let addresses: Vec<_> = found["nics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|nic| nic.get("ip").cloned().unwrap_or_default())
            .collect();
        assert_eq!(addresses, expected, "{card}");
    }
}

#[test]
fn invalid_parts_of_a_card_are_omitted() {
    let rows = [
        (json!({"speed_mbps": -1}), json!({})),
        (json!({"speed_mbps": 999}), json!({})),
        (json!({"speed_mbps": 2500}), json!({"speedGbps": 2})),
        (json!({"vendor": "0x8086"}), json!({"model": "0x8086 "})),
        (json!({"product": "0x1572"}), json!({"model": "0x1572"})),
        (
            json!({"mac_address": "52:54:00:AB:CD:EF"}),
            json!({"mac": "52:54:00:AB:CD:EF"}),
        ),
        (
            json!({"mac_address": "52-54-00-AB-CD-EF"}),
            json!({"mac": "52:54:00:ab:cd:ef"}),
        ),
        (json!({"mac_address": "unknown"}), json!({})),
    ];
    for (card, expected) in rows {
        let found = shown(json!({"inventory": {"interfaces": [card.clone()]}}));
        assert_eq!(found["nics"], json!([expected]), "{card}");
    }
}

#[test]
fn plugin_data_is_used_where_valid() {
    let rows = [
        (
            json!({"parsed_lldp": {"eno1": {"switch_port_vlans": [{"id": 7}, {"id": 4095, "name": "x"}, {"id": 4095}, 3],
                                         "switch_port_untagged_vlan_id": 0}}}),
            json!({"name": "eno1", "vlans": [{"id": 7}, {"name": "x"}]}),
        ),
        (
            json!({"parsed_lldp": {"eno1": {"switch_port_untagged_vlan_id": 4094, "switch_chassis_id": ""}}}),
            json!({"name": "eno1", "vlanId": 4094}),
        ),
        (
            json!({"parsed_lldp": {"eno1": {"switch_port_id": "1/1"}, "eno2": {"switch_port_id": "1/2"}}}),
            json!({"name": "eno1", "lldp": {"portID": "1/1"}}),
        ),
        (
            json!({"all_interfaces": {"eno1": {"pxe_enabled": true}}}),
            json!({"name": "eno1", "pxe": true}),
        ),
        (
            json!({"all_interfaces": {"eno1": {"pxe_enabled": "yes"}}}),
            json!({"name": "eno1"}),
        ),
        (
            json!({"all_interfaces": [], "parsed_lldp": "none"}),
            json!({"name": "eno1"}),
        ),
        (json!([1, 2]), json!({"name": "eno1"})),
    ];
    for (plugin_data, expected) in rows {
        let found = shown(json!({"inventory": {"interfaces": [{"name": "eno1"}]}, "plugin_data": plugin_data}));
        assert_eq!(found["nics"], json!([expected]), "{plugin_data}");
    }
}

#[test]
fn disk_has_path_and_type() {
    let rows = [
        (
            json!({"name": "/dev/sda", "rotational": true}),
            json!({"name": "/dev/sda", "alternateNames": ["/dev/sda"], "type": "HDD", "rotational": true}),
        ),
        (
            json!({"name": "/dev/nvme0n1", "rotational": false}),
            json!({"name": "/dev/nvme0n1", "alternateNames": ["/dev/nvme0n1"], "type": "NVME"}),
        ),
        (
            json!({"name": "/dev/nvme0n1", "rotational": true}),
            json!({"name": "/dev/nvme0n1", "alternateNames": ["/dev/nvme0n1"], "type": "HDD", "rotational": true}),
        ),
        (
            json!({"name": "Disk.Bay.0", "size": 480}),
            json!({"name": "Disk.Bay.0", "alternateNames": ["Disk.Bay.0"], "type": "SSD", "sizeBytes": 480}),
        ),
        (
            json!({"by_path": "/dev/disk/by-path/x", "size": 0}),
            json!({"name": "/dev/disk/by-path/x", "alternateNames": ["/dev/disk/by-path/x"], "type": "SSD"}),
        ),
        (json!({}), json!({"type": "SSD"})),
    ];
    for (disk, expected) in rows {
        let found = shown(json!({"inventory": {"disks": [disk.clone()]}}));
        assert_eq!(found["storage"], json!([expected]), "{disk}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "eno1",
            "all_interfaces",
            "parsed_lldp",
            "pxe_enabled",
            "switch_port_vlans",
            "id",
            "name",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_plugin_data_does_not_fail_the_inspection(plugin_data in any_value()) {
        let found = shown(json!({"inventory": {"hostname": "h", "interfaces": [{"name": "eno1"}]}, "plugin_data": plugin_data}));
        prop_assert_eq!(&found["hostname"], "h");
        prop_assert_eq!(found["nics"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn vlans_always_match_the_schema(id in any::<i64>(), untagged in any::<i64>()) {
        let found = shown(json!({"inventory": {"interfaces": [{"name": "eno1"}]}, "plugin_data": {"parsed_lldp": {"eno1":
            {"switch_port_vlans": [{"id": id, "name": "v"}], "switch_port_untagged_vlan_id": untagged}}}}));
        for number in [found["nics"][0].get("vlanId"), found["nics"][0]["vlans"][0].get("id")].into_iter().flatten() {
            prop_assert!((1..=4094).contains(&number.as_i64().unwrap()));
        }
    }
}
