//! Which disks Ironic is asked to skip, and whether that protects them.

use metal3_api::metal3::names::CLAIM_RECORD_ANNOTATION;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::super::{kept, restrictions};
use super::record::{Record, lines};
use super::registration::created;
use super::{VIRTUAL_MEDIA, bmc, host, merge};

/// A disk as an agent reports it.
fn disk(number: u32) -> Value {
    json!({
        "name": format!("/dev/disk/by-path/p-{number}"), "alternateNames": [format!("/dev/sd{number}")], "hctl": format!("{number}:0:0:0"),
        "serialNumber": format!("D{number}"), "wwn": format!("0x5{number}"), "wwnWithExtension": format!("0x5{number}e"),
        "sizeBytes": u64::from(number) << 30, "model": format!("model {number}"), "type": "SSD",
    })
}

fn with(mut document: Value, change: &Value) -> Value {
    merge(&mut document, change);
    document
}

/// A host with disks 1 to 3 that keeps the second one and writes its image to the first one.
fn keeping(change: &Value) -> BareMetalHost {
    let spec = json!({ "bmc": bmc(VIRTUAL_MEDIA), "rootDeviceHints": { "serialNumber": "D1" },
        "cleaning": { "keepDisks": [{ "serialNumber": "d2" }] } });
    let mut host = host(with(spec, change));
    let hardware = json!({ "storage": [disk(1), disk(2), disk(3)] });
    host.status.hardware = serde_json::from_value(hardware).unwrap();
    host
}

fn own() -> Value {
    json!([{ "serial": "s== d2" }, { "serial": "s== D2" }, { "wwn": "s== 0x52" }, { "wwn_with_extension": "s== 0x52e" },
        { "name": "<in> /dev/md" }])
}

fn changed(record: &Record, host: &BareMetalHost) -> Vec<String> {
    lines(&restrictions(host, &record.shown()).patch)
}

#[test]
fn disk_is_skipped_by_the_words_of_the_user_and_by_all_that_names_it() {
    let record = created(&keeping(&json!({})));
    assert_eq!(record.0["properties"]["skip_block_devices"], own());
    assert_eq!(record.0["extra"], json!({ "metal3-kept-disks": own() }));
    assert_eq!(changed(&record, &keeping(&json!({}))), [""; 0]);
    // Before the inspection only the words are known.
    let mut new = keeping(&json!({}));
    new.status.hardware = None;
    let words = json!([{ "serial": "s== d2" }, { "name": "<in> /dev/md" }]);
    assert_eq!(created(&new).0["properties"]["skip_block_devices"], words);
}

#[test]
fn node_follows_the_host_and_keeps_what_an_operator_skips() {
    let (operators, none) = (json!({ "name": "s== /dev/sdz" }), json!({ "cleaning": null }));
    let plain = Record::new(&json!({ "automated_clean": true, "properties": { "skip_block_devices": [operators] } }));
    assert_eq!(changed(&plain, &keeping(&none)), [""; 0], "never kept a disk");
    let both: Vec<Value> = std::iter::once(operators.clone())
        .chain(own().as_array().unwrap().clone())
        .collect();
    let kept = plain.patched(
        restrictions(
            &keeping(&json!({})),
            &Record::new(&json!({ "automated_clean": true,
        "properties": { "skip_block_devices": [operators] } }))
            .shown(),
        )
        .patch,
    );
    assert_eq!(kept.0["properties"]["skip_block_devices"], json!(both));
    assert_eq!(kept.0["extra"]["metal3-kept-disks"], own());
    let other = keeping(&json!({ "cleaning": { "keepDisks": [{ "wwn": "0x53" }] } }));
    let other = kept.clone().patched(restrictions(&other, &kept.shown()).patch);
    let skipped = other.0["properties"]["skip_block_devices"].to_string();
    assert!(
        skipped.contains("sdz") && skipped.contains("0x53") && !skipped.contains("0x52"),
        "{skipped}"
    );
    let end = kept.clone().patched(restrictions(&keeping(&none), &kept.shown()).patch);
    assert_eq!(end.0["properties"]["skip_block_devices"], json!([operators]));
    assert!(end.0["extra"].get("metal3-kept-disks").is_none());
    assert_eq!(changed(&end, &keeping(&none)), [""; 0]);
}

