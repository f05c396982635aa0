//! The record of an instance: keys that are written and removed.

use metal3_api::metal3::v1alpha1::Image;
use metal3_ironic::calls::patch::Patch;
use serde_json::{Value, json};

use super::super::{Instance, InstanceOwner, NodeSettings, instance};
use super::record::{Record, lines};
use super::{UID, settings, with_status};

const DIGEST: &str = "2ace43c264d666031ec3062db892307818d2de9770c856258d87d3738ee6a77f";

fn of(image: Value, provisioning: &Value) -> Instance {
    let host = with_status(json!({}), provisioning);
    Instance::of(&host, &image_of(image).into(), &settings()).unwrap()
}

fn image_of(image: Value) -> Image {
    serde_json::from_value(image).unwrap()
}

fn raw() -> Value {
    json!({"url": "http://192.0.2.9/os.img", "checksum": DIGEST, "checksumType": "sha256", "format": "raw"})
}

fn live_iso() -> Value {
    json!({"url": "http://192.0.2.9/live.iso", "format": "live-iso"})
}

/// The own key, which the Go manager does not write.
const ORDERED: &str = "metal3_image";

/// Without the own key.
fn as_upstream(patch: &Patch) -> Vec<String> {
    let own = format!("/instance_info/{ORDERED}: ");
    let (own, rest): (Vec<_>, Vec<_>) = lines(patch).into_iter().partition(|line| line.starts_with(&own));
    assert_eq!(own.len(), 1, "{own:?}");
    rest
}

/// `instance_info` without the own key.
fn info_as_upstream(mut record: Record) -> Value {
    let mut info = record.0["instance_info"].take();
    assert!(info.as_object_mut().unwrap().remove(ORDERED).is_some());
    info
}

fn available() -> Record {
    Record::new(&json!({"provision_state": "available"}))
}

/// Ironic decides by the content of the file, and by the lines of the file with checksums.
#[test]
fn compressed_image_and_file_of_checksums_are_sent_as_they_are_named() {
    let checksums = "https://images.example/SHASUMS";
    for url in [
        "https://images.example/os.raw.zst",
        "https://images.example/os.qcow2.xz",
    ] {
        for kind in [Value::Null, json!("auto")] {
            let image = json!({ "url": url, "checksum": checksums, "checksumType": kind, "format": "raw" });
            let sent = lines(&of(image, &json!({})).changes(&available().shown()).patch);
            for (key, value) in [
                ("image_source", url),
                ("image_checksum", checksums),
                ("image_disk_format", "raw"),
            ] {
                let line = format!("/instance_info/{key}: \"{value}\"");
                assert!(sent.contains(&line), "{line}: {sent:?}");
            }
            let is_typed = |line: &String| line.contains("image_os_hash");
            assert!(!sent.iter().any(is_typed), "{sent:?}");
        }
    }
}

#[test]
fn an_image_with_a_typed_checksum_writes_what_the_go_manager_writes() {
    let instance = of(raw(), &json!({"rootDeviceHints": {"deviceName": "/dev/sda"}}));
    let expected = [
        format!("/instance_uuid: \"{UID}\""),
        "/instance_info/capabilities: {}".to_owned(),
        r#"/instance_info/root_device: {"name":"s== /dev/sda"}"#.to_owned(),
        r#"/instance_info/image_source: "http://192.0.2.9/os.img""#.to_owned(),
        r#"/instance_info/image_disk_format: "raw""#.to_owned(),
        r#"/instance_info/image_os_hash_algo: "sha256""#.to_owned(),
        format!("/instance_info/image_os_hash_value: \"{DIGEST}\""),
        r#"/driver_info/force_persistent_boot_device: "Default""#.to_owned(),
    ];
    assert_eq!(as_upstream(&instance.changes(&available().shown()).patch), expected);
}

