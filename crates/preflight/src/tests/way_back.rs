//! Rules of the way back.

mod hosts;

use super::*;

#[test]
fn way_back_is_refused_for_members_that_the_definitions_of_the_release_drop() {
    let off = json!({ "disablePowerOff": true });
    let uninspected = json!({ "inspectionMode": "disabled" });
    for (minor, spec, stops) in [
        (9, &off, true),
        (10, &off, false),
        (11, &uninspected, true),
        (12, &uninspected, false),
    ] {
        let one = host("available", json!({ "spec": spec }));
        let found = about(back::<BareMetalHost>(Series::new(1, minor), one), "BareMetalHost");
        let is_refused = found.iter().any(|(of, _)| *of == Decision::No);
        assert_eq!(is_refused, stops, "1.{minor} {spec}: {found:?}");
    }
    let to = Series::new(1, 14);
    for (cleaning, stops) in [
        (json!({ "keepDisks": [{ "wwn": "0x5" }] }), true),
        (json!({ "when": "first" }), true),
        (json!({}), false),
    ] {
        let one = host("available", json!({ "spec": { "cleaning": cleaning } }));
        let found = about(back::<BareMetalHost>(to, one), "BareMetalHost");
        let is_refused = found
            .iter()
            .any(|(of, text)| *of == Decision::No && text.contains("spec.cleaning"));
        assert_eq!(is_refused, stops, "{cleaning}: {found:?}");
    }
    for spec in [
        json!({ "clusterName": "edge" }),
        json!({ "deploymentZones": [{ "name": "rack-1", "failureDomain": "a" }] }),
        json!({ "controlPlaneEndpointSource": { "objectRef": {} } }),
    ] {
        let one = json!({ "spec": spec });
        let member = spec.as_object().unwrap().keys().next().unwrap();
        assert_one(back::<Metal3Cluster>(to, one), "Metal3Cluster", Decision::No, member);
    }
    let machine = json!({ "spec": { "metal3ClusterRef": { "name": "site-b" } } });
    assert_one(
        back::<Metal3Machine>(to, machine),
        "Metal3Machine",
        Decision::No,
        "metal3ClusterRef",
    );
    let template = json!({ "spec": { "template": { "spec": { "identityRef": { "name": "site-b" } } } } });
    let found = back::<Metal3MachineTemplate>(to, template);
    assert_one(found, "Metal3MachineTemplate", Decision::No, "identityRef");
    let plain = json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 }, "clusterName": "" } });
    assert_eq!(about(back::<Metal3Cluster>(to, plain), "Metal3Cluster"), []);
}

/// The annotation disables the inspection in each release, so that it is the way out of the finding.
#[test]
fn inspection_of_a_host_is_judged_by_its_mode_and_its_annotation() {
    for (minor, mode, annotation, part) in [
        (11, "disabled", None, Some("inspect.metal3.io=disabled")),
        (11, "disabled", Some("disabled"), None),
        (11, "disabled", Some(""), Some("inspect.metal3.io=disabled")),
        (11, "agent", None, None),
        (11, "fast", None, Some("is inspected by the agent")),
        (11, "fast", Some("disabled"), None),
        (12, "disabled", None, None),
        (12, "fast", None, Some("rejects each update")),
        (13, "fast", Some("disabled"), Some("rejects each update")),
        (14, "fast", None, None),
    ] {
        let mut one = host("available", json!({ "spec": { "inspectionMode": mode } }));
        if let Some(value) = annotation {
            one["metadata"]["annotations"] = json!({ "inspect.metal3.io": value });
        }
        let found = about(back::<BareMetalHost>(Series::new(1, minor), one), "BareMetalHost");
        let stops: Vec<_> = found.iter().filter(|(of, _)| *of == Decision::No).collect();
        assert_eq!(
            stops.len(),
            usize::from(part.is_some()),
            "1.{minor} {mode} {annotation:?}: {found:?}"
        );
        let is_it = |(_, text): &&(Decision, String)| text.contains(part.unwrap_or_default());
        assert!(stops.iter().all(is_it), "1.{minor} {mode} {annotation:?}: {found:?}");
    }
}

