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
