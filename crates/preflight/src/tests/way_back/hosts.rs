//! Rules about hosts on the way back.

use super::*;

/// A host that runs what it asks for, if it runs anything.
fn content(state: &str, more: Value) -> Value {
    let mut one = host(state, json!({}));
    if state == "provisioned" {
        let image = json!({ "url": "http://images.example/own" });
        merge(
            &mut one,
            json!({ "spec": { "image": image }, "status": { "provisioning": { "image": image } } }),
        );
    }
    merge(&mut one, more);
    one
}

#[test]
fn host_in_flight_or_with_an_error_is_named_on_the_way_back_too() {
    let named = |state: &str, more: Value| {
        let found = about(
            back::<BareMetalHost>(Series::new(1, 14), content(state, more)),
            "BareMetalHost",
        );
        found
            .into_iter()
            .any(|(decision, text)| decision == Decision::Go && text.contains("either manager"))
    };
    assert!(named("provisioning", json!({})));
    assert!(!named("provisioned", json!({})));
    let failed = json!({ "status": { "errorType": "power management error" } });
    assert!(named("provisioned", failed));
}

#[test]
fn host_without_objects_about_firmware_is_named_on_the_way_back() {
    let rows = [
        (
            None,
            None,
            Some("has no HostFirmwareSettings and no HostFirmwareComponents: "),
        ),
        (
            Some("b"),
            Some("b"),
            Some("has no HostFirmwareSettings and no HostFirmwareComponents: "),
        ),
        (Some("a"), None, Some("has no HostFirmwareComponents: ")),
        (None, Some("a"), Some("has no HostFirmwareSettings: ")),
        (Some("a"), Some("a"), None),
    ];
    for (settings_of, components_of, named) in rows {
        let mut facts = back::<BareMetalHost>(Series::new(1, 14), host("available", json!({})));
        if let Some(name) = settings_of {
            let settings =
                object::<HostFirmwareSettings>(json!({ "metadata": { "name": name }, "spec": { "settings": {} } }));
            let kind = KindName::of::<HostFirmwareSettings>();
            facts.objects.insert(kind, vec![settings]);
        }
        if let Some(name) = components_of {
            let components =
                object::<HostFirmwareComponents>(json!({ "metadata": { "name": name }, "spec": { "updates": [] } }));
            let kind = KindName::of::<HostFirmwareComponents>();
            facts.objects.insert(kind, vec![components]);
        }
        let found = about(facts, "BareMetalHost lab/a");
        let texts = found.iter().filter(|(of, _)| *of == Decision::Go).map(|(_, text)| text);
        let texts: Vec<_> = texts.filter(|text| text.contains("HostFirmware")).collect();
        assert_eq!(texts.len(), usize::from(named.is_some()), "{found:?}");
        assert!(
            texts.iter().all(|text| text.contains(named.unwrap_or_default())),
            "{found:?}"
        );
    }
}

