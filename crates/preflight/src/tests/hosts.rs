//! Rules about hosts.

use super::*;

#[test]
fn host_in_flight_is_continued_and_one_at_rest_is_no_finding() {
    for state in ["inspecting", "provisioning", "deprovisioning", "deleting"] {
        let found = about(forward::<BareMetalHost>(host(state, json!({}))), "BareMetalHost lab/a");
        assert_eq!(found.len(), 1, "{state}: {found:?}");
        assert!(found[0].1.contains(state) && found[0].0 == Decision::Go, "{found:?}");
    }
    for state in ["available", "provisioned", "externally provisioned", "unmanaged"] {
        let found = about(forward::<BareMetalHost>(host(state, json!({}))), "BareMetalHost lab/a");
        assert_eq!(found, [], "{state}");
    }
}

#[test]
fn new_host_with_a_bmc_is_continued() {
    let bmc = json!({ "spec": { "bmc": { "address": "redfish://192.0.2.1/x", "credentialsName": "bmc" } } });
    let moved = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/status": "{}" } } });
    let mut moved_bmc = bmc.clone();
    merge(&mut moved_bmc, moved);
    for (more, expected) in [
        (json!({}), None),
        (bmc, Some((Decision::Go, "is new; either manager"))),
        (moved_bmc, Some((Decision::Wait, "moved by clusterctl"))),
    ] {
        let found = about(forward::<BareMetalHost>(host("", more.clone())), "BareMetalHost");
        let is_it = |(decision, text): &(Decision, String)| {
            expected.is_some_and(|(wanted, part)| *decision == wanted && text.contains(part))
        };
        assert_eq!(found.len(), usize::from(expected.is_some()), "{more}: {found:?}");
        assert!(found.iter().all(is_it), "{more}: {found:?}");
    }
}

#[test]
fn states_of_a_host_that_end_are_waited_for() {
    let servicing = host("provisioned", json!({ "status": { "operationalStatus": "servicing" } }));
    assert_one(
        forward::<BareMetalHost>(servicing),
        "BareMetalHost",
        Decision::Wait,
        "is serviced",
    );
    let annotations = json!({ "baremetalhost.metal3.io/status": "{}" });
    let moving = host("available", json!({ "metadata": { "annotations": annotations } }));
    assert_one(
        forward::<BareMetalHost>(moving),
        "BareMetalHost",
        Decision::Wait,
        "moved by clusterctl",
    );
}

#[test]
fn setting_that_is_not_applied_yet_is_named() {
    let settings = |wanted: &str| {
        let spec = json!({ "settings": { "ProcTurboMode": wanted } });
        object::<HostFirmwareSettings>(
            json!({ "spec": spec, "status": { "settings": { "ProcTurboMode": "Enabled" } } }),
        )
    };
    for (state, wanted, expected) in [
        ("preparing", "Disabled", Some(Decision::Go)),
        ("available", "Disabled", Some(Decision::Go)),
        ("available", "Enabled", None),
    ] {
        let mut facts = forward::<BareMetalHost>(host(state, json!({})));
        facts
            .objects
            .insert(KindName::of::<HostFirmwareSettings>(), vec![settings(wanted)]);
        let found = about(facts, "BareMetalHost");
        let found = found.iter().find(|(_, text)| text.contains("firmware setting"));
        assert_eq!(found.map(|(decision, _)| *decision), expected, "{state} {wanted}");
    }
}

/// The Go manager makes such a host available.
#[test]
fn setting_that_the_machine_cannot_have_is_named_until_the_host_runs() {
    let settings = |valid: &str| {
        let condition = json!({ "type": "Valid", "status": valid, "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        object::<HostFirmwareSettings>(json!({ "spec": { "settings": { "Turbo": "On" } },
            "status": { "settings": {}, "conditions": [condition] } }))
    };
    for (state, valid, expected) in [
        ("preparing", "False", true),
        ("available", "False", true),
        ("available", "True", false),
        ("provisioned", "False", false),
    ] {
        let mut facts = forward::<BareMetalHost>(host(state, json!({})));
        let kind = KindName::of::<HostFirmwareSettings>();
        facts.objects.insert(kind, vec![settings(valid)]);
        let found = about(facts, "BareMetalHost");
        let is_named = found
            .iter()
            .any(|(_, text)| text.contains("that its machine cannot have"));
        assert_eq!(is_named, expected, "{state} {valid}: {found:?}");
    }
}

