//! Deploy steps of the agent in the record of an instance.

use metal3_api::metal3::v1alpha1::Image;
use serde_json::{Value, json};

use super::super::deployment::Order;
use super::super::{Deployment, Instance};
use super::record::{Record, lines};
use super::{UID, settings, with_status};

const OTHER: &str = "7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c";
const SUM: &str = "2ace43c264d666031ec3062db892307818d2de9770c856258d87d3738ee6a77f";

fn disk(checksum_type: Option<&str>) -> Value {
    json!({ "url": "http://192.0.2.9/os.img", "checksum": SUM, "checksumType": checksum_type, "format": "raw" })
}

fn deployment(image: &Value, method: Option<&str>) -> Deployment {
    let image: Option<Image> = serde_json::from_value(image.clone()).unwrap();
    Deployment::new(image.as_ref(), method)
}

fn instance(image: &Value, method: Option<&str>) -> Instance {
    let host = with_status(json!({}), &json!({}));
    Instance::of(&host, &deployment(image, method), &settings()).unwrap()
}

/// `instance_info` without the keys that are the same in each row, and the deploy interface.
fn written(image: &Value, method: Option<&str>) -> (Value, Value) {
    let record = Record::new(&json!({ "provision_state": "available" }));
    let patch = instance(image, method).changes(&record.shown()).patch;
    let mut record = record.patched(patch);
    let info = record.0["instance_info"].as_object_mut().unwrap();
    for key in ["capabilities", "root_device", "metal3_image"] {
        assert!(info.remove(key).is_some(), "{key}");
    }
    (record.0["instance_info"].clone(), record.0["deploy_interface"].clone())
}

#[test]
fn deploy_step_has_its_interface_and_the_keys_of_the_image_that_the_go_manager_writes() {
    let source = "http://192.0.2.9/os.img";
    let rows = [
        (Value::Null, json!({})),
        (
            disk(Some("sha256")),
            json!({ "image_source": source, "image_disk_format": "raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": SUM }),
        ),
        (
            disk(None),
            json!({ "image_source": source, "image_disk_format": "raw", "image_os_hash_algo": "", "image_os_hash_value": SUM }),
        ),
        (
            json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso" }),
            json!({ "image_source": "http://192.0.2.9/live.iso", "image_disk_format": "live-iso" }),
        ),
        (
            json!({ "url": "oci://registry.example/os" }),
            json!({ "image_source": "oci://registry.example/os" }),
        ),
    ];
    for (image, mut expected) in rows {
        expected["metal3_deploy_step"] = "install".into();
        let (info, interface) = written(&image, Some("install"));
        assert_eq!(info, expected, "{image}");
        assert_eq!(interface, "custom-agent", "{image}");
    }
}

#[test]
fn image_after_a_deploy_step_has_no_key_and_no_interface_of_it() {
    let record = Record::new(&json!({ "provision_state": "available" }));
    let by_step = instance(&Value::Null, Some("install"));
    let record = record.clone().patched(by_step.changes(&record.shown()).patch);
    assert!(by_step.is_written_on(&record.shown()));
    let by_image = instance(&disk(None), None);
    assert!(!by_image.is_written_on(&record.shown()));
    let record = record.clone().patched(by_image.changes(&record.shown()).patch);
    assert_eq!(record.0["deploy_interface"], "direct");
    assert_eq!(record.0["instance_info"].get("metal3_deploy_step"), None);
    assert!(!by_step.is_written_on(&record.shown()));
    assert_eq!(lines(&by_image.changes(&record.shown()).patch), [""; 0]);
}

#[test]
fn order_without_a_deploy_step_has_the_digest_of_earlier_versions() {
    let of = |image: &Value, method| Order::of(&deployment(image, method)).unwrap().digest(UID);
    let disk = disk(Some("sha256"));
    let text = format!("{UID}\nhttp://192.0.2.9/os.img\n{SUM}\nsha256\n");
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(of(&disk, None), digest);
    assert_ne!(of(&disk, Some("install")), digest);
    assert_ne!(of(&disk, Some("install")), of(&disk, Some("other")));
    assert_ne!(of(&disk, Some("install")), of(&Value::Null, Some("install")));
}