#[test]
fn a_live_iso_writes_what_the_go_manager_writes() {
    let instance = of(live_iso(), &json!({"rootDeviceHints": {"deviceName": "/dev/sda"}}));
    let expected = [
        format!("/instance_uuid: \"{UID}\""),
        "/instance_info/capabilities: {}".to_owned(),
        r#"/instance_info/root_device: {"name":"s== /dev/sda"}"#.to_owned(),
        r#"/instance_info/boot_iso: "http://192.0.2.9/live.iso""#.to_owned(),
        r#"/driver_info/force_persistent_boot_device: "Default""#.to_owned(),
        r#"/deploy_interface: "ramdisk""#.to_owned(),
    ];
    assert_eq!(as_upstream(&instance.changes(&available().shown()).patch), expected);
    assert!(instance.is_live_iso());
}

#[test]
fn each_form_of_checksum_has_its_keys() {
    let url = "http://192.0.2.9/os.img.sum";
    let rows = [
        (json!({"checksum": DIGEST}), json!({"image_checksum": DIGEST})),
        (
            json!({"checksum": DIGEST, "checksumType": "auto"}),
            json!({"image_checksum": DIGEST}),
        ),
        (json!({"checksum": url}), json!({"image_checksum": url})),
        (
            json!({"checksum": url, "checksumType": "sha512"}),
            json!({"image_os_hash_algo": "sha512", "image_os_hash_value": url}),
        ),
        (
            json!({"checksum": "d41d8cd98f00b204e9800998ecf8427e", "checksumType": "md5"}),
            json!({"image_os_hash_algo": "md5", "image_os_hash_value": "d41d8cd98f00b204e9800998ecf8427e"}),
        ),
    ];
    for (checksum, mut expected) in rows {
        let mut image = json!({"url": "http://192.0.2.9/os.img"});
        super::merge(&mut image, &checksum);
        super::merge(
            &mut expected,
            &json!({"capabilities": {}, "root_device": {}, "image_source": "http://192.0.2.9/os.img"}),
        );
        let record = available();
        let patch = of(image, &json!({})).changes(&record.shown()).patch;
        assert_eq!(info_as_upstream(record.patched(patch)), expected, "{checksum}");
    }
}

#[test]
fn keys_of_an_earlier_deployment_are_removed() {
    let record = available();
    let first = of(raw(), &json!({"bootMode": "UEFISecureBoot"}));
    let patch = first.changes(&record.shown()).patch;
    let record = record.patched(patch);
    assert_eq!(
        record.0["instance_info"]["capabilities"],
        json!({"secure_boot": "true"})
    );
    let mut record = record;
    record.0["instance_info"]["image_pull_secret"] = "x".into();
    record.0["instance_info"]["image_type"] = "whole-disk".into();
    let second = of(live_iso(), &json!({}));
    let patch = second.changes(&record.shown()).patch;
    let record = record.patched(patch);
    let expected = json!({"capabilities": {}, "root_device": {}, "boot_iso": "http://192.0.2.9/live.iso", "image_type": "whole-disk"});
    assert_eq!(record.0["deploy_interface"], "ramdisk");
    assert_eq!(info_as_upstream(record.clone()), expected);
    let patch = first.changes(&record.shown()).patch;
    assert!(lines(&patch).contains(&"/deploy_interface".to_owned()));
    assert_eq!(record.patched(patch).0["deploy_interface"], "direct");
}

#[test]
fn fake_hardware_keeps_its_deploy_interface() {
    let record =
        Record::new(&json!({"driver": "fake-hardware", "deploy_interface": "fake", "provision_state": "available"}));
    let patch = of(live_iso(), &json!({})).changes(&record.shown()).patch;
    assert_eq!(record.patched(patch).0["deploy_interface"], "fake");
}

#[test]
fn boot_device_is_configured_per_image_kind() {
    let settings = NodeSettings {
        direct_boot_device: "Never".to_owned(),
        live_iso_boot_device: "Always".to_owned(),
        ..settings()
    };
    let host = with_status(json!({}), &json!({}));
    for (image, expected) in [(raw(), "Never"), (live_iso(), "Always")] {
        let record = available();
        let instance = Instance::of(&host, &image_of(image).into(), &settings).unwrap();
        let patch = instance.changes(&record.shown()).patch;
        assert_eq!(
            record.patched(patch).0["driver_info"]["force_persistent_boot_device"],
            expected
        );
    }
}