#[test]
fn secrets_of_a_host_need_the_label() {
    let spec = json!({ "bmc": { "address": "redfish://192.0.2.1/x", "credentialsName": "bmc" },
        "preprovisioningNetworkDataName": "net" });
    for (name, secret, expected) in [
        ("bmc", Some(Secret { is_marked: false }), Some(Decision::No)),
        ("bmc", Some(Secret { is_marked: true }), None),
        ("bmc", None, Some(Decision::Go)),
        ("net", Some(Secret { is_marked: false }), Some(Decision::No)),
        ("net", Some(Secret { is_marked: true }), None),
    ] {
        let mut facts = forward::<BareMetalHost>(host("available", json!({ "spec": spec })));
        facts
            .secrets
            .insert(("lab".to_owned(), name.to_owned()), secret.clone());
        let found = about(facts, "BareMetalHost");
        assert_eq!(
            found.first().map(|(decision, _)| *decision),
            expected,
            "{name} {secret:?}"
        );
        if expected == Some(Decision::No) {
            let line = format!("kubectl label secret --namespace lab {name} environment.metal3.io=baremetal");
            assert!(found[0].1.contains(&line), "{found:?}");
        }
    }
    let unread = forward::<BareMetalHost>(host("available", json!({ "spec": spec })));
    assert_eq!(
        about(unread, "BareMetalHost"),
        [],
        "a Secret that was not read is not judged"
    );
}

#[test]
fn update_that_was_taken_back_is_not_pending_and_another_one_is_made_later() {
    let components = |wanted: Value| {
        let spec = json!({ "updates": wanted });
        let done = json!({ "updates": [{ "component": "bios", "url": "http://firmware.example/bios" }] });
        object::<HostFirmwareComponents>(json!({ "spec": spec, "status": done }))
    };
    let nic = json!([{ "component": "nic:1", "url": "http://firmware.example/nic" }]);
    for (state, error, wanted, expected) in [
        ("available", None, json!([]), None),
        ("available", None, nic.clone(), Some(Decision::Go)),
        ("preparing", None, nic.clone(), Some(Decision::Go)),
        ("preparing", Some("preparation error"), nic, Some(Decision::Go)),
    ] {
        let more = error.map_or_else(|| json!({}), |error| json!({ "status": { "errorType": error } }));
        let mut facts = forward::<BareMetalHost>(host(state, more));
        let kind = KindName::of::<HostFirmwareComponents>();
        facts.objects.insert(kind, vec![components(wanted)]);
        let found = about(facts, "BareMetalHost");
        let found = found.iter().find(|(_, text)| text.contains("firmware update"));
        assert_eq!(found.map(|(decision, _)| *decision), expected, "{state} {error:?}");
    }
}

#[test]
fn host_in_flight_or_with_an_error_is_named_on_the_way_back_too() {
    let named = |state: &str, more: Value| {
        let found = about(
            back::<BareMetalHost>(Series::new(1, 14), host(state, more)),
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
        let found = report(back::<BareMetalHost>(Series::new(1, 14), host(state, failed.clone())));
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

/// Cluster API's provider writes the annotation when a Cluster is paused, and leaves it there.
#[test]
fn host_of_a_paused_cluster_is_not_taken_for_one_that_is_moved() {
    let all = json!({ "baremetalhost.metal3.io/status": "{}", "baremetalhost.metal3.io/paused": "metal3.io/capm3" });
    let meta = json!({ "annotations": all });
    let paused = json!({ "metadata": meta, "status": { "lastUpdated": "2026-01-01T00:00:00Z" } });
    let found = about(
        forward::<BareMetalHost>(host("provisioned", paused.clone())),
        "BareMetalHost",
    );
    assert!(
        found.len() == 1 && found[0].0 == Decision::Go && found[0].1.contains("was paused"),
        "{found:?}"
    );
    assert_eq!(
        about(
            back::<BareMetalHost>(Series::new(1, 14), host("provisioned", paused.clone())),
            "BareMetalHost"
        )
        .iter()
        .filter(|(of, _)| *of != Decision::Go)
        .count(),
        0
    );
    let moved = host("", json!({ "metadata": meta }));
    assert_one(
        back::<BareMetalHost>(Series::new(1, 14), moved),
        "BareMetalHost",
        Decision::Wait,
        "moved by clusterctl",
    );
    let mut deleted = paused;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_one(
        forward::<BareMetalHost>(host("provisioned", deleted)),
        "BareMetalHost",
        Decision::Wait,
        "moved by clusterctl",
    );
}