/// The Go manager records no name of a step: only whether one ran, and with which image.
#[test]
fn node_that_a_go_manager_configured_shows_the_image_and_the_interface() {
    let source = "http://192.0.2.9/os.img";
    let info = json!({ "image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": SUM });
    let untyped = json!({ "image_source": source, "image_os_hash_algo": "", "image_os_hash_value": SUM });
    let live = json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso" });
    let rows = [
        (Value::Null, json!({}), "custom-agent", true),
        (Value::Null, json!({}), "direct", false),
        (Value::Null, info.clone(), "custom-agent", false),
        (disk(Some("sha256")), info.clone(), "custom-agent", true),
        (disk(Some("sha256")), info.clone(), "direct", false),
        (disk(Some("sha256")), json!({}), "custom-agent", false),
        (disk(None), untyped, "custom-agent", true),
        (
            live.clone(),
            json!({ "image_source": "http://192.0.2.9/live.iso" }),
            "custom-agent",
            true,
        ),
        (
            live,
            json!({ "boot_iso": "http://192.0.2.9/live.iso" }),
            "ramdisk",
            false,
        ),
    ];
    let md5 = json!({ "image_source": source, "image_os_hash_algo": "md5", "image_os_hash_value": SUM });
    let rows = rows.into_iter().chain([(disk(None), md5, "custom-agent", true)]);
    for (image, info, interface, expected) in rows {
        let node =
            Record::new(&json!({ "instance_info": info, "deploy_interface": interface, "instance_uuid": UID })).shown();
        let found = instance(&image, Some("install")).is_written_on(&node);
        assert_eq!(found, expected, "{image} {info} {interface}");
    }
}

/// Any two machines that such steps installed look alike. Ironic writes no image with that interface.
#[test]
fn node_of_a_deploy_step_says_little_about_what_runs() {
    let node = |info: Value, interface: &str| {
        Record::new(&json!({ "instance_info": info, "deploy_interface": interface, "instance_uuid": OTHER })).shown()
    };
    let by_step = instance(&Value::Null, Some("install"));
    let of_go = node(json!({}), "custom-agent");
    assert!(by_step.is_written_on(&of_go) && !by_step.is_identified_on(&of_go));
    let order = Order::of(&deployment(&Value::Null, Some("install"))).unwrap();
    let of_ours = node(json!({ "metal3_image": order.digest(OTHER) }), "custom-agent");
    assert!(by_step.is_identified_on(&of_ours));
    let info = json!({ "image_source": "http://192.0.2.9/os.img", "image_os_hash_algo": "sha256", "image_os_hash_value": SUM });
    let image = instance(&disk(Some("sha256")), None);
    assert!(image.is_written_on(&node(info.clone(), "direct")));
    assert!(!image.is_written_on(&node(info, "custom-agent")));
}

#[test]
fn step_of_ironic_itself_is_no_deploy_step_of_the_agent() {
    for (method, is_accepted) in [
        ("install_coreos", true),
        ("write_image", true),
        ("deploy", false),
        ("prepare_instance_boot", false),
        ("tear_down_agent", false),
        ("hold", false),
    ] {
        let found = Order::of(&deployment(&Value::Null, Some(method)));
        assert_eq!(found.is_ok(), is_accepted, "{method}");
    }
}

#[test]
fn deploy_step_changes_neither_fake_hardware_nor_the_boot_device() {
    let record =
        Record::new(&json!({ "driver": "fake-hardware", "deploy_interface": "fake", "provision_state": "available" }));
    let patch = instance(&Value::Null, Some("install")).changes(&record.shown()).patch;
    let record = record.patched(patch);
    assert_eq!(record.0["deploy_interface"], "fake");
    assert_eq!(record.0["driver_info"].get("force_persistent_boot_device"), None);
}

#[test]
fn deploy_step_is_sent_in_addition_to_those_of_ironic() {
    let sent = |method| serde_json::to_value(instance(&disk(None), method).steps()).unwrap();
    let step = json!({ "interface": "deploy", "step": "install", "args": {}, "priority": 80 });
    assert_eq!(sent(Some("install")), json!([step]));
    assert_eq!(sent(None), json!([]));
}

#[test]
fn live_iso_has_no_config_drive_with_a_deploy_step_either() {
    let live = json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso" });
    assert!(instance(&live, Some("install")).is_live_iso());
    assert!(!instance(&Value::Null, Some("install")).is_live_iso());
}
