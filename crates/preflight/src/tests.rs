//! Each rule with objects that it is about, and with objects that it is not about.

mod definitions;
mod dry_run;
mod environment;
mod hosts;
mod managers;
mod settings;
mod way_back;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use metal3_api::cluster::{IPAddressClaim, Machine};
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
        providers: Some(Vec::new()),
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

/// The decisions about serving a claim.
fn about_serving(facts: Facts, claim: &str) -> Vec<Decision> {
    let findings = report(facts).findings;
    let of_claim = findings
        .iter()
        .filter(|one| one.object == claim && one.row == Some("claim-cleaning"));
    of_claim.map(|one| one.decision).collect()
}

/// What the host of a claim runs is not deployed again.
#[test]
fn claim_whose_host_runs_what_it_asks_for_stops_no_switch() {
    let url = "http://images.example/a";
    let image = |url: &str| json!({ "image": { "url": url } });
    let asks = json!({ "poweredOn": true, "image": { "url": url } });
    let named = |name: &str| json!({ "bareMetalHost": { "namespace": "lab", "name": name } });
    let claim = json!({ "metadata": { "name": "c" }, "spec": asks, "status": named("a") });
    let elsewhere = json!({ "metadata": { "name": "c" }, "spec": asks, "status": named("b") });
    let consumer = |name: &str| json!({ "consumerRef": { "apiVersion": "metal3.io/v1alpha1", "kind": "HostClaim", "namespace": "lab", "name": name } });
    let runs = |url: &str| json!({ "provisioning": image(url) });
    let other = "http://images.example/b";
    for (state, claim, consumer, status, decision) in [
        ("provisioned", &claim, consumer("c"), runs(url), Decision::Go),
        ("provisioned", &claim, consumer("c"), runs(other), Decision::No),
        ("provisioning", &claim, consumer("c"), runs(url), Decision::No),
        ("available", &claim, consumer("c"), runs(""), Decision::No),
        ("provisioned", &claim, consumer("d"), runs(url), Decision::No),
        ("provisioned", &claim, json!({}), runs(url), Decision::No),
        ("provisioned", &elsewhere, consumer("c"), runs(url), Decision::No),
    ] {
        let of_host = host(state, json!({ "spec": consumer, "status": status }));
        let facts = with::<HostDeployPolicy>(forward::<HostClaim>(claim.clone()), json!({ "spec": {} }));
        let facts = serving_claims(with::<BareMetalHost>(facts, of_host), 1, false);
        let decisions = about_serving(facts, "HostClaim lab/c");
        assert_eq!(decisions, [decision], "{state} {consumer} {status}");
    }
}

fn serving_claims(mut facts: Facts, replicas: i32, is_ours: bool) -> Facts {
    let (namespace, name) = ("baremetal-operator-system", "baremetal-operator-controller-manager");
    let mut one = deployment(namespace, name, "r/bmo:v0.14.0", &["--hostclaims"], is_ours);
    one.spec.as_mut().unwrap().replicas = Some(replicas);
    facts.deployments.push(one);
    facts
}

#[test]
fn claim_that_this_program_serves_already_stops_no_switch() {
    let claim = json!({ "spec": { "poweredOn": true, "image": { "url": "http://images.example/a" } } });
    let facts = || with::<HostDeployPolicy>(forward::<HostClaim>(claim.clone()), json!({ "spec": {} }));
    for (managers, decision) in [
        (&[(1, true)][..], Decision::Go),
        (&[(0, false), (1, true)], Decision::Go),
        (&[(1, false), (1, true)], Decision::No),
        (&[(1, false), (0, true)], Decision::No),
        (&[(0, false)], Decision::No),
    ] {
        let facts = managers.iter().fold(facts(), |facts, (replicas, is_ours)| {
            serving_claims(facts, *replicas, *is_ours)
        });
        assert_eq!(about_serving(facts, "HostClaim lab/a"), [decision], "{managers:?}");
    }
}