#[test]
fn node_with_another_instance_keeps_it() {
    let other = "00000000-0000-4000-8000-000000000001";
    let instance = of(raw(), &json!({}));
    for (uuid, expected) in [
        (Value::Null, InstanceOwner::None),
        (json!(UID), InstanceOwner::ThisHost),
        (json!(UID.to_uppercase()), InstanceOwner::ThisHost),
        (json!(other), InstanceOwner::Other(other.to_owned())),
    ] {
        let record = Record::new(&json!({"instance_uuid": uuid}));
        assert_eq!(instance.owner_of(&record.shown()), expected);
    }
    let taken = Record::new(&json!({"instance_uuid": other}));
    let changes = instance.changes(&taken.shown());
    assert_eq!(changes.postponed, ["instance_uuid"]);
    assert!(
        !lines(&changes.patch)
            .iter()
            .any(|line| line.starts_with("/instance_uuid"))
    );
    let released = taken.clone().patched(instance::release(&taken.shown()));
    assert_eq!(instance.owner_of(&released.shown()), InstanceOwner::None);
    assert!(instance::release(&released.shown()).is_empty());
}

#[test]
fn same_image_is_identified_by_source_and_checksum() {
    let on = |info: Value| Record::new(&json!({"instance_info": info})).shown();
    let untyped = json!({"url": "http://192.0.2.9/os.img", "checksum": DIGEST});
    let source = "http://192.0.2.9/os.img";
    let typed_info = json!({"image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": DIGEST});
    let rows = [
        (raw(), typed_info.clone(), true),
        (
            raw(),
            json!({"image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": DIGEST, "image_disk_format": "qcow2"}),
            true,
        ),
        (
            raw(),
            json!({"image_source": "x", "image_os_hash_algo": "sha256", "image_os_hash_value": DIGEST}),
            false,
        ),
        (
            raw(),
            json!({"image_source": source, "image_os_hash_algo": "sha512", "image_os_hash_value": DIGEST}),
            false,
        ),
        (
            raw(),
            json!({"image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": DIGEST, "image_checksum": DIGEST}),
            false,
        ),
        (raw(), json!({}), false),
        (
            untyped.clone(),
            json!({"image_source": source, "image_checksum": DIGEST}),
            true,
        ),
        (untyped, typed_info, false),
        (live_iso(), json!({"boot_iso": "http://192.0.2.9/live.iso"}), true),
        (
            live_iso(),
            json!({"boot_iso": "http://192.0.2.9/live.iso", "image_source": source}),
            true,
        ),
        (live_iso(), json!({"boot_iso": source}), false),
        (
            json!({"url": "http://192.0.2.9/os.img?token=a", "checksum": DIGEST}),
            json!({"image_source": "http://192.0.2.9/os.img?token=a", "image_checksum": DIGEST}),
            true,
        ),
    ];
    for (image, info, expected) in rows {
        assert_eq!(
            of(image.clone(), &json!({})).is_written_on(&on(info.clone())),
            expected,
            "{image} {info}"
        );
    }
}