#[test]
fn way_back_is_refused_while_only_this_program_keeps_a_machine_from_being_erased() {
    let held = json!([{ "type": "Held", "status": "True", "reason": "DeprovisionBudgetSpent", "message": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let image = json!({ "image": { "url": "http://images.example/a" } });
    let failed = |message: &str| json!({ "errorType": "provisioning error", "errorCount": 1, "errorMessage": message });
    let status = |mut status: Value, provisioning: &Value| {
        merge(&mut status, json!({ "provisioning": provisioning }));
        json!({ "status": status })
    };
    let external = {
        let mut one = status(failed("spec.externallyProvisioned is set"), &image);
        merge(&mut one, json!({ "spec": { "externallyProvisioned": true } }));
        one
    };
    let restored = {
        let mut one = status(failed("What runs is requested again"), &image);
        merge(&mut one, json!({ "spec": image }));
        one
    };
    let serves = failed("in Ironic the node serves instance 7c2f7a52, which is not this host");
    for (state, more, part) in [
        (
            "provisioned",
            status(json!({ "conditions": held }), &image),
            "the deprovision budget is spent",
        ),
        (
            "provisioned",
            status(failed("serves another"), &image),
            "until its error is decided",
        ),
        ("deprovisioning", status(serves, &image), "until its error is decided"),
        ("deprovisioning", external, "until its error is decided"),
        ("deprovisioning", restored, "until its error is decided"),
    ] {
        let back = about(
            back::<BareMetalHost>(Series::new(1, 14), host(state, more.clone())),
            "BareMetalHost",
        );
        let refused: Vec<_> = back
            .iter()
            .filter(|(of, text)| *of == Decision::No && text.contains(part))
            .collect();
        assert_eq!(refused.len(), 1, "{state} {more}: {back:?}");
        assert!(
            !back.iter().any(|(_, text)| text.contains("either manager")),
            "{back:?}"
        );
        let forward = about(forward::<BareMetalHost>(host(state, more)), "BareMetalHost");
        assert!(forward.iter().all(|(of, _)| *of == Decision::Go), "{forward:?}");
    }
}

#[test]
fn way_back_is_refused_for_an_error_that_a_go_manager_does_not_know() {
    let serves = "in Ironic the node serves instance 7c2f7a52, which is not this host";
    let taken = "spec.bmc.address is that of the machine of BareMetalHost lab/b; correct it, or delete the other host";
    let limit = "spec.image.url names a host that is not in --allowed-image-hosts, so the image is not deployed";
    for (state, message, row) in [
        ("inspecting", serves, Some("host-node-of-another")),
        ("preparing", serves, Some("host-node-of-another")),
        ("provisioning", serves, Some("host-node-of-another")),
        ("available", serves, Some("host-node-of-another")),
        ("registering", taken, Some("host-machine-once")),
        ("available", limit, Some("destinations-allowed")),
        ("provisioned", limit, None),
        ("provisioning", "Ironic rejects it", None),
    ] {
        let failed =
            json!({ "status": { "errorType": "registration error", "errorCount": 1, "errorMessage": message } });
        let found = report(back::<BareMetalHost>(
            Series::new(1, 14),
            content(state, failed.clone()),
        ));
        let found: Vec<_> = found
            .findings
            .iter()
            .filter(|one| one.object.starts_with("BareMetalHost"))
            .collect();
        let refused: Vec<_> = found
            .iter()
            .filter(|one| one.decision == Decision::No)
            .map(|one| one.row)
            .collect();
        assert_eq!(
            refused,
            row.map(Some).into_iter().collect::<Vec<_>>(),
            "{state} {message}: {found:?}"
        );
        let goes_on = found.iter().any(|one| one.what.contains("either manager"));
        assert_eq!(goes_on, row.is_none(), "{state} {message}: {found:?}");
        let forward = about(forward::<BareMetalHost>(host(state, failed)), "BareMetalHost");
        assert!(forward.iter().all(|(of, _)| *of == Decision::Go), "{forward:?}");
    }
}

/// Either manager goes on with these.
#[test]
fn way_back_is_not_refused_for_an_error_that_erases_nothing() {
    let image = json!({ "image": { "url": "http://images.example/a" } });
    let error = json!({ "errorType": "provisioned registration error", "errorCount": 1, "provisioning": image });
    let cleaning =
        json!({ "errorType": "provisioning error", "errorMessage": "Cleaning failed", "provisioning": image });
    for (state, more) in [
        ("provisioned", json!({ "spec": image, "status": error })),
        ("deprovisioning", json!({ "status": cleaning })),
    ] {
        let found = about(
            back::<BareMetalHost>(Series::new(1, 14), host(state, more)),
            "BareMetalHost",
        );
        assert!(found.iter().all(|(of, _)| *of == Decision::Go), "{state}: {found:?}");
        assert!(
            found.iter().any(|(_, text)| text.contains("either manager")),
            "{state}: {found:?}"
        );
    }
}

/// A Go manager services a running machine with either, which reboots it.
#[test]
fn way_back_waits_for_the_end_of_a_service_and_of_its_error() {
    let servicing = json!({ "operationalStatus": "servicing" });
    let failed =
        json!({ "operationalStatus": "error", "errorType": "servicing error", "errorCount": 1, "errorMessage": "m" });
    for (status, part) in [
        (servicing, "is serviced; a Go manager may service it again"),
        (
            failed.clone(),
            "has a servicing error; a Go manager services the running machine at once",
        ),
    ] {
        let serviced = host("provisioned", json!({ "status": status }));
        let found = about(
            back::<BareMetalHost>(Series::new(1, 14), serviced),
            "BareMetalHost lab/a",
        );
        let waits = found.iter().filter(|(decision, _)| *decision == Decision::Wait);
        let texts: Vec<&String> = waits.map(|(_, text)| text).collect();
        assert!(texts.len() == 1 && texts[0].contains(part), "{found:?}");
    }
    let found = about(
        forward::<BareMetalHost>(host("provisioned", json!({ "status": failed }))),
        "BareMetalHost lab/a",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].0 == Decision::Go && !found[0].1.contains("either manager"),
        "{found:?}"
    );
}

#[test]
fn way_back_is_refused_for_a_running_machine_that_a_go_manager_would_inspect() {
    for (state, is_external, stops) in [
        ("inspecting", true, true),
        ("inspecting", false, false),
        ("available", true, false),
    ] {
        let more =
            json!({ "spec": { "externallyProvisioned": is_external }, "status": { "errorType": "inspection error" } });
        let found = about(
            back::<BareMetalHost>(Series::new(1, 14), host(state, more)),
            "BareMetalHost",
        );
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("boots another system");
        assert_eq!(found.iter().any(is_it), stops, "{state} {is_external}: {found:?}");
    }
}

#[test]
fn way_back_is_refused_for_a_host_that_a_go_manager_would_offer_without_its_settings() {
    let invalid = json!({ "type": "Valid", "status": "False", "reason": "x", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let settings = object::<HostFirmwareSettings>(
        json!({ "spec": { "settings": { "Turbo": "On" } }, "status": { "settings": {}, "conditions": [invalid] } }),
    );
    for (state, stops) in [("preparing", true), ("provisioned", false)] {
        let mut facts = back::<BareMetalHost>(Series::new(1, 14), host(state, json!({})));
        facts
            .objects
            .insert(KindName::of::<HostFirmwareSettings>(), vec![settings.clone()]);
        let found = about(facts, "BareMetalHost");
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("without its settings");
        assert_eq!(found.iter().any(is_it), stops, "{state}: {found:?}");
    }
}

/// A Go manager does not touch such a host. Managers take pauses of their own off, and a move takes off any.
#[test]
fn pause_of_a_person_opens_the_way_back() {
    let serves = "in Ironic the node serves instance 7c2f7a52, which is not this host";
    let taken = "spec.bmc.address is that of the machine of BareMetalHost b; correct it, or delete the other host";
    let network = "spec.bmc.address is not an IP address in the networks of --allowed-bmc-networks, so Ironic receives no request";
    let image = json!({ "url": "http://images.example/a" });
    let failed = |kind: &str, message: &str| json!({ "status": { "errorType": kind, "errorCount": 1, "errorMessage": message } });
    let withheld = json!({ "status": { "errorType": "provisioning error", "provisioning": { "image": image } } });
    let external = json!({ "spec": { "externallyProvisioned": true } });
    let serviced = json!({ "status": { "operationalStatus": "servicing" } });
    let unserviced = failed("servicing error", "m");
    for (state, more, decision) in [
        ("available", failed("registration error", serves), Decision::No),
        ("registering", failed("registration error", taken), Decision::No),
        ("registering", failed("registration error", network), Decision::No),
        ("provisioned", withheld, Decision::No),
        ("inspecting", external, Decision::No),
        ("provisioned", serviced, Decision::Wait),
        ("provisioned", unserviced, Decision::Wait),
    ] {
        for (pause, opens) in [
            (None, false),
            (Some("user"), true),
            (Some(""), true),
            (Some("metal3.io/capm3"), false),
            (Some("metal3.io/hostclaim"), false),
        ] {
            let mut one = content(state, more.clone());
            if let Some(by) = pause {
                one["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/paused": by });
            }
            let found = about(back::<BareMetalHost>(Series::new(1, 14), one), "BareMetalHost lab/a");
            let worst = found.iter().map(|(decision, _)| *decision).max();
            let expected = if opens { Decision::Go } else { decision };
            assert_eq!(worst, Some(expected), "{state} {more} {pause:?}: {found:?}");
            let says = found
                .iter()
                .any(|(_, text)| text.contains("is paused, and left as it is until"));
            assert_eq!(says, opens, "{state} {more} {pause:?}: {found:?}");
        }
    }
    let annotations = json!({ "baremetalhost.metal3.io/status": "{}", "baremetalhost.metal3.io/paused": "user" });
    let moved = host("", json!({ "metadata": { "annotations": annotations } }));
    let to = back::<BareMetalHost>(Series::new(1, 14), moved);
    assert_one(to, "BareMetalHost", Decision::Wait, "moved by clusterctl");
}

/// Nothing reads the end of a service, or of an update, of a paused host.
#[test]
fn work_of_a_paused_host_is_not_waited_for() {
    let paused = json!({ "annotations": { "baremetalhost.metal3.io/paused": "user" } });
    let serviced = host(
        "provisioned",
        json!({ "metadata": paused, "status": { "operationalStatus": "servicing" } }),
    );
    let found = about(forward::<BareMetalHost>(serviced), "BareMetalHost lab/a");
    assert!(
        !found.is_empty() && found.iter().all(|(of, _)| *of == Decision::Go),
        "{found:?}"
    );
    let condition = json!({ "type": "Updating", "status": "True", "reason": "UpdateOrdered", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let updates = json!([{ "component": "bios", "url": "http://firmware.example/2" }]);
    for (name, decision) in [("a", Decision::Go), ("b", Decision::Wait)] {
        let object = json!({ "metadata": { "name": name }, "spec": { "updates": updates },
            "status": { "updates": updates, "conditions": [condition] } });
        let facts = back::<BareMetalHost>(Series::new(1, 14), host("preparing", json!({ "metadata": paused })));
        let found = about(with::<HostFirmwareComponents>(facts, object), "HostFirmwareComponents");
        assert_eq!(
            found.first().map(|(decision, _)| *decision),
            Some(decision),
            "{name}: {found:?}"
        );
    }
}

/// What a Go manager does at once with what this program only reports: by the errors that this program writes.
#[test]
fn way_back_is_refused_for_errors_of_a_node_or_a_secret_that_a_go_manager_takes() {
    let named =
        "node 1-2 in status.provisioning.ID has not the name of this host in Ironic, so it may serve another host";
    let maintenance = "the node is in maintenance (fans are replaced), so Ironic does not operate it";
    let secret = "Secret bmc is not labelled for use by hosts, so it is not read. If spec.bmc.credentialsName names";
    for (state, message, row) in [
        ("provisioned", named, Some("host-node-by-name")),
        ("deprovisioning", named, Some("host-node-by-name")),
        ("registering", named, Some("host-node-by-name")),
        ("provisioned", maintenance, Some("host-maintenance-reported")),
        ("preparing", maintenance, Some("host-maintenance-reported")),
        ("registering", secret, Some("host-secret-labelled")),
        ("provisioned", secret, None),
        (
            "registering",
            "Ironic reports a fault of the node (clean failure): x",
            None,
        ),
    ] {
        let failed =
            json!({ "status": { "errorType": "registration error", "errorCount": 1, "errorMessage": message } });
        let mut one = content(state, failed);
        if state == "deprovisioning" {
            one["status"]["provisioning"]["image"]["url"] = json!("http://images.example/a");
        }
        refused_with(one, row, &format!("{state} {message}"));
    }
}

/// The only finding that is a refusal has the row; without one, either manager goes on.
fn refused_with(one: Value, row: Option<&str>, what: &str) {
    let found = report(back::<BareMetalHost>(Series::new(1, 14), one)).findings;
    let found: Vec<_> = found
        .iter()
        .filter(|one| one.object.starts_with("BareMetalHost"))
        .collect();
    let stops: Vec<_> = found
        .iter()
        .filter(|one| one.decision != Decision::Go)
        .map(|one| one.row)
        .collect();
    assert_eq!(
        stops,
        row.map(Some).into_iter().collect::<Vec<_>>(),
        "{what}: {found:?}"
    );
    let goes_on = found.iter().any(|one| one.what.contains("either manager"));
    assert!(row.is_none() || !goes_on, "{what}: {found:?}");
}

#[test]
fn way_back_is_refused_for_a_request_that_a_go_manager_carries_out_another_way() {
    let never_off = |online: bool, on: bool| json!({ "spec": { "disablePowerOff": true, "online": online }, "status": { "poweredOn": on } });
    let kept_off = |mut one: Value| {
        one["metadata"]["annotations"] = json!({ "reboot.metal3.io/key": "" });
        one
    };
    let forced = |mut one: Value| {
        one["metadata"]["annotations"] = json!({ "reboot.metal3.io/key": r#"{"force":true}"# });
        one
    };
    let delayed = |action: &str, force: bool, is_deleted: bool| {
        let text = json!({ "deleteAction": action, "force": force }).to_string();
        let mut meta = json!({ "annotations": { "baremetalhost.metal3.io/detached": text } });
        if is_deleted {
            meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        json!({ "metadata": meta, "status": { "operationalStatus": "detached" } })
    };
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let (off, again) = (Some("host-never-off"), Some("host-delayed-deletion"));
    for (state, more, row) in [
        ("provisioned", never_off(false, true), off),
        ("externally provisioned", never_off(false, true), off),
        ("available", never_off(false, true), off),
        ("provisioned", never_off(false, false), None),
        ("provisioned", never_off(true, true), None),
        ("provisioned", kept_off(never_off(true, true)), off),
        ("available", kept_off(never_off(true, true)), None),
        ("available", forced(never_off(true, true)), off),
        ("inspecting", forced(never_off(true, true)), None),
        ("inspecting", never_off(false, true), None),
        ("deleting", json!({}), Some("host-restored-deletion")),
        ("powering off before delete", json!({}), Some("host-restored-deletion")),
        ("deleting", deleted.clone(), None),
        ("deprovisioning", delayed("delay", false, true), again),
        ("provisioning", delayed("delay", false, true), again),
        ("inspecting", delayed("delay", false, true), again),
        ("provisioned", delayed("delay", false, true), None),
        ("deprovisioning", delayed("delay", true, true), None),
        ("deprovisioning", delayed("delete", false, true), None),
        ("deprovisioning", delayed("delay", false, false), None),
    ] {
        refused_with(host(state, more.clone()), row, &format!("{state} {more}"));
    }
    let held = json!([{ "type": "Held", "status": "True", "reason": "DeletionDelayed", "message": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let mut detached = host("provisioned", delayed("delay", false, true));
    detached["status"]["conditions"] = held;
    refused_with(detached, None, "either manager leaves it alone");
}

/// A Go manager detaches a host at rest before it looks at its state; one at work only by force.
#[test]
fn detached_host_is_left_alone_until_it_is_attached() {
    let detach = "baremetalhost.metal3.io/detached";
    let never_off = json!({ "spec": { "disablePowerOff": true, "online": false } });
    let image = |url: &str| json!({ "image": { "url": url } });
    let (other, runs) = (image("http://images.example/b"), image("http://images.example/a"));
    let unwanted = json!({ "spec": other, "status": { "provisioning": runs, "errorType": "provisioning error" } });
    let taken = json!({ "spec": runs, "status": { "provisioning": runs } });
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": runs, "status": {
        "operationalStatus": "error", "provisioning": runs,
        "conditions": [{ "type": "Held", "status": "True", "reason": "DeletionDelayed", "message": "x",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    let named =
        "node 1-2 in status.provisioning.ID has not the name of this host in Ironic, so it may serve another host";
    let named = json!({ "status": { "errorType": "provisioned registration error", "errorMessage": named } });
    let force = Some(r#"{"force":true}"#);
    for (to, state, more, request, decision) in [
        (14, "available", &never_off, None, Decision::No),
        (14, "available", &never_off, Some(""), Decision::Go),
        (12, "available", &never_off, Some(""), Decision::Go),
        (14, "provisioned", &unwanted, None, Decision::No),
        (14, "provisioned", &unwanted, Some("{}"), Decision::Go),
        (14, "deprovisioning", &taken, Some(""), Decision::Wait),
        (14, "deprovisioning", &taken, force, Decision::Go),
        (12, "deprovisioning", &taken, force, Decision::Wait),
        (14, "deleting", &json!({}), force, Decision::No),
        (14, "provisioned", &gone, Some("{}"), Decision::Go),
        (12, "provisioned", &gone, Some("{}"), Decision::No),
        (14, "available", &named, None, Decision::No),
        (14, "available", &named, Some(""), Decision::No),
    ] {
        let mut one = host(state, more.clone());
        if let Some(request) = request {
            one["metadata"]["annotations"] = json!({ detach: request });
        }
        let found = about(back::<BareMetalHost>(Series::new(1, to), one), "BareMetalHost lab/a");
        let worst = found.iter().map(|(decision, _)| *decision).max();
        assert_eq!(worst, Some(decision), "{to} {state} {more} {request:?}: {found:?}");
        let says = found
            .iter()
            .any(|(_, text)| text.contains("is detached, and left as it is until"));
        assert_eq!(says, decision == Decision::Go, "{state} {more} {request:?}: {found:?}");
    }
}

#[test]
fn way_back_waits_for_a_deprovisioning_that_may_be_taken_back() {
    let image = json!({ "image": { "url": "http://images.example/a" } });
    let runs = json!({ "provisioning": image });
    let row = Some("host-deprovision-taken-back");
    for (state, more, row) in [
        ("deprovisioning", json!({ "spec": image, "status": runs }), row),
        ("deprovisioning", json!({ "status": runs }), None),
        ("deprovisioning", json!({ "spec": image }), None),
        ("deprovisioning", json!({}), None),
        ("provisioned", json!({ "spec": image, "status": runs }), None),
    ] {
        refused_with(host(state, more.clone()), row, &format!("{state} {more}"));
    }
}

#[test]
fn way_back_is_refused_for_volumes_and_disks_that_a_go_manager_would_erase() {
    let soft = json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    let hard = json!({ "hardwareRAIDVolumes": [{ "level": "1" }] });
    let failed = |message: &str| json!({ "errorType": "preparation error", "errorCount": 1, "errorMessage": message });
    let unknown =
        "it is not known whether the cleaning that failed or was lost in Ironic was for the RAID volumes of spec.raid";
    let spec = |raid: &Value, mode: &str| json!({ "raid": raid, "automatedCleaningMode": mode });
    let hints = |of: &str| json!({ "rootDeviceHints": { "deviceName": of } });
    let (recorded, uncleaned, disk) = (
        Some("host-raid-recorded"),
        Some("host-raid-uncleaned"),
        Some("host-deployment-of-spec"),
    );
    for (state, spec, status, row) in [
        ("preparing", spec(&soft, "disabled"), failed("m"), recorded),
        ("preparing", spec(&hard, "metadata"), failed(unknown), recorded),
        ("preparing", spec(&soft, "metadata"), failed("m"), None),
        ("preparing", spec(&json!({}), "disabled"), failed("m"), None),
        ("preparing", spec(&soft, "disabled"), json!({}), None),
        (
            "deprovisioning",
            spec(&soft, "disabled"),
            json!({ "provisioning": { "raid": soft } }),
            uncleaned,
        ),
        (
            "deprovisioning",
            spec(&soft, "metadata"),
            json!({ "provisioning": { "raid": soft } }),
            None,
        ),
        ("deprovisioning", spec(&soft, "disabled"), json!({}), None),
        (
            "provisioning",
            hints("/dev/sdb"),
            json!({ "provisioning": hints("/dev/sda") }),
            disk,
        ),
        (
            "provisioning",
            hints("/dev/sda"),
            json!({ "provisioning": hints("/dev/sda") }),
            None,
        ),
        (
            "provisioning",
            json!({}),
            json!({ "provisioning": hints("/dev/sda") }),
            None,
        ),
        (
            "provisioned",
            hints("/dev/sdb"),
            json!({ "provisioning": hints("/dev/sda") }),
            None,
        ),
    ] {
        let one = host(state, json!({ "spec": spec, "status": status }));
        refused_with(one, row, &format!("{state} {spec} {status}"));
    }
}

/// Only this program leaves a machine alone whose host is said to run another system, in any state.
#[test]
fn way_back_is_refused_for_an_external_machine_that_a_go_manager_would_erase() {
    let image = json!({ "image": { "url": "http://images.example/a" } });
    let spec = |more: Value| {
        let mut spec = json!({ "externallyProvisioned": true });
        merge(&mut spec, more);
        spec
    };
    let runs = json!({ "provisioning": image });
    let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let (inspected, kept) = (
        Some(Some("host-external-not-inspected")),
        Some(Some("host-unexpected-state")),
    );
    for (state, meta, spec, status, row) in [
        ("inspecting", json!({}), spec(json!({})), json!({}), inspected),
        ("preparing", json!({}), spec(json!({})), json!({}), Some(None)),
        ("provisioning", json!({}), spec(image.clone()), json!({}), Some(None)),
        ("provisioned", deleted.clone(), spec(image.clone()), runs.clone(), kept),
        ("provisioned", json!({}), spec(json!({})), runs.clone(), kept),
        ("deprovisioning", json!({}), spec(json!({})), runs.clone(), kept),
        ("provisioned", json!({}), spec(image.clone()), runs.clone(), None),
        ("registering", json!({}), spec(json!({})), json!({}), None),
        ("available", json!({}), spec(json!({})), json!({}), None),
        ("externally provisioned", deleted, spec(json!({})), json!({}), None),
        ("preparing", json!({}), json!({}), json!({}), None),
    ] {
        let one = host(state, json!({ "metadata": meta, "spec": spec, "status": status }));
        let found = report(back::<BareMetalHost>(Series::new(1, 14), one)).findings;
        let found: Vec<_> = found
            .iter()
            .filter(|one| one.object.starts_with("BareMetalHost"))
            .collect();
        let stops: Vec<_> = found
            .iter()
            .filter(|one| one.decision == Decision::No)
            .map(|one| one.row)
            .collect();
        assert_eq!(
            stops,
            row.into_iter().collect::<Vec<_>>(),
            "{state} {spec} {status}: {found:?}"
        );
    }
}

/// A deploy step that is asked for next to an image that runs without one removes nothing, for either manager.
#[test]
fn deploy_step_that_is_added_to_what_runs_is_no_request_to_remove_it() {
    let image = json!({ "image": { "url": "http://images.example/a" } });
    let mut asked = image.clone();
    asked["customDeploy"] = json!({ "method": "install" });
    let failed =
        json!({ "errorType": "provisioning error", "errorCount": 1, "errorMessage": "m", "provisioning": image });
    let never_ran = json!({ "errorType": "provisioning error", "errorCount": 1, "errorMessage": "m" });
    for (state, status, row) in [
        ("deprovisioning", &failed, Some("host-unexpected-state")),
        ("provisioned", &failed, None),
        ("deprovisioning", &never_ran, None),
    ] {
        let one = host(state, json!({ "spec": asked, "status": status }));
        refused_with(one, row, &format!("{state} {status}"));
    }
}