/// A Go manager reads no pause of a remediation. A host that is paused keeps its power.
#[test]
fn remediation_that_is_paused_or_deleted_is_no_reason_to_go_back() {
    let owner = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "u" }]);
    let meta = |more: Value| {
        let mut meta = json!({ "ownerReferences": owner });
        merge(&mut meta, more);
        json!({ "metadata": meta, "spec": {} })
    };
    let paused = meta(json!({ "annotations": { "cluster.x-k8s.io/paused": "" } }));
    let mut reported = meta(json!({}));
    reported["status"]["conditions"] = json!([{ "type": "Paused", "status": "True", "reason": "Paused", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let deleted = meta(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    for (remediation, pause, decision) in [
        (meta(json!({})), None, Decision::Go),
        (paused.clone(), None, Decision::No),
        (reported.clone(), None, Decision::No),
        (deleted.clone(), None, Decision::Wait),
        (paused, Some("metal3.io/capm3"), Decision::Go),
        (reported, Some("user"), Decision::Go),
        (deleted, Some("user"), Decision::Go),
    ] {
        let annotations = json!({ "metal3.io/BareMetalHost": "lab/a" });
        let machine = json!({ "metadata": { "annotations": annotations, "ownerReferences": owner }, "spec": {} });
        let mut one = host("provisioned", json!({}));
        one["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/paused": pause.unwrap_or_default() });
        if pause.is_none() {
            one["metadata"] = json!({});
        }
        let facts = back::<Metal3Remediation>(Series::new(1, 14), remediation.clone());
        let facts = with::<BareMetalHost>(with::<Metal3Machine>(facts, machine), one);
        let found = about(facts, "Metal3Remediation lab/a");
        let decisions: Vec<_> = found.iter().map(|(decision, _)| *decision).collect();
        assert_eq!(decisions, [decision], "{remediation} {pause:?}: {found:?}");
    }
}

/// A Go manager claims the host that a machine records, whatever that serves by now, and reads it in any namespace.
#[test]
fn way_back_is_refused_for_a_machine_that_records_the_host_of_another() {
    let image = |url: &str| json!({ "image": { "url": url } });
    let user_data = |name: &str| json!({ "image": { "url": "http://images.example/a" }, "userData": { "name": name } });
    let kept = json!({ "labels": { NODE_REUSE_LABEL: "set" } });
    let own = "http://images.example/a";
    let given_away = Some("host-given-away");
    for (recorded, host_meta, spec, row) in [
        ("lab/a", json!({}), image("http://images.example/b"), given_away),
        ("lab/a", json!({}), image(own), None),
        ("lab/a", json!({}), user_data("other"), given_away),
        ("lab/a", json!({}), user_data("mine"), None),
        ("lab/a", json!({}), json!({}), None),
        ("lab/a", json!({}), json!({ "externallyProvisioned": true }), given_away),
        ("lab/a", kept, json!({}), given_away),
        ("lab/b", json!({}), image("http://images.example/b"), None),
        ("other/a", json!({}), json!({}), Some("host-annotation-checked")),
        (
            "lab/a",
            json!({ "annotations": { "baremetalhost.metal3.io/paused": "user" } }),
            image("http://images.example/b"),
            None,
        ),
    ] {
        let machine = json!({ "metadata": { "name": "m", "annotations": { "metal3.io/BareMetalHost": recorded } }, "spec": image(own),
            "status": { "userData": { "name": "mine" } } });
        let one = host("provisioned", json!({ "metadata": host_meta, "spec": spec }));
        let facts = back::<Metal3Machine>(Series::new(1, 14), machine);
        let found = report(with::<BareMetalHost>(facts, one)).findings;
        let found: Vec<_> = found.iter().filter(|one| one.object == "Metal3Machine lab/m").collect();
        let rows: Vec<_> = found.iter().map(|one| one.row).collect();
        assert_eq!(
            rows,
            row.map(Some).into_iter().collect::<Vec<_>>(),
            "{recorded} {spec}: {found:?}"
        );
        assert!(found.iter().all(|one| one.decision == Decision::No), "{found:?}");
    }
}

/// A Go manager makes a machine the consumer of the host that it records, whatever has that, and its deletion removes the image.
#[test]
fn way_back_is_refused_for_a_machine_whose_recorded_host_has_another_consumer() {
    let consumer = |of: Value| {
        let mut consumer = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m",
            "namespace": "lab" });
        merge(&mut consumer, of);
        json!({ "spec": { "consumerRef": consumer, "image": { "url": "http://images.example/a" } } })
    };
    let (deleted, paused) = (
        json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }),
        json!({ "annotations": { "baremetalhost.metal3.io/paused": "user" } }),
    );
    for (machine_meta, host_meta, of, stops) in [
        (json!({}), json!({}), json!({}), false),
        (json!({}), json!({}), json!({ "name": "other" }), true),
        (json!({}), json!({}), json!({ "namespace": "other" }), true),
        (json!({}), json!({}), json!({ "kind": "HostClaim" }), true),
        (
            json!({}),
            json!({}),
            json!({ "apiVersion": "metal3.io/v1alpha1" }),
            true,
        ),
        (deleted, json!({}), json!({ "name": "other" }), false),
        (json!({}), paused, json!({ "name": "other" }), false),
    ] {
        let annotations = json!({ "metal3.io/BareMetalHost": "lab/a" });
        let mut machine = json!({ "metadata": { "name": "m", "annotations": annotations }, "spec": {} });
        merge(&mut machine["metadata"], machine_meta);
        let mut one = host("provisioned", consumer(of.clone()));
        merge(&mut one, json!({ "metadata": host_meta }));
        let facts = back::<Metal3Machine>(Series::new(1, 14), machine.clone());
        let found = about(with::<BareMetalHost>(facts, one), "Metal3Machine lab/m");
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("has another consumer");
        assert_eq!(found.iter().any(is_it), stops, "{machine} {of}: {found:?}");
    }
}

