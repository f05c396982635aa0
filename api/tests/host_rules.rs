//! Cases that the examples of the host kinds do not cover: accepted requests and the limits of rows.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use metal3_api::catalog;
use metal3_api::rules::{Decision, Operation, Reason};
use serde_json::{Value, json};

fn object(kind: &str, annotations: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": kind,
        "metadata": { "name": "node-0", "namespace": "metal", "annotations": annotations }, "spec": spec,
    })
}

fn host(spec: &Value) -> Value {
    object("BareMetalHost", &json!({}), spec)
}

fn annotated(annotations: &Value) -> Value {
    object("BareMetalHost", annotations, &json!({ "online": true }))
}

fn review(operation: Operation, old: Option<&Value>, new: Option<&Value>) -> Decision {
    let kind = new.or(old).unwrap()["kind"].clone();
    let mut reviewers = catalog::reviewers().into_iter();
    let reviewer = reviewers.find(|reviewer| kind == reviewer.kind).unwrap();
    (reviewer.review)(operation, old, new).unwrap()
}

fn create(object: &Value) -> Decision {
    review(Operation::Create, None, Some(object))
}

fn update(old: &Value, new: &Value) -> Decision {
    review(Operation::Update, Some(old), Some(new))
}

fn rules(decision: &Decision) -> Vec<&'static str> {
    decision.findings.iter().map(|finding| finding.rule).collect()
}

const REDFISH: &str = "redfish://192.0.2.1/redfish/v1/Systems/1";

#[test]
fn hosts_that_the_go_manager_accepts_are_accepted() {
    let bmc = |address: &str| json!({ "address": address, "credentialsName": "bmc" });
    let mac = "52:54:00:aa:bb:01";
    for spec in [
        json!({ "online": false }),
        json!({ "online": true, "bmc": bmc("") }),
        json!({ "online": true, "bmc": bmc("libvirt://192.0.2.1:6230"), "bootMACAddress": mac }),
        json!({ "online": true, "bmc": bmc(REDFISH), "inspectionMode": "disabled", "bootMACAddress": mac }),
        json!({ "online": true, "bmc": bmc(REDFISH), "inspectionMode": "fast", "bootMode": "UEFISecureBoot" }),
        json!({ "online": true, "bmc": bmc("ipmi://192.0.2.1"), "raid": { "hardwareRAIDVolumes": [] } }),
        json!({ "online": true, "bootMACAddress": "52:54:00:aa:bb:01:02", "inspectionMode": "fast" }),
        json!({ "online": true, "bootMode": "UEFISecureBoot", "raid": { "hardwareRAIDVolumes": [{ "level": "1" }] } }),
        json!({ "online": true, "raid": { "hardwareRAIDVolumes": [{ "level": "1", "numberOfPhysicalDisks": 2 }] } }),
        json!({ "online": true, "raid": { "hardwareRAIDVolumes": [], "softwareRAIDVolumes": [{ "level": "0" }] },
                "rootDeviceHints": { "model": "SAS" } }),
        json!({ "online": true, "rootDeviceHints": { "deviceName": "/dev/disk/by-path/pci-0000:01:00.0" } }),
        json!({ "online": true, "rootDeviceHints": { "deviceName": "/dev/sda" } }),
        json!({ "online": true, "rootDeviceHints": { "deviceName": "" } }),
        json!({ "online": true, "image": { "url": "oci://192.0.2.9/os", "checksumType": "sha256" } }),
        json!({ "online": true, "image": { "url": "https://192.0.2.9/os", "checksum": "http://%zz" } }),
        json!({ "online": true, "userData": { "name": "u" }, "metaData": { "name": "m", "namespace": "metal" } }),
        json!({ "online": true, "disablePowerOff": true }),
        json!({ "online": false, "disablePowerOff": false }),
    ] {
        assert_eq!(create(&host(&spec)), Decision::default(), "{spec}");
    }
}

