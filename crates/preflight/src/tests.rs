//! Each rule with objects that it is about, and with objects that it is not about.

mod dry_run;
mod hosts;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, CLUSTER_FINALIZER, NODE_REUSE_LABEL};
use metal3_api::infrastructure::v1beta1;
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3Machine, Metal3MachineTemplate, Metal3Remediation,
};
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{
    BMCEventSubscription, BareMetalHost, HostClaim, HostDeployPolicy, HostFirmwareComponents, HostFirmwareSettings,
};
use serde_json::{Value, json};

use super::*;

fn facts(direction: Direction) -> Facts {
    Facts {
        direction,
        deployments: Vec::new(),
        crds: Vec::new(),
        required: BTreeMap::new(),
        objects: Objects::default(),
        secrets: BTreeMap::new(),
        environment: Vec::new(),
        given: Vec::new(),
        accounts: Vec::new(),
        dry_run: None,
        not_read: Vec::new(),
    }
}

fn object<K: Kind>(mut object: Value) -> Value {
    object["apiVersion"] = json!(K::group_version());
    object["kind"] = json!(K::KIND);
    let named = json!({ "name": "a", "namespace": "lab" });
    for (member, value) in named.as_object().unwrap() {
        if object["metadata"][member].is_null() {
            object["metadata"][member] = value.clone();
        }
    }
    object
}

fn with<K: Kind>(mut facts: Facts, one: Value) -> Facts {
    facts.objects.insert(KindName::of::<K>(), vec![object::<K>(one)]);
    facts
}

fn forward<K: Kind>(one: Value) -> Facts {
    with::<K>(facts(Direction::ToThisProgram), one)
}

fn back<K: Kind>(to: Series, one: Value) -> Facts {
    with::<K>(facts(Direction::Back(to)), one)
}

/// The findings about an object, each as its decision and a part of its text.
fn about(facts: Facts, kind: &str) -> Vec<(Decision, String)> {
    let report = report(facts);
    let findings = report.findings.into_iter().filter(|one| one.object.starts_with(kind));
    findings
        .map(|one| (one.decision, one.what + "; " + &one.cure))
        .collect()
}

#[test]
fn subscription_stops_no_switch_and_the_way_back_only_when_the_go_manager_could_not_continue_it() {
    let events = |headers: bool, record: bool, id: Option<&str>| {
        let mut all = json!({ "metadata": { "name": "events", "namespace": "lab" },
            "spec": { "hostName": "h", "destination": "https://192.0.2.50/events" }, "status": { "subscriptionID": id } });
        if headers {
            all["spec"]["httpHeadersRef"] = json!({ "name": "s", "namespace": "lab" });
        }
        if record {
            all["metadata"]["annotations"] = json!({ "bmceventsubscription.metal3.io/record": "{}" });
        }
        all
    };
    let kind = "BMCEventSubscription";
    let forward = about(forward::<BMCEventSubscription>(events(true, false, Some("1"))), kind);
    assert_eq!(forward, []);
    let back = |object| back::<BMCEventSubscription>(Series::new(1, 14), object);
    assert_eq!(about(back(events(false, true, Some("1"))), kind), []);
    assert_one(
        back(events(true, true, Some("1"))),
        kind,
        Decision::No,
        "delete it before the switch",
    );
    assert_one(
        back(events(false, true, None)),
        kind,
        Decision::Wait,
        "status.subscriptionID",
    );
}

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

fn assert_one(facts: Facts, kind: &str, decision: Decision, part: &str) {
    let found = about(facts, kind);
    let is_it = |(of, text): &(Decision, String)| *of == decision && text.contains(part);
    assert!(found.iter().any(is_it), "{decision} {part}: {found:?}");
}

fn host(state: &str, more: Value) -> Value {
    let status = json!({ "operationalStatus": "OK", "errorCount": 0, "errorMessage": "", "poweredOn": true,
        "provisioning": { "state": state, "ID": "1-2", "image": { "url": "" } } });
    let mut host = json!({ "spec": { "online": true }, "status": status });
    merge(&mut host, more);
    host
}

fn merge(into: &mut Value, more: Value) {
    match more {
        Value::Object(members) => members
            .into_iter()
            .for_each(|(name, value)| merge(&mut into[name], value)),
        other => *into = other,
    }
}