/// Since 1.13 a Go manager reads the name alone, and takes a host of the machine's namespace.
#[test]
fn recorded_host_of_another_namespace_is_judged_as_the_release_looks_it_up() {
    let of = |machine: &str| {
        let consumer = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": machine,
            "namespace": "lab" });
        json!({ "spec": { "consumerRef": consumer } })
    };
    let (free, deleted) = (json!({}), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "user" } } });
    for (minor, meta, one, decision) in [
        (11, &json!({}), None, Decision::No),
        (12, &deleted, None, Decision::No),
        (12, &json!({}), Some(&of("m")), Decision::No),
        (13, &json!({}), None, Decision::Go),
        (13, &deleted, None, Decision::Go),
        (13, &json!({}), Some(&free), Decision::No),
        (13, &json!({}), Some(&paused), Decision::Go),
        (14, &json!({}), Some(&of("m")), Decision::Go),
        (14, &json!({}), Some(&of("other")), Decision::No),
        (14, &deleted, Some(&of("m")), Decision::No),
        (14, &deleted, Some(&of("other")), Decision::Go),
    ] {
        let annotations = json!({ "metal3.io/BareMetalHost": "other/a" });
        let mut machine = json!({ "metadata": { "name": "m", "annotations": annotations }, "spec": {} });
        merge(&mut machine["metadata"], meta.clone());
        let mut facts = back::<Metal3Machine>(Series::new(1, minor), machine);
        if let Some(more) = one {
            facts = with::<BareMetalHost>(facts, host("available", more.clone()));
        }
        let found = about(facts, "Metal3Machine lab/m");
        let decisions: Vec<_> = found.iter().map(|(decision, _)| *decision).collect();
        assert_eq!(decisions, [decision], "1.{minor} {meta} {one:?}: {found:?}");
    }
}