#[test]
fn only_a_known_disk_that_no_image_can_be_written_to_is_protected() {
    let keep = |disk: Value| json!({ "cleaning": { "keepDisks": [disk] } });
    let root = |hints: Value| json!({ "rootDeviceHints": hints });
    let good = [
        json!({}),
        keep(json!({ "wwn": "0X52" })),
        keep(json!({ "serialNumber": "D2", "wwnWithExtension": "0x52e" })),
        root(json!({ "wwn": "0x53" })),
        root(json!({ "deviceName": "/dev/disk/by-path/p-3" })),
        root(json!({ "minSizeGigabytes": 3 })),
        root(json!({ "model": "MODEL 1", "hctl": "1:0:0:0" })),
        json!({ "cleaning": { "keepDisks": [] }, "rootDeviceHints": null }),
    ];
    for change in good {
        assert_eq!(kept::require_protected(&keeping(&change)), Ok(()), "{change}");
    }
    for (change, says) in [
        (keep(json!({})), "keepDisks[0] names no disk"),
        (keep(json!({ "serialNumber": "" })), "keepDisks[0] names no disk"),
        (keep(json!({ "serialNumber": "D4" })), "keepDisks[0] names no disk"),
        (keep(json!({ "serialNumber": "D" })), "keepDisks[0] names no disk"),
        (
            keep(json!({ "serialNumber": "D2", "wwn": "0x53" })),
            "keepDisks[0] names no disk",
        ),
        (keep(json!({ "serialNumber": "<or> D2" })), "operator"),
        (root(Value::Null), "spec.rootDeviceHints"),
        (root(json!({})), "may mean /dev/disk/by-path/p-2 (D2)"),
        (root(json!({ "serialNumber": "D2" })), "may mean"),
        (root(json!({ "deviceName": "/dev/sd1" })), "may mean"),
        (root(json!({ "hctl": "1:0:0:0" })), "may mean"),
        (root(json!({ "minSizeGigabytes": 2 })), "may mean"),
        (root(json!({ "rotational": false })), "may mean"),
        (root(json!({ "vendor": "ACME" })), "may mean"),
        (root(json!({ "serialNumber": "D9" })), "no known disk"),
        (json!({ "raid": { "softwareRAIDVolumes": [] } }), "spec.raid"),
    ] {
        let refused = kept::require_protected(&keeping(&change)).unwrap_err();
        assert!(refused.contains(says), "{change}: {refused}");
    }
}

#[test]
fn disk_is_kept_only_if_its_partitions_can_be_distinguished() {
    let nothing = json!({ "wwn": null, "wwnWithExtension": null });
    for (change, is_kept) in [
        (json!({}), true),
        (json!({ "serialNumber": "d2", "wwn": null }), true),
        // The number of a SCSI disk may differ from that of its partitions.
        (nothing.clone(), false),
        (with(nothing.clone(), &json!({ "hctl": null })), true),
        // A BMC reported it.
        (with(nothing.clone(), &json!({ "hctl": null, "name": "Disk 2" })), false),
        (json!({ "alternateNames": ["/dev/dm-1"] }), false),
        (json!({ "name": "/dev/md127" }), false),
    ] {
        let mut host = keeping(&json!({}));
        let changed = with(disk(2), &change);
        host.status.hardware.as_mut().unwrap().storage[1] = serde_json::from_value(changed).unwrap();
        assert_eq!(kept::require_protected(&host).is_ok(), is_kept, "{change}");
    }
    let mut unknown = keeping(&json!({}));
    unknown.status.hardware = None;
    assert!(kept::require_protected(&unknown).unwrap_err().contains("not known"));
}

/// Ironic skips it with the one that is named.
#[test]
fn disk_with_a_number_of_a_kept_one_is_kept_too() {
    let mut host = keeping(&json!({}));
    let storage = &mut host.status.hardware.as_mut().unwrap().storage;
    let wwn = storage[1].wwn.clone();
    storage[0].wwn = wwn;
    let storage = storage.clone();
    assert!(kept::is_kept(&host, &storage[0]) && kept::is_kept(&host, &storage[1]));
    assert!(kept::require_protected(&host).is_err(), "the image would go to it");
}

#[test]
fn recorded_root_device_must_be_another_disk_too() {
    let mut host = keeping(&json!({}));
    host.status.provisioning.root_device_hints = host.spec.root_device_hints.clone();
    assert_eq!(kept::require_recorded_root(&host), Ok(()));
    let kept = serde_json::from_value(json!({ "serialNumber": "D2" })).unwrap();
    host.status.provisioning.root_device_hints = Some(kept);
    assert!(kept::require_recorded_root(&host).is_err());
    host.status.provisioning.root_device_hints = None;
    assert!(kept::require_recorded_root(&host).is_err());
}

/// The next tenant would get what the former one left there.
#[test]
fn nothing_is_kept_from_the_cleaning_that_was_promised_to_a_claim() {
    let record = (CLAIM_RECORD_ANNOTATION.to_owned(), "not readable".to_owned());
    let claimed = |change: &Value| {
        let mut host = keeping(change);
        host.metadata.annotations = Some([record.clone()].into());
        kept::require_protected(&host)
    };
    let consumer = json!({ "consumerRef": { "apiVersion": "metal3.io/v1alpha1", "kind": "HostClaim", "name": "c", "namespace": "t" } });
    assert!(claimed(&consumer).unwrap_err().contains("HostClaim"));
    assert_eq!(claimed(&json!({})), Ok(()), "anyone's text without a consumer");
    let none = with(consumer, &json!({ "cleaning": { "keepDisks": [] } }));
    assert_eq!(claimed(&none), Ok(()));
}