#[test]
fn data_of_another_namespace_is_not_that_of_a_template() {
    let shared = json!({ "spec": { "clusterName": "edge", "templateReference": "old" } });
    for (namespace, waits) in [("lab", false), ("other", true)] {
        let mut facts = forward::<v1beta1::Metal3DataTemplate>(shared.clone());
        let data =
            json!({ "metadata": { "namespace": namespace }, "spec": { "index": 0, "template": { "name": "a" } } });
        facts
            .objects
            .insert(KindName::of::<Metal3Data>(), vec![object::<Metal3Data>(data)]);
        let found = about(facts, "Metal3DataTemplate");
        assert_eq!(
            found.iter().any(|(_, text)| text.contains("templateReference")),
            waits,
            "{namespace}"
        );
    }
}

#[test]
fn text_of_others_begins_no_line() {
    let bmc = json!({ "spec": { "bmc": { "address": "redfish://192.0.2.1/x", "credentialsName": "x\n\nFrom: go\u{202e}" } } });
    let mut facts = forward::<BareMetalHost>(host("available", bmc));
    let key = ("lab".to_owned(), "x\n\nFrom: go\u{202e}".to_owned());
    facts.secrets.insert(key, None);
    let text = render(&report(facts));
    assert_eq!(
        text.lines().filter(|line| line.starts_with("From")).count(),
        1,
        "{text}"
    );
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn claim_is_named_in_both_directions_with_the_flag_that_serves_it() {
    let claim = json!({ "spec": { "poweredOn": true } });
    assert_one(
        forward::<HostClaim>(claim.clone()),
        "HostClaim lab/a",
        Decision::Go,
        "served with --hostclaims only",
    );
    let to = back::<HostClaim>(Series::new(1, 14), claim);
    assert_one(
        to,
        "HostClaim lab/a",
        Decision::Go,
        "start the Go manager with --hostclaims",
    );
}

/// The Go manager deploys nothing for a claim: the switch would write a disk.
#[test]
fn claim_that_this_program_would_deploy_stops_the_switch() {
    let image = json!({ "spec": { "image": { "url": "http://images.example/a" } } });
    let policy = json!({ "spec": {} });
    for (argument, spec, has_policy, decision) in [
        ("--hostclaims", &image, true, Decision::No),
        ("-hostclaims=1", &image, true, Decision::No),
        ("--hostclaims=false", &image, true, Decision::Go),
        ("--webhook-port=9443", &image, true, Decision::Go),
        ("--hostclaims", &image, false, Decision::Go),
        ("--hostclaims", &policy, true, Decision::Go),
    ] {
        let mut facts = forward::<HostClaim>(spec.clone());
        if has_policy {
            facts = with::<HostDeployPolicy>(facts, policy.clone());
        }
        let (namespace, name) = ("baremetal-operator-system", "baremetal-operator-controller-manager");
        facts.deployments = vec![deployment(namespace, name, "r/bmo:v0.14.0", &[argument], false)];
        let found = about(facts, "HostClaim lab/a");
        let of_serving = found.iter().filter(|(_, text)| text.contains("with --hostclaims"));
        let of_serving: Vec<_> = of_serving.map(|(decision, _)| *decision).collect();
        assert_eq!(of_serving, [decision], "{argument} {spec} {has_policy}: {found:?}");
    }
}

#[test]
fn scope_of_a_manager_is_named_because_the_files_of_the_release_have_none() {
    for (argument, is_named) in [
        ("--watch-filter=blue", true),
        ("--namespace=lab", true),
        ("--webhook-port=9443", false),
    ] {
        let manager = deployment(
            "capm3-system",
            "capm3-controller-manager",
            "r/capm3:v1.14.0",
            &[argument],
            false,
        );
        let facts = Facts {
            deployments: vec![manager],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment");
        let names = |(of, text): &(Decision, String)| {
            *of == Decision::Go && text.contains("into the file before it is applied")
        };
        assert_eq!(found.iter().any(names), is_named, "{argument}: {found:?}");
    }
}

#[test]
fn remediation_is_named_on_the_way_back() {
    let to = back::<Metal3Remediation>(Series::new(1, 14), json!({ "spec": {} }));
    assert_one(
        to,
        "Metal3Remediation lab/a",
        Decision::Go,
        "also while it or its Cluster is paused",
    );
}

#[test]
fn template_whose_hosts_are_kept_says_whether_disks_are_cleaned() {
    let template = |mode: &str, reuse: bool| {
        let spec = json!({ "nodeReuse": reuse, "template": { "spec": { "automatedCleaningMode": mode,
            "image": { "url": "https://images.example/a.qcow2", "checksum": "https://images.example/a.sha256" } } } });
        let found = about(
            forward::<Metal3MachineTemplate>(json!({ "spec": spec })),
            "Metal3MachineTemplate",
        );
        found.iter().any(|(_, text)| text.contains("would be cleaned"))
    };
    assert!(template("metadata", true));
    assert!(!template("disabled", true));
    assert!(!template("metadata", false));
}

#[test]
fn template_that_shares_indexes_is_waited_for_until_it_has_data() {
    let shared = json!({ "spec": { "clusterName": "edge", "templateReference": "old" } });
    let facts = forward::<v1beta1::Metal3DataTemplate>(shared);
    assert_one(facts, "Metal3DataTemplate", Decision::Wait, "templateReference");
}

#[test]
fn stored_object_is_reviewed_by_the_admission_rules() {
    let pool =
        json!({ "spec": { "namePrefix": "p", "pools": [{ "start": "192.0.2.9", "end": "192.0.2.1" }], "prefix": 24 } });
    let found = about(forward::<IPPool>(pool), "IPPool lab/a");
    assert!(
        found
            .iter()
            .any(|(decision, text)| *decision == Decision::Go && text.contains("stays editable")),
        "{found:?}"
    );
    let wrong = json!({ "spec": { "pools": [7] } });
    assert_one(
        forward::<IPPool>(wrong),
        "IPPool lab/a",
        Decision::No,
        "cannot be decoded: spec.pools[0]",
    );
}

fn deployment(
    namespace: &str,
    name: &str,
    image: &str,
    arguments: &[&str],
    ours: bool,
) -> k8s_openapi::api::apps::v1::Deployment {
    let labels = if ours {
        json!({ "app.kubernetes.io/part-of": "metal3-rs" })
    } else {
        json!({})
    };
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "replicas": 1, "selector": {}, "template": { "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "manager", "image": image, "args": arguments }] } } },
    }))
    .unwrap()
}