#[test]
fn annotations_that_the_go_manager_accepts_are_accepted() {
    for annotations in [
        json!({ "inspect.metal3.io": "" }),
        json!({ "inspect.metal3.io": "disabled", "inspect.metal3.io/hardwaredetails": r#"{"cpu": {"count": 4}} "# }),
        json!({ "inspect.metal3.io/hardwaredetails": "" }),
        json!({ "baremetalhost.metal3.io/status": "" }),
        json!({ "baremetalhost.metal3.io/status": r#"{"operationalStatus": "OK", "errorType": ""}"# }),
        json!({ "baremetalhost.metal3.io/status": r#"{"OperationalStatus": "detached", "errorType": null}"# }),
        json!({ "baremetalhost.metal3.io/detached": "whatever", "baremetalhost.metal3.io/paused": "" }),
        json!({ "reboot.metal3.io/": r#"{"mode": "soft"}"#, "reboot.metal3.io.example": "hard" }),
    ] {
        assert_eq!(create(&annotated(&annotations)), Decision::default(), "{annotations}");
    }
}

#[test]
fn status_saved_from_a_host_in_service_can_be_restored() {
    let status = r#"{"operationalStatus": "servicing", "errorType": "servicing error", "errorMessage": "",
                     "poweredOn": true, "errorCount": 1, "provisioning": {"state": "provisioned", "ID": "8d5c"}}"#;
    let moved = annotated(&json!({ "baremetalhost.metal3.io/status": status }));
    assert_eq!(create(&moved), Decision::default());
}

#[test]
fn documents_that_violate_the_schema_are_rejected_at_any_depth() {
    let status = |text: &str| create(&annotated(&json!({ "baremetalhost.metal3.io/status": text })));
    for text in [
        "OK",
        "[]",
        r#"{"errorCount": "1"}"#,
        r#"{"hardware": {"nics": [{"colour": "grey"}]}}"#,
    ] {
        assert_eq!(rules(&status(text)), ["status-readable"], "{text}");
    }
    assert_eq!(rules(&status(r#"{"errorType": "bad luck"}"#)), ["status-values-known"]);
}

#[test]
fn disabled_inspection_and_an_inspecting_mode_contradict_each_other_both_ways() {
    for (annotation, mode, found) in [
        ("disabled", "fast", vec!["inspection-unambiguous"]),
        ("disabled", "disabled", vec![]),
        ("please", "disabled", vec!["inspect-known", "inspection-unambiguous"]),
        ("please", "agent", vec!["inspect-known"]),
        ("", "disabled", vec![]),
    ] {
        let annotations = json!({ "inspect.metal3.io": annotation });
        let spec = json!({ "online": true, "inspectionMode": mode });
        let decision = create(&object("BareMetalHost", &annotations, &spec));
        assert_eq!(rules(&decision), found, "{annotation} {mode}");
    }
}

#[test]
fn stored_host_with_an_invalid_spec_can_be_relabelled_and_deleted() {
    let old = host(&json!({
        "online": false, "disablePowerOff": true, "firmware": {}, "userData": { "name": "u", "namespace": "other" },
        "bmc": { "address": "libvirt://192.0.2.1", "credentialsName": "bmc" }, "image": { "url": "i/a" },
    }));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert!(create(&old).findings.len() > 5);
    assert_eq!(update(&old, &new), Decision::default());
    assert_eq!(review(Operation::Delete, Some(&old), None), Decision::default());
    new["spec"]["description"] = json!("rack 4");
    assert_eq!(
        rules(&update(&old, &new)),
        rules(&create(&old)),
        "a change of the spec is checked"
    );
    let mut uninspected = old.clone();
    uninspected["metadata"]["annotations"] = json!({ "inspect.metal3.io": "disabled" });
    assert_eq!(
        rules(&update(&old, &uninspected)),
        ["boot-mac-given"],
        "a change of inspection is checked as well"
    );
}

#[test]
fn address_changes_while_either_side_is_detached_or_registering() {
    let at = |address: &str, state: &str, operational: &str| {
        let mut host = host(&json!({ "online": true, "bmc": { "address": address, "credentialsName": "bmc" } }));
        host["status"] = json!({ "operationalStatus": operational, "errorMessage": "", "poweredOn": true,
                                 "provisioning": { "state": state, "ID": "" } });
        host
    };
    let other = "redfish://192.0.2.2/redfish/v1/Systems/1";
    let stays = at(other, "available", "OK");
    for (old, allowed) in [
        (at(REDFISH, "available", "OK"), false),
        (at(REDFISH, "registering", "OK"), true),
        (at(REDFISH, "provisioned", "detached"), true),
        (at("", "available", "OK"), true),
        (at(other, "available", "OK"), true),
    ] {
        assert_eq!(update(&old, &stays).allowed(), allowed, "{old}");
    }
    assert!(update(&at(REDFISH, "available", "OK"), &at(other, "registering", "OK")).allowed());
    assert!(update(&at(REDFISH, "available", "OK"), &at(other, "available", "detached")).allowed());
    assert!(!update(&at(REDFISH, "available", "OK"), &at("", "available", "OK")).allowed());
}

#[test]
fn adoption_is_switched_on_while_available_on_either_side_and_off_at_any_time() {
    let at = |adopted: bool, state: &str| {
        let mut host = host(&json!({ "online": true, "externallyProvisioned": adopted }));
        host["status"] = json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": true,
                                 "provisioning": { "state": state, "ID": "" } });
        host
    };
    assert!(update(&at(false, "available"), &at(true, "available")).allowed());
    assert!(update(&at(false, "inspecting"), &at(true, "available")).allowed());
    assert!(!update(&at(false, "provisioned"), &at(true, "provisioned")).allowed());
    assert!(update(&at(true, "provisioned"), &at(true, "provisioned")).allowed());
    assert!(update(&at(true, "provisioned"), &at(false, "provisioned")).allowed());
    assert!(create(&at(true, "")).allowed(), "a host may be adopted from the start");
}

#[test]
fn boot_mac_may_be_set_once_and_change_its_case() {
    let with = |mac: &str| host(&json!({ "online": true, "bootMACAddress": mac }));
    let without = host(&json!({ "online": true }));
    assert!(update(&without, &with("52:54:00:aa:bb:01")).allowed());
    assert!(update(&with("52:54:00:aa:bb:01"), &with("52:54:00:AA:BB:01")).allowed());
    assert!(!update(&with("52:54:00:aa:bb:01"), &with("52:54:00:aa:bb:02")).allowed());
}

#[test]
fn address_with_a_password_is_rejected_without_repeating_it() {
    for address in [
        "foo://root:calvin@192.0.2.1",
        "ipmi://root:calvin@bad_host",
        "redfish://root:calvin@[1",
    ] {
        let decision = create(&host(
            &json!({ "online": true, "bmc": { "address": address, "credentialsName": "bmc" } }),
        ));
        let text = decision.findings.iter().map(ToString::to_string).collect::<String>();
        assert!(!decision.allowed() && !text.contains("calvin"), "{text}");
    }
    let image = json!({ "url": "s3://me:calvin@bucket/os", "checksum": "ab12" });
    let decision = create(&host(&json!({ "online": true, "image": image })));
    let text = decision.findings.iter().map(ToString::to_string).collect::<String>();
    assert!(!decision.allowed() && !text.contains("calvin"), "{text}");
}

#[test]
fn subscription_with_headers_accepts_its_finalizer() {
    let spec = json!({ "hostName": "node-0", "destination": "https://192.0.2.50/events",
                       "httpHeadersRef": { "name": "headers", "namespace": "metal" } });
    let old = object("BMCEventSubscription", &json!({}), &spec);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["bmceventsubscription.metal3.io"]);
    assert_eq!(create(&old), Decision::default());
    assert_eq!(update(&old, &new), Decision::default());
    new["spec"]["httpHeadersRef"]["name"] = json!("others");
    assert_eq!(rules(&update(&old, &new)), ["unchanged"]);
}

#[test]
fn claims_with_every_operator_are_accepted() {
    let expressions = json!([
        { "key": "a", "operator": "=", "values": ["x"] },
        { "key": "b", "operator": "==", "values": [""] },
        { "key": "c", "operator": "!=", "values": ["x"] },
        { "key": "d.example/e", "operator": "in", "values": ["x", "y"] },
        { "key": "f", "operator": "notin", "values": ["x"] },
        { "key": "g", "operator": "exists", "values": [] },
        { "key": "h", "operator": "!", "values": [] },
    ]);
    let spec = json!({ "poweredOn": true, "image": { "url": "http://192.0.2.9/os", "checksum": "ab12" },
                       "userData": { "name": "u", "namespace": "metal" }, "networkData": { "name": "n" },
                       "hostSelector": { "matchExpressions": expressions, "matchLabels": { "a": "x", "b": "" } } });
    assert_eq!(rules(&create(&object("HostClaim", &json!({}), &spec))), ["unserved"]);
}

#[test]
fn stored_attachment_with_invalid_vlans_can_be_relabelled() {
    let old = object(
        "HostNetworkAttachment",
        &json!({}),
        &json!({ "mode": "access", "nativeVLAN": 7, "allowedVLANs": ["0"] }),
    );
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "moved": "yes" });
    assert_eq!(create(&old).findings.len(), 2);
    assert_eq!(update(&old, &new), Decision::default());
}

#[test]
fn missing_invalid_and_forbidden_values_have_different_reasons() {
    let subscription = |destination: &str| {
        let spec = json!({ "hostName": "node-0", "destination": destination });
        object("BMCEventSubscription", &json!({}), &spec)
    };
    let image = |image: Value| host(&json!({ "online": true, "image": image }));
    for (object, reason) in [
        (subscription(""), Reason::Required),
        (subscription("https://192.0.2.50"), Reason::Invalid),
        (image(json!({ "url": "", "checksum": "ab12" })), Reason::Required),
        (image(json!({ "url": "i/a", "checksum": "ab12" })), Reason::Invalid),
        (image(json!({ "url": "http://192.0.2.9/os" })), Reason::Required),
        (
            image(json!({ "url": "oci://192.0.2.9/os", "checksum": "ab12" })),
            Reason::Forbidden,
        ),
    ] {
        let found: Vec<Reason> = create(&object).findings.iter().map(|finding| finding.reason).collect();
        assert_eq!(found, [reason], "{object}");
    }
}

#[test]
fn secrets_of_a_stored_claim_are_checked_when_they_change() {
    let claim = |namespace: &str, powered_on: bool| {
        let secret = json!({ "name": "u", "namespace": namespace });
        object(
            "HostClaim",
            &json!({}),
            &json!({ "poweredOn": powered_on, "userData": secret }),
        )
    };
    assert_eq!(
        rules(&update(&claim("other", true), &claim("other", false))),
        ["unserved"]
    );
    assert_eq!(
        rules(&update(&claim("metal", true), &claim("metal", false))),
        ["unserved"]
    );
    assert_eq!(
        rules(&update(&claim("metal", true), &claim("other", true))),
        ["secret-in-own-namespace"]
    );
}

#[test]
fn interfaces_without_name_and_address_are_no_duplicates() {
    let decision = create(&host(&json!({ "online": true, "networkInterfaces": [{}, {}] })));
    assert_eq!(rules(&decision), ["interface-identified", "interface-identified"]);
}

#[test]
fn problem_and_cure_of_an_image_are_separate() {
    let decision = create(&host(
        &json!({ "online": true, "image": { "url": "http://192.0.2.9/os" } }),
    ));
    let texts: Vec<_> = decision
        .findings
        .iter()
        .map(|it| (it.problem.as_str(), it.cure.as_str()))
        .collect();
    assert_eq!(
        texts,
        [(
            "the checksum is missing",
            "set it to the image's digest or to the URL of a file of digests"
        )]
    );
}

#[test]
fn network_interfaces_are_accepted_with_a_warning() {
    let interfaces = json!([{ "name": "eno1" }, { "name": "eno2", "macAddress": "" }]);
    let decision = create(&host(&json!({ "online": true, "networkInterfaces": interfaces })));
    assert!(decision.allowed());
    assert_eq!(rules(&decision), ["network-interfaces-unserved"]);
    assert_eq!(decision.findings[0].path.as_str(), "spec.networkInterfaces");
    assert!(
        decision.warnings()[0].contains("no switch is configured"),
        "{decision:?}"
    );
}

#[test]
fn what_nothing_verifies_is_accepted_with_a_warning() {
    let image = |image: Value| json!({ "online": true, "image": image });
    let (md5, sha) = ("0123456789abcdef0123456789abcdef", "0".repeat(64));
    let url = "http://192.0.2.9/os";
    for (spec, found) in [
        (image(json!({ "url": url, "checksum": sha })), None),
        (
            image(json!({ "url": url, "checksum": md5, "checksumType": "sha256" })),
            None,
        ),
        (
            image(json!({ "url": url, "checksum": md5, "checksumType": "auto" })),
            Some("image-checksum-strong"),
        ),
        (
            image(json!({ "url": url, "checksum": "https://192.0.2.9/sums", "checksumType": "md5" })),
            Some("image-checksum-strong"),
        ),
        (
            image(json!({ "url": "https://192.0.2.9/os", "format": "live-iso" })),
            Some("image-verified"),
        ),
        (
            image(json!({ "url": url, "format": "live-iso" })),
            Some("image-verified"),
        ),
        // Ironic receives no checksum of a live ISO.
        (
            image(json!({ "url": url, "format": "live-iso", "checksum": md5 })),
            Some("image-verified"),
        ),
        (
            image(json!({ "url": "https://192.0.2.9/os", "format": "live-iso", "checksum": sha })),
            Some("image-verified"),
        ),
        (
            image(json!({ "url": url, "checksum": "HTTP://192.0.2.9/sums" })),
            Some("image-verified"),
        ),
        (
            image(json!({ "url": "https://192.0.2.9/os", "checksum": "http://192.0.2.9/sums" })),
            None,
        ),
        (image(json!({ "url": "oci://192.0.2.9/os" })), None),
    ] {
        let decision = create(&host(&spec));
        assert!(decision.allowed(), "{spec}");
        assert_eq!(rules(&decision), Vec::from_iter(found), "{spec}");
    }
}

#[test]
fn warning_about_a_live_iso_asks_for_no_checksum_because_ironic_receives_none() {
    for url in ["http://192.0.2.9/os", "https://192.0.2.9/os"] {
        let decision = create(&host(
            &json!({ "online": true, "image": { "url": url, "format": "live-iso" } }),
        ));
        let [warning] = decision.warnings().try_into().unwrap();
        let (problem, cure) = warning.split_once("; ").unwrap();
        assert!(problem.contains("nothing verifies a live ISO"), "{problem}");
        assert!(!cure.contains("checksum") && cure.contains("trust"), "{cure}");
    }
}

#[test]
fn warning_about_a_kind_without_controller_follows_the_spec_alone() {
    let claim = |is_on: bool, annotations: &Value| object("HostClaim", annotations, &json!({ "poweredOn": is_on }));
    let stored = claim(true, &json!({}));
    let [warning] = create(&stored).warnings().try_into().unwrap();
    assert!(
        warning.contains("no controller serves a HostClaim without --hostclaims")
            && warning.contains("; set --hostclaims for this program"),
        "{warning}"
    );
    assert_eq!(rules(&update(&stored, &claim(false, &json!({})))), ["unserved"]);
    let mut released = claim(true, &json!({ "note": "x" }));
    released["metadata"]["finalizers"] = json!(["hostclaim.metal3.io"]);
    released["status"] = json!({ "poweredOn": true });
    assert_eq!(update(&stored, &released), Decision::default());
    let deleted = review(Operation::Delete, Some(&stored), None);
    assert_eq!(deleted, Decision::default());
}

#[test]
fn data_image_is_served_and_its_url_is_checked() {
    let image = |url: &str| object("DataImage", &json!({}), &json!({ "url": url }));
    assert_eq!(create(&image("http://192.0.2.9/one.iso")), Decision::default());
    assert_eq!(rules(&create(&image("data.iso"))), ["url-fetchable"]);
}

/// Each kind without a controller: a spec, and what its warning names.
fn unserved() -> [(&'static str, Value, &'static str); 4] {
    [
        (
            "BareMetalSwitch",
            json!({ "address": "192.0.2.1", "deviceType": "x", "macAddress": "52:54:00:00:00:01" }),
            "no switch is configured",
        ),
        ("HostClaim", json!({ "poweredOn": true }), "no host is chosen"),
        ("HostDeployPolicy", json!({}), "no HostClaim is served"),
        (
            "HostNetworkAttachment",
            json!({ "mode": "access", "nativeVLAN": 1 }),
            "no switch is configured",
        ),
    ]
}

#[test]
fn update_needs_a_url_that_ironic_fetches_updates_from() {
    for (url, is_accepted) in [
        ("https://f/1", true),
        ("swift://container/1", true),
        ("ftp://f/1", false),
        ("oci://f/1", false),
        ("file:///1", false),
    ] {
        let spec = json!({ "updates": [{ "component": "bios", "url": url }] });
        let decision = create(&object("HostFirmwareComponents", &json!({}), &spec));
        let refused = rules(&decision).contains(&"update-url-fetchable");
        assert_eq!(refused, !is_accepted, "{url}");
    }
}

#[test]
fn each_kind_of_the_group_without_a_controller_warns() {
    let consequences = unserved();
    let served = [
        "BMCEventSubscription",
        "BareMetalHost",
        "DataImage",
        "FirmwareSchema",
        "HardwareData",
        "HostFirmwareComponents",
        "HostFirmwareSettings",
        "HostUpdatePolicy",
        "PreprovisioningImage",
    ];
    let definitions = metal3_api::metal3::definitions();
    let kinds = definitions.iter().map(|definition| definition.kind);
    let without: BTreeSet<&str> = kinds.filter(|kind| !served.contains(kind)).collect();
    assert_eq!(without, consequences.iter().map(|(kind, ..)| *kind).collect());
    for (kind, spec, consequence) in consequences {
        let decision = create(&object(kind, &json!({}), &spec));
        let warning = decision.findings.iter().find(|finding| finding.rule == "unserved");
        let warning = warning.unwrap().to_string();
        let texts = match kind {
            "HostClaim" | "HostDeployPolicy" => [
                format!("no controller serves a {kind} without --hostclaims: {consequence}"),
                "set --hostclaims for this program, or delete the object".to_owned(),
            ],
            "BareMetalSwitch" => [
                format!("no controller serves a {kind} without IRONIC_NETWORKING_ENABLED: {consequence}"),
                "set IRONIC_NETWORKING_ENABLED for this program, or delete the object".to_owned(),
            ],
            _ => [
                format!("no controller of this program serves a {kind}: {consequence}"),
                "keep the Go manager (baremetal-operator) for it, or delete the object".to_owned(),
            ],
        };
        for text in texts {
            assert!(warning.contains(&text), "{warning}");
        }
    }
}