#[test]
fn invalid_images_are_rejected_by_field() {
    let rows = [
        (
            json!({"url": "http://192.0.2.9/os.img"}),
            "spec.image.checksum",
            "the checksum is missing; set it",
        ),
        (
            json!({"url": "", "checksum": DIGEST}),
            "spec.image.url",
            "the URL is missing; set it",
        ),
        (
            json!({"url": "nfs://192.0.2.9/os", "checksum": DIGEST}),
            "spec.image.url",
            "use http, https",
        ),
        (
            json!({"url": "oci://192.0.2.9/os", "checksum": DIGEST}),
            "spec.image.checksum",
            "the registry's digest is used",
        ),
        (
            json!({"url": "http://192.0.2.9/os.img", "checksum": "ab\ncd"}),
            "spec.image.checksum",
            "control character",
        ),
    ];
    for (image, field, words) in rows {
        let host = with_status(json!({}), &json!({}));
        let invalid = Instance::of(&host, &image_of(image.clone()).into(), &settings()).unwrap_err();
        assert_eq!(invalid.field(), field, "{image}");
        assert!(invalid.to_string().contains(words), "{image}: {invalid}");
    }
    let mut without_uid = with_status(json!({}), &json!({}));
    without_uid.metadata.uid = None;
    assert_eq!(
        Instance::of(&without_uid, &image_of(raw()).into(), &settings())
            .unwrap_err()
            .field(),
        "metadata.uid"
    );
    let hints = json!({"rootDeviceHints": {"model": "a\tb"}});
    let host = with_status(json!({}), &hints);
    let invalid = Instance::of(&host, &image_of(raw()).into(), &settings()).unwrap_err();
    assert_eq!(invalid.field(), "spec.rootDeviceHints.model");
}

#[test]
fn debug_of_an_instance_contains_no_url() {
    let image = json!({"url": "http://user:canary@192.0.2.9/os.img?token=canary", "checksum": DIGEST});
    let shown = format!("{:?}", of(image, &json!({})));
    assert!(!shown.contains("canary"), "{shown}");
}

/// The node of a host of baremetal-operator up to 0.9 without `checksumType`, derived from its code.
#[test]
fn image_without_algorithm_counts_as_written_when_an_older_manager_stated_md5() {
    let mut image = raw();
    image["checksum"] = "0c2b1d2f3e4a5b6c7d8e9f0011223344".into();
    image.as_object_mut().unwrap().remove("checksumType");
    let asked = of(image, &json!({}));
    let mut record = available();
    record.0["instance_info"] = json!({
        "image_source": raw()["url"], "image_os_hash_algo": "md5", "image_os_hash_value": "0c2b1d2f3e4a5b6c7d8e9f0011223344",
    });
    assert!(asked.is_written_on(&record.shown()));
    for (key, value) in [
        ("image_os_hash_value", "0"),
        ("image_os_hash_algo", "sha256"),
        ("image_source", "http://o/i"),
    ] {
        let mut other = record.0.clone();
        other["instance_info"][key] = value.into();
        record.0 = other;
        assert!(!asked.is_written_on(&record.shown()), "{key}");
    }
}

/// Ironic replaces source and digest while it deploys.
#[test]
fn recorded_order_identifies_the_image_of_an_instance() {
    let (asked, other) = (of(raw(), &json!({})), of(live_iso(), &json!({})));
    let record = available();
    let patch = asked.changes(&record.shown()).patch;
    let mut record = record.patched(patch);
    record.0["instance_info"]["image_source"] = "http://mirror.example/os.img".into();
    record.0["instance_info"]["image_os_hash_value"] = "0".into();
    assert!(asked.is_written_on(&record.shown()));
    assert!(!other.is_written_on(&record.shown()));
    record.0["instance_uuid"] = super::UID.replace('f', "0").into();
    assert!(!asked.is_written_on(&record.shown()), "ordered for another instance");
}

/// Ironic masks the secret, so the URL that it shows does not distinguish the two.
#[test]
fn image_with_another_secret_in_its_url_replaces_the_former() {
    let iso = |token: &str| json!({"url": format!("http://192.0.2.9/live.iso?token={token}"), "format": "live-iso"});
    let record = available();
    let patch = of(iso("one"), &json!({})).deployed_from(None, &record.shown()).patch;
    let (record, second) = (record.patched(patch), of(iso("two"), &json!({})));
    let patch = second.deployed_from(None, &record.shown()).patch;
    let record = record.patched(patch);
    assert!(second.is_written_on(&record.shown()));
    assert_eq!(
        record.0["instance_info"]["boot_iso"],
        "http://192.0.2.9/live.iso?token=two"
    );
    assert!(
        second.deployed_from(None, &record.shown()).patch.is_empty(),
        "sent once"
    );
}