#[test]
fn managers_are_found_with_their_release_and_arguments() {
    let mut facts = facts(Direction::ToThisProgram);
    facts.deployments = vec![
        deployment(
            "capm3-system",
            "capm3-controller-manager",
            "quay.io/metal3-io/capm3:v1.8.2",
            &["--leader-elect"],
            false,
        ),
        deployment(
            "x",
            "baremetal-operator-controller-manager",
            "r:5000/bmo@sha256:00",
            &["--demo-mode", "--webhook-port=0"],
            false,
        ),
        deployment(
            "metal3-ipam-system",
            "ipam-controller-manager",
            "r/capm3:v1.15.0",
            &["--no-such-flag"],
            true,
        ),
        deployment("default", "web", "nginx:1.2", &[], false),
    ];
    let report = report(facts);
    let seen: Vec<_> = report
        .managers
        .iter()
        .map(|one| (one.controllers.join(","), one.is_this_program, one.series))
        .collect();
    let (old, new) = (Some(Series::new(1, 8)), Some(Series::new(1, 15)));
    assert_eq!(
        seen,
        [
            ("capm3".to_owned(), false, old),
            ("ipam".to_owned(), true, new),
            ("hosts".to_owned(), false, None)
        ]
    );
    let text = render(&report);
    for part in [
        "release 1.8 is older than 1.9",
        "upgrade it to 1.9",
        "--demo-mode:",
        "does not say the release",
        "already",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("nginx") && !text.contains("no-such-flag"), "{text}");
    assert_eq!((report.decision, report.exit_code()), (Decision::No, 4));
}