#[test]
fn machine_that_waits_for_a_decision_about_its_disks_is_known_by_the_reason_of_a_condition() {
    let (undecided, other) = ("NodeReuseUndecided", "WaitingForBootstrapReady");
    for (reason, message, stops) in [(undecided, "", true), (other, undecided, false)] {
        let condition = json!({ "type": "AssociateMetal3MachineMetaData", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let machine = json!({ "spec": {}, "status": { "conditions": [condition] } });
        let found = about(
            back::<Metal3Machine>(Series::new(1, 14), machine),
            "Metal3Machine lab/a",
        );
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("about its disks");
        assert_eq!(found.iter().any(is_it), stops, "{reason} {message}: {found:?}");
    }
}

#[test]
fn object_of_the_way_back_that_cannot_be_decoded_makes_the_decision_unknown() {
    let wrong = object::<BareMetalHost>(json!({ "spec": { "online": "yes" } }));
    let mut facts = facts(Direction::Back(Series::new(1, 14)));
    facts.objects.insert(KindName::of::<BareMetalHost>(), vec![wrong]);
    let report = report(facts);
    assert_eq!(report.decision, Decision::Unknown);
    assert_eq!(report.not_read[0].what, "BareMetalHost lab/a");
}

#[test]
fn way_back_names_what_an_older_release_does_not_know() {
    let machine = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": "m", "namespace": "lab" });
    let of_another =
        json!({ "metadata": { "annotations": { BLOCK_MOVE_ANNOTATION: "" } }, "spec": { "online": true } });
    let mut blocked = of_another.clone();
    blocked["spec"]["consumerRef"] = machine;
    let consumer =
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "namespace": "lab" });
    let kept = json!({ "metadata": { "labels": { NODE_REUSE_LABEL: "edge" } }, "spec": { "online": true, "consumerRef": consumer } });
    let (newer, older) = (Series::new(1, 14), Series::new(1, 13));
    assert_one(
        back::<BareMetalHost>(older, blocked.clone()),
        "BareMetalHost",
        Decision::Go,
        "hand-back",
    );
    assert_one(
        back::<BareMetalHost>(older, of_another),
        "BareMetalHost",
        Decision::Go,
        "kubectl annotate bmh --namespace lab a",
    );
    assert_one(
        back::<BareMetalHost>(older, kept.clone()),
        "BareMetalHost",
        Decision::No,
        "is kept",
    );
    for one in [blocked, kept] {
        let found = about(back::<BareMetalHost>(newer, one), "BareMetalHost");
        assert!(
            found.iter().all(|(_, text)| text.contains("has no HostFirmware")),
            "{found:?}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn way_back_names_the_ironic_of_all_hosts_and_refuses_several() {
    let of = |name: &str, ironic: Option<&str>, node: &str| {
        let mut one = host(
            "provisioned",
            json!({ "metadata": { "name": name }, "status": { "provisioning": { "ID": node } } }),
        );
        if let Some(ironic) = ironic {
            one["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/registered-in": ironic });
        }
        object::<BareMetalHost>(one)
    };
    let paused = |mut one: Value| {
        one["metadata"]["annotations"]["baremetalhost.metal3.io/paused"] = json!("user");
        one
    };
    let about_all = |hosts: Vec<Value>| {
        let mut facts = facts(Direction::Back(Series::new(1, 14)));
        facts.objects.insert(KindName::of::<BareMetalHost>(), hosts);
        about(facts, "Ironics")
    };
    for (given, hosts, expected) in [
        ("one Ironic, which is not recorded", vec![of("a", None, "1")], None),
        ("empty records", vec![of("a", Some(""), "1")], None),
        (
            "one of several",
            vec![
                of("a", Some("site-b"), "1"),
                of("b", Some("site-b"), ""),
                of("c", None, ""),
            ],
            Some((Decision::Go, "registered in site-b: IRONIC_ENDPOINT")),
        ),
        (
            "a node that no record names",
            vec![of("a", Some("site-b"), "1"), of("b", None, "2")],
            Some((Decision::No, "BareMetalHost lab/b")),
        ),
        (
            "two",
            vec![of("a", Some("site-b"), "1"), of("b", Some("ironic"), "2")],
            Some((Decision::No, "hosts are registered in ironic, site-b")),
        ),
        (
            "two, one of them paused",
            vec![of("a", Some("site-b"), "1"), paused(of("b", Some("ironic"), "2"))],
            Some((Decision::Go, "registered in site-b: IRONIC_ENDPOINT")),
        ),
        (
            "a paused one elsewhere is named",
            vec![of("a", Some("site-b"), "1"), paused(of("b", Some("ironic"), "2"))],
            Some((Decision::Go, "BareMetalHost lab/b, are registered in ironic")),
        ),
        (
            "no record of a paused one",
            vec![of("a", Some("site-b"), "1"), paused(of("b", None, "2"))],
            Some((Decision::Go, "all hosts are registered in site-b")),
        ),
        (
            "the only record is of a paused one",
            vec![paused(of("a", Some("site-b"), "1")), of("b", None, "2")],
            Some((Decision::No, "BareMetalHost lab/b")),
        ),
    ] {
        let found = about_all(hosts);
        let is_it = match (&found[..], expected) {
            ([], None) => true,
            ([(decision, text)], Some((wanted, part))) => *decision == wanted && text.contains(part),
            _ => false,
        };
        assert!(is_it, "{given}: {found:?}");
    }
}

#[test]
fn way_back_names_claims_and_undecided_machines() {
    let to = Series::new(1, 14);
    let held = json!({ "metadata": { "finalizers": [CLUSTER_FINALIZER] }, "spec": { "poolRef": { "name": "p", "kind": "IPPool" } } });
    assert_one(
        back::<IPAddressClaim>(to, held.clone()),
        "IPAddressClaim",
        Decision::Go,
        "hand-back",
    );
    let mut deleted = held;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_one(
        back::<IPAddressClaim>(to, deleted),
        "IPAddressClaim",
        Decision::Wait,
        "is being deleted",
    );
    let condition = json!({ "type": "AssociateMetal3MachineMetaData", "status": "False", "reason": "NodeReuseUndecided",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let machine =
        json!({ "spec": { "image": { "url": "https://images.example/a" } }, "status": { "conditions": [condition] } });
    assert_one(
        back::<Metal3Machine>(to, machine),
        "Metal3Machine",
        Decision::No,
        "decision about its disks",
    );
}

#[test]
fn way_back_waits_for_updates_that_have_not_ended() {
    for (status, expected) in [("True", Some(Decision::Wait)), ("False", None)] {
        let condition = json!({ "type": "Updating", "status": status, "reason": "UpdateOrdered", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let updates = json!([{ "component": "bios", "url": "http://firmware.example/2" }]);
        let object =
            json!({ "spec": { "updates": updates }, "status": { "updates": updates, "conditions": [condition] } });
        let found = about(
            back::<HostFirmwareComponents>(Series::new(1, 14), object),
            "HostFirmwareComponents",
        );
        assert_eq!(found.first().map(|(decision, _)| *decision), expected, "{found:?}");
    }
}

#[test]
fn way_back_to_a_release_without_the_stored_version_is_refused() {
    let crd = Crd {
        name: "metal3machines.infrastructure.cluster.x-k8s.io".to_owned(),
        stored: vec!["v1beta1".to_owned(), "v1beta2".to_owned()],
        ..Crd::default()
    };
    for (to, expected) in [(Series::new(1, 12), Decision::No), (Series::new(1, 13), Decision::Go)] {
        let mut facts = facts(Direction::Back(to));
        facts.crds = vec![crd.clone()];
        assert_eq!(report(facts).decision, expected, "{to}");
    }
}

/// In a run with 1.12, a Machine stayed for five minutes after its Metal3Machine, until Cluster API was restarted.
#[test]
fn controllers_that_watch_a_version_that_the_release_does_not_serve_are_to_be_restarted() {
    let of_machines = "metal3machines.infrastructure.cluster.x-k8s.io";
    for (to, name, is_named) in [
        (12, of_machines, true),
        (12, "ippools.ipam.metal3.io", false),
        (13, of_machines, false),
    ] {
        let mut facts = facts(Direction::Back(Series::new(1, to)));
        facts.crds = vec![Crd {
            name: name.to_owned(),
            stored: vec!["v1beta1".to_owned()],
            ..Crd::default()
        }];
        let found = about(facts, "Deployments of Cluster API");
        let is_it = |(of, text): &(Decision, String)| *of == Decision::Go && text.contains("rollout restart");
        assert_eq!(found.iter().any(is_it), is_named, "1.{to} {name}: {found:?}");
    }
}

#[test]
fn owners_of_a_version_that_the_release_does_not_serve_are_named() {
    let table = [(12, "v1beta2", true), (12, "v1beta1", false), (13, "v1beta2", false)];
    for (minor, version, is_named) in table {
        let owner = json!({ "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "Metal3Data", "name": "a",
            "uid": "u" });
        let claim = json!({ "metadata": { "ownerReferences": [owner] }, "spec": { "pool": { "name": "p" } } });
        let found = about(back::<IPClaim>(Series::new(1, minor), claim), "owner references");
        let expected = "as that of IPClaim lab/a, and those of the Secrets";
        let is_it = |(of, text): &(Decision, String)| {
            *of == Decision::Go && text.contains(expected) && text.contains("hand-back")
        };
        assert_eq!(found.iter().any(is_it), is_named, "1.{minor} {version}: {found:?}");
    }
}