/// The Go manager waits for the Machine, the Cluster and the Metal3Cluster of a deleted machine, and its host runs on until then.
#[test]
fn deleted_machine_for_which_the_go_manager_waits_without_end_stops_the_switch() {
    let owners = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m", "uid": "u" }]);
    let of_host = json!({ "metal3.io/BareMetalHost": "lab/h" });
    let paused = json!({ "metal3.io/BareMetalHost": "lab/h", "cluster.x-k8s.io/paused": "" });
    let (deleted, by_user, by_capm3) = (Some("2026-01-01T00:00:00Z"), Some("user"), Some("metal3.io/capm3"));
    let reason = |reason: &str| {
        json!({ "conditions": [{ "type": "AssociateBareMetalHost", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
    };
    let (without, going) = (reason("WaitingforMetal3Cluster"), reason("WaitingForBootstrapData"));
    let owner = reason("WaitingForMetal3MachineOwnerRef");
    let cluster = reason("WaitingForClusterInfrastructureReady");
    let none = json!([]);
    for (deleted, owners, annotations, status, pause, stops) in [
        (deleted, &none, &of_host, &going, None, true),
        (deleted, &owners, &of_host, &without, None, true),
        (deleted, &owners, &of_host, &owner, None, true),
        (deleted, &owners, &of_host, &cluster, None, true),
        (deleted, &owners, &of_host, &going, None, false),
        (None, &none, &of_host, &without, None, false),
        (deleted, &owners, &json!({}), &without, None, false),
        (deleted, &owners, &paused, &without, None, false),
        (deleted, &owners, &of_host, &without, by_user, false),
        (deleted, &owners, &of_host, &without, by_capm3, true),
    ] {
        let machine = json!({ "metadata": { "ownerReferences": owners, "annotations": annotations, "deletionTimestamp": deleted },
            "spec": { "image": { "url": "http://images.example/a" } }, "status": status });
        let mut one = host("provisioned", json!({ "metadata": { "name": "h" } }));
        if let Some(by) = pause {
            one["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/paused": by });
        }
        let facts = with::<BareMetalHost>(forward::<Metal3Machine>(machine), one);
        let facts = with::<Machine>(facts, json!({ "metadata": { "name": "m" } }));
        let found = about(facts, "Metal3Machine lab/a");
        let stopping = found.iter().filter(|(decision, _)| *decision == Decision::No);
        let is_it = stopping.map(|(_, text)| text.contains("releases its host at once"));
        let expected = if stops { vec![true] } else { Vec::new() };
        let what = format!("{owners} {annotations} {status} {pause:?}: {found:?}");
        assert_eq!(is_it.collect::<Vec<_>>(), expected, "{what}");
    }
}

/// The Go manager cannot read such an owner, and releases no host for it.
#[test]
fn deleted_machine_whose_machine_does_not_exist_stops_the_switch_and_is_not_known_without_the_list() {
    let owned = |version: &str, status: &Value| {
        let owners = json!([{ "apiVersion": version, "kind": "Machine", "name": "m", "uid": "u" }]);
        json!({ "metadata": { "ownerReferences": owners, "annotations": { "metal3.io/BareMetalHost": "lab/h" },
            "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": { "image": { "url": "http://images.example/a" } }, "status": status })
    };
    let (own, foreign) = ("cluster.x-k8s.io/v1beta1", "example.com/v1");
    let at = "2026-01-01T00:00:00Z";
    let text = r#"{"reason":"WaitingforMetal3Cluster"}"#;
    let written = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "NotReady", "message": text,
        "lastTransitionTime": at }] });
    let older = json!({ "deprecated": { "v1beta1": { "conditions": [{ "type": "AssociateBMH", "status": "False",
        "reason": "WaitingForClusterInfrastructure", "lastTransitionTime": at }] } } });
    for (version, status, machine, is_listed, decision) in [
        (own, &json!({}), Some(("lab", "m")), true, Decision::Go),
        (own, &json!({}), Some(("lab", "other")), true, Decision::No),
        (own, &json!({}), Some(("other", "m")), true, Decision::No),
        (own, &json!({}), None, true, Decision::No),
        (own, &json!({}), None, false, Decision::Unknown),
        (foreign, &json!({}), Some(("lab", "m")), true, Decision::No),
        (own, &written, Some(("lab", "m")), true, Decision::Go),
        (own, &older, Some(("lab", "m")), true, Decision::No),
    ] {
        let mut facts = forward::<Metal3Machine>(owned(version, status));
        if let Some((namespace, name)) = machine {
            facts = with::<Machine>(facts, json!({ "metadata": { "name": name, "namespace": namespace } }));
        }
        if !is_listed {
            facts.not_read.push(NotRead {
                what: "list machines.cluster.x-k8s.io".to_owned(),
                why: "you may not".to_owned(),
            });
        }
        facts.deployments = vec![deployment(
            "capm3-system",
            "capm3-controller-manager",
            "r/m:v1.14.0",
            &[],
            false,
        )];
        let found = report(facts);
        assert_eq!(
            found.decision, decision,
            "{version} {status} {machine:?} {is_listed}: {found:?}"
        );
    }
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

/// Rows of `docs/parity.md` that findings name, each by a text.
#[test]
fn each_named_row_exists() {
    let page = include_str!("../../../docs/parity.md");
    let mut named = BTreeSet::new();
    for (file, text) in sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))) {
        for rest in text.split(".row(").skip(1) {
            let row = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
            named.insert(
                row.unwrap_or_else(|| panic!("{file}: a row that is no text: {rest:.20}"))
                    .to_owned(),
            );
        }
    }
    assert!(named.len() > 20, "{named:?}");
    for row in named {
        assert!(page.contains(&format!("| `{row}` |")), "{row}");
    }
}

/// The files of this crate without its tests.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            _ if name == "tests" => {}
            true => found.extend(sources(&path)),
            false => found.push((path.display().to_string(), fs::read_to_string(&path).unwrap())),
        }
    }
    found
}