#[test]
fn manager_in_a_namespace_that_is_not_looked_at_stops_the_switch() {
    for (namespace, replicas, stops) in [
        ("baremetal-operator-system", 1, false),
        ("metal3", 1, true),
        ("metal3", 0, false),
    ] {
        let mut one = deployment(
            namespace,
            "baremetal-operator-controller-manager",
            "r/bmo:v0.13.0",
            &[],
            false,
        );
        one.spec.as_mut().unwrap().replicas = Some(replicas);
        let facts = Facts {
            deployments: vec![one],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment");
        let named = |(of, text): &(Decision, String)| {
            *of == Decision::No
                && text.contains("--foreign-deployments=hosts=metal3/baremetal-operator-controller-manager")
        };
        assert_eq!(found.iter().any(named), stops, "{namespace} {replicas}: {found:?}");
    }
}

#[test]
fn controllers_whose_manager_is_not_found_are_named_if_they_have_objects() {
    let mut facts = forward::<BareMetalHost>(host("provisioned", json!({})));
    facts.deployments = vec![deployment(
        "capm3-system",
        "capm3-controller-manager",
        "r/capm3:v1.13.0",
        &[],
        false,
    )];
    let found = report(facts);
    let unknown: Vec<&str> = found.not_read.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(
        (found.decision, unknown),
        (Decision::Unknown, vec!["the manager of hosts"])
    );
    let nothing = report(super::tests::facts(Direction::ToThisProgram));
    assert_eq!(nothing.not_read, []);
}

#[test]
fn newer_release_than_is_known_stops_the_switch() {
    for (image, stops) in [("r/capm3:v1.14.3", false), ("r/capm3:v1.15.0", true)] {
        let facts = Facts {
            deployments: vec![deployment(
                "capm3-system",
                "capm3-controller-manager",
                image,
                &[],
                false,
            )],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment");
        assert_eq!(
            found.iter().any(|(_, text)| text.contains("is newer than 1.14")),
            stops,
            "{image}: {found:?}"
        );
    }
}

#[test]
fn arguments_of_a_manager_are_judged_with_their_variables_and_shown_without_logins() {
    let given = |arguments: &[&str]| {
        let name = "baremetal-operator-controller-manager";
        let mut facts = facts(Direction::ToThisProgram);
        facts.deployments = vec![deployment(
            "baremetal-operator-system",
            name,
            "r/bmo:v0.13.0",
            arguments,
            false,
        )];
        facts.given = vec![Given {
            deployment: format!("baremetal-operator-system/{name}"),
            variables: vec![Variable {
                name: "NAMESPACES".to_owned(),
                value: Some("a,b".to_owned()),
                source: Source::Deployment,
            }],
            without_effect: Vec::new(),
        }];
        about(facts, "Deployment")
    };
    for arguments in [["--namespace=a,b"], ["--namespace=$(NAMESPACES)"]] {
        let found = given(&arguments);
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("all namespaces");
        assert!(found.iter().any(is_it), "{found:?}");
    }
    let found = given(&["--ironic", "https://u:hunter2@ironic:6385"]);
    assert!(found.iter().any(|(_, text)| text.contains("ironic:6385")), "{found:?}");
    assert!(!found.iter().any(|(_, text)| text.contains("hunter2")), "{found:?}");
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
fn pool_that_gives_no_address_stops_the_switch() {
    let pool = |end: &str| json!({ "spec": { "pools": [{ "start": "192.0.2.1", "end": end }], "namePrefix": "p" } });
    assert_one(
        forward::<IPPool>(pool("2001:db8::9")),
        "IPPool",
        Decision::No,
        "no address is given",
    );
    assert_eq!(
        about(forward::<IPPool>(pool("192.0.2.9")), "IPPool")
            .iter()
            .filter(|(of, _)| *of == Decision::No)
            .count(),
        0
    );
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

#[test]
fn what_could_not_be_read_makes_a_good_decision_unknown() {
    let mut facts = facts(Direction::ToThisProgram);
    let why = "you may not".to_owned();
    facts.not_read = vec![NotRead {
        what: "list baremetalhosts.metal3.io".to_owned(),
        why,
    }];
    let report = report(facts);
    assert_eq!((report.decision, report.exit_code()), (Decision::Unknown, 5));
    assert_eq!(serde_json::to_value(&report).unwrap()["decision"], "unknown");
    assert!(render(&report).starts_with("From the Go managers to this program: not known\n"));
    assert!(render(&report).contains("Not read: list baremetalhosts.metal3.io, because you may not"));
}

#[test]
fn text_of_others_gets_no_control_of_the_terminal() {
    let named = json!({ "metadata": { "name": "a\u{1b}[2J" }, "spec": { "poweredOn": true } });
    let text = render(&report(forward::<HostClaim>(named)));
    assert!(text.contains('\u{fffd}') && !text.contains('\u{1b}'), "{text}");
}

/// Rows of `docs/parity.md` that findings name.
#[test]
fn each_named_row_exists() {
    let page = include_str!("../../../docs/parity.md");
    let sources = [
        include_str!("hosts.rs"),
        include_str!("machines.rs"),
        include_str!("back.rs"),
        include_str!("unserved.rs"),
    ];
    let named = sources.iter().flat_map(|text| text.split(".row(\"").skip(1));
    let named: BTreeSet<&str> = named.filter_map(|text| text.split('"').next()).collect();
    assert!(named.len() > 5, "{named:?}");
    for row in named {
        assert!(page.contains(&format!("| `{row}` |")), "{row}");
    }
}

fn definition(writer: &str) -> Crd {
    Crd {
        name: "metal3clustertemplates.infrastructure.cluster.x-k8s.io".to_owned(),
        stored: vec!["v1beta2".to_owned()],
        has_webhook: true,
        writers: vec![writer.to_owned()],
    }
}

#[test]
fn definitions_of_another_writer_need_a_forced_apply() {
    for direction in [Direction::ToThisProgram, Direction::Back(Series::new(1, 14))] {
        let mut facts = facts(direction);
        facts.crds.push(definition("clusterctl"));
        let found = about(facts, "CustomResourceDefinitions");
        assert_eq!(found.len(), 1, "{found:?}");
        let (decision, text) = &found[0];
        assert_eq!(*decision, Decision::Go);
        for part in ["by clusterctl", "--force-conflicts", "clusterctl upgrade apply"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn definitions_of_other_projects_are_not_counted() {
    let mut facts = facts(Direction::ToThisProgram);
    for name in ["clusters.cluster.x-k8s.io", "hosts.notmetal3.io"] {
        facts.crds.push(Crd {
            name: name.to_owned(),
            ..definition("clusterctl")
        });
    }
    assert!(about(facts, "CustomResourceDefinitions").is_empty());
}

/// A cluster that was installed without its definitions, or lost some.
#[test]
fn this_program_without_definitions_that_it_waits_for_is_a_reason_to_stop() {
    const HOSTS: [&str; 2] = ["baremetalhosts.metal3.io", "hardwaredata.metal3.io"];
    const POOLS: &str = "ippools.ipam.metal3.io";
    let found = |name: &str, arguments: &[&str], is_ours: bool, there: &[&str]| {
        let crd = |name: &&str| Crd {
            name: (*name).to_owned(),
            ..Crd::default()
        };
        let mut facts = facts(Direction::ToThisProgram);
        facts.required = BTreeMap::from([
            ("hosts", HOSTS.map(str::to_owned).to_vec()),
            ("ipam", vec![POOLS.to_owned()]),
        ]);
        facts.deployments = vec![deployment("x", name, "r/capm3:v1.15.0", arguments, is_ours)];
        facts.crds = there.iter().map(crd).collect();
        let mut about = about(facts, "Deployment");
        about.retain(|(_, text)| text.contains("definitions"));
        about
    };
    let (one, all) = ("baremetal-operator-controller-manager", "metal3-controller-manager");
    assert_eq!(found(one, &[], true, &HOSTS), [], "no other kind is waited for");
    assert_eq!(
        found(one, &[], false, &[]),
        [],
        "a Go manager's come with the components"
    );
    assert_eq!(found(all, &["--controllers=capm3,hosts"], true, &HOSTS), []);
    for (name, arguments, there, missing) in [
        (one, &[][..], &HOSTS[..1], HOSTS[1]),
        (all, &[][..], &HOSTS[..], POOLS),
        (all, &["--controllers=ipam"][..], &[][..], POOLS),
    ] {
        let found = found(name, arguments, true, there);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Decision::No);
        assert!(
            found[0].1.contains(missing) && found[0].1.contains("components"),
            "{found:?}"
        );
    }
}

#[test]
fn conversion_that_the_go_manager_lacks_is_taken_off_on_the_way_back_only() {
    const KIND: &str = "CustomResourceDefinition metal3clustertemplates";
    let mut there = facts(Direction::ToThisProgram);
    there.crds.push(definition("clusterctl"));
    assert!(about(there, KIND).is_empty());
    let mut back = facts(Direction::Back(Series::new(1, 14)));
    back.crds.push(definition("clusterctl"));
    let found = about(back, KIND);
    assert!(
        found[0].1.contains("kubectl patch crd metal3clustertemplates"),
        "{found:?}"
    );
    let mut without = facts(Direction::Back(Series::new(1, 14)));
    without.crds.push(Crd {
        has_webhook: false,
        ..definition("clusterctl")
    });
    assert!(about(without, KIND).is_empty());
}

#[test]
fn webhooks_of_hosts_that_the_go_manager_lacks_are_deleted_on_the_way_back() {
    const KIND: &str = "ValidatingWebhookConfiguration";
    const OF_HOSTS: &str = "baremetal-operator-controller-manager";
    let with = |direction, name, ours| {
        let mut facts = facts(direction);
        facts.deployments = vec![deployment(
            "baremetal-operator-system",
            name,
            "capm3:v1.15.0",
            &[],
            ours,
        )];
        about(facts, KIND)
    };
    let back = Direction::Back(Series::new(1, 14));
    for name in [OF_HOSTS, "metal3-controller-manager"] {
        let found = with(back, name, true);
        assert!(
            found[0]
                .1
                .contains("kubectl delete --ignore-not-found validatingwebhookconfiguration baremetal-operator"),
            "{found:?}"
        );
    }
    assert!(with(back, "ipam-controller-manager", true).is_empty());
    assert!(with(back, OF_HOSTS, false).is_empty());
    assert!(with(Direction::ToThisProgram, OF_HOSTS, false).is_empty());
}
