//! Single decisions.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::api_server::CLUSTER;
use super::case::{Case, FINALIZER, UID, blank, condition_of, document, host_patch, writes};
use super::simulation::{cluster, read};
use crate::machine::action::{Action, HostChange, Plan, Reads};
use crate::machine::facts::Settings;

const HOST: &str = "AssociateBareMetalHost";
const META: &str = "AssociateMetal3MachineMetaData";

#[test]
fn machine_records_its_choice_claims_the_host_and_creates_its_data_claim_in_one_reconcile() {
    let plan = Case::new().decide();
    assert_eq!(
        writes(&plan),
        [
            "machine annotations,finalizers",
            "Claim h0",
            "secret Some(\"edge\")",
            "machine annotations,dataTemplate",
            "create claim"
        ]
    );
    let Action::PatchMachine(chosen) = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    let chosen = chosen.clone().into_document();
    let annotations = &chosen["metadata"]["annotations"];
    assert_eq!(annotations["infrastructure.cluster.x-k8s.io/chosen-host"], "h0");
    let patch = host_patch(&plan);
    assert_eq!(patch["metadata"]["resourceVersion"], "5");
    assert_eq!(patch["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "edge");
    let consumer = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": "m0", "namespace": "metal" });
    assert_eq!(patch["spec"], json!({ "consumerRef": consumer }));
    assert_eq!(condition_of(&plan, HOST).0, "AssociateBareMetalHostSuccess");
    assert_eq!(condition_of(&plan, "Metal3DataReady").0, "WaitingForMetal3Data");
}

#[test]
fn machine_without_data_template_claims_its_host_and_provisions_it_after_a_live_read() {
    let bare = |case: Case| case.machine(json!({ "spec": { "dataTemplate": null }, "status": null }));
    let taking = bare(Case::new()).decide();
    let claim = &host_patch(&taking)["spec"];
    assert_eq!(claim.as_object().unwrap().keys().collect::<Vec<_>>(), ["consumerRef"]);
    let mut case = bare(Case::running()).host(blank());
    assert_eq!(case.decide(), Plan::reading(Reads::Machine));
    case.confirmed = true;
    let plan = case.decide();
    let spec = &host_patch(&plan)["spec"];
    assert_eq!(
        (spec["online"].as_bool(), spec["userData"]["name"].as_str()),
        (Some(true), Some("m0-boot"))
    );
    let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256" });
    assert_eq!(spec["image"], image, "an unset format is omitted");
}

#[test]
fn host_gets_image_and_all_data_with_one_patch_after_a_live_read() {
    let claim = json!({
        "metadata": { "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": "m0", "uid": "uid-m0" }] },
        "status": { "renderedData": { "name": "data-m0" } },
    });
    let data = json!({
        "metadata": { "ownerReferences": [{ "apiVersion": "x/v1", "kind": "Metal3DataClaim", "name": "m0", "uid": "uid-claim" }] },
        "spec": { "metaData": { "name": "m0-metadata" }, "networkData": { "name": "m0-networkdata" } },
        "status": { "ready": true },
    });
    let blank = json!({ "spec": { "image": null, "userData": null, "metaData": null }, "status": { "provisioning": { "state": "available" } } });
    let mut case = Case::running()
        .machine(json!({ "status": null }))
        .host(blank)
        .with(|case| {
            case.claim = Some(read(&document(claim, "claim", json!({}))));
            case.data = Some(read(&document(data, "data-m0", json!({}))));
        });
    assert_eq!(case.decide(), Plan::reading(Reads::Machine));
    case.confirmed = true;
    let plan = case.decide();
    assert_eq!(writes(&plan), ["machine dataTemplate", "Provision h0"]);
    let spec = &host_patch(&plan)["spec"];
    let names = ["userData", "metaData", "networkData"].map(|member| spec[member]["name"].as_str().unwrap_or_default());
    assert_eq!(names, ["m0-boot", "m0-metadata", "m0-networkdata"]);
    assert_eq!(
        plan.status.unwrap().status.rendered_data.unwrap().name.as_deref(),
        Some("data-m0")
    );
}

/// Name of the missing object, the change that removes it, and the expected reason.
type Missing = (&'static str, fn(&mut Case), &'static str);

#[test]
fn each_missing_prerequisite_has_its_own_reason() {
    let rows: [Missing; 6] = [
        ("Machine", |case| case.owner = None, "WaitingForMetal3MachineOwnerRef"),
        (
            "Cluster",
            |case| case.cluster = None,
            "WaitingForClusterInfrastructureReady",
        ),
        (
            "infrastructure",
            |case| case.cluster.as_mut().unwrap().status = Default::default(),
            "WaitingForClusterInfrastructureReady",
        ),
        (
            "Metal3Cluster",
            |case| case.metal3_clusters.clear(),
            "WaitingforMetal3Cluster",
        ),
        (
            "bootstrap data",
            |case| case.owner.as_mut().unwrap().spec.bootstrap.data_secret_name = None,
            "WaitingForBootstrapData",
        ),
        ("host", |case| case.hosts.clear(), "AssociateBareMetalHostFailed"),
    ];
    for (what, change, reason) in rows {
        let plan = Case::new().with(change).decide();
        assert_eq!(
            (writes(&plan).is_empty(), condition_of(&plan, HOST).0.as_str()),
            (true, reason),
            "{what}"
        );
    }
}

#[test]
fn invalid_or_incomplete_spec_gives_a_condition_with_field_and_remedy() {
    for (spec, field) in [
        (json!({ "image": null }), "spec.image: "),
        (json!({ "image": { "url": "" } }), "spec.image.url: "),
        (json!({ "image": { "checksum": "" } }), "spec.image.checksum: "),
        (json!({ "dataTemplate": { "name": "" } }), "spec.dataTemplate.name: "),
        (
            json!({ "dataTemplate": { "namespace": "kube-system" } }),
            "spec.dataTemplate.namespace",
        ),
        (
            json!({ "metaData": { "name": "s", "namespace": "kube-system" } }),
            "spec.metaData.namespace",
        ),
        (
            json!({ "hostSelector": { "matchExpressions": [{ "key": "a", "operator": "maybe", "values": [] }] } }),
            "spec.hostSelector: ",
        ),
    ] {
        let plan = Case::new().machine(json!({ "spec": spec })).decide();
        let (reason, message) = condition_of(&plan, HOST);
        assert_eq!(
            (writes(&plan).len(), reason.as_str()),
            (0, "AssociateBareMetalHostFailed"),
            "{field}"
        );
        assert!(message.starts_with(field), "{message}");
    }
}

#[test]
fn two_metal3_clusters_that_joined_are_ambiguous_and_named() {
    let foreign = json!({ "infrastructureRef": { "kind": "ByoCluster", "name": "edge" } });
    let joined = |name: &str| read(&document(json!({ "spec": { "clusterName": "edge" } }), name, json!({})));
    let case = Case::new().with(|case| {
        case.cluster.as_mut().unwrap().spec = read(&foreign);
        case.metal3_clusters = vec![joined("site-a"), joined("site-b")];
    });
    let (reason, message) = condition_of(&case.decide(), HOST);
    assert!(reason == "AmbiguousMetal3Cluster" && message.contains("site-a") && message.contains("site-b"));
    for cure in ["spec.metal3ClusterRef", "spec.failureDomain of the Machine"] {
        assert!(message.contains(cure), "{message}");
    }
}

#[test]
fn failure_domain_of_the_machine_decides_which_of_two_that_joined_it_uses() {
    let foreign = json!({ "infrastructureRef": { "kind": "ByoCluster", "name": "edge" } });
    let joined = |name: &str, zone: &str| {
        let spec = json!({ "clusterName": "edge", "deploymentZones": [{ "name": zone }] });
        read(&document(json!({ "spec": spec }), name, json!({})))
    };
    let of = |domain: &str| {
        let case = Case::new().with(|case| {
            case.cluster.as_mut().unwrap().spec = read(&foreign);
            case.metal3_clusters = vec![joined("site-a", "a"), joined("site-b", "b")];
            case.owner.as_mut().unwrap().spec.failure_domain = Some(domain.to_owned());
        });
        let plan = case.decide();
        (
            writes(&plan).contains(&"Claim h0".to_owned()),
            plan.status.unwrap().status.metal3_cluster,
        )
    };
    assert_eq!(of("b"), (true, Some("site-b".to_owned())));
    assert_eq!(of("c"), (false, None));
    assert_eq!(of(""), (false, None));
}

/// The other Cluster's Metal3Cluster does not wait for the machine when it is deleted.
#[test]
fn reference_to_a_metal3_cluster_of_another_cluster_is_refused_with_field_and_remedy() {
    let other = |spec: Value| read(&document(json!({ "spec": spec }), "site", json!({})));
    let named = json!({ "spec": { "metal3ClusterRef": { "name": "site" } } });
    for (spec, whose) in [
        (json!({ "clusterName": "another" }), "belongs to Cluster another,"),
        (json!({}), "belongs to no Cluster,"),
    ] {
        for case in [Case::new(), Case::running()] {
            let with = |case: &mut Case| {
                case.metal3_clusters.push(other(spec.clone()));
                case.unreadable_cluster = Some("odd");
                case.confirmed = true;
            };
            let plan = case.machine(named.clone()).with(with).decide();
            let (reason, message) = condition_of(&plan, HOST);
            assert_eq!((writes(&plan).len(), reason.as_str()), (0, "Metal3ClusterNotOfCluster"));
            assert!(message.starts_with("spec.metal3ClusterRef.name: "), "{message}");
            assert!(
                message.contains(whose) && message.contains("Cluster edge;"),
                "{message}"
            );
        }
    }
    let own = other(json!({ "clusterName": CLUSTER }));
    let case = Case::new().machine(named).with(|case| case.metal3_clusters.push(own));
    assert!(writes(&case.decide()).contains(&"Claim h0".to_owned()));
}

/// A machine that runs keeps its host, and its deletion releases the host as always.
#[test]
fn metal3_cluster_that_another_cluster_owns_gives_no_host_and_takes_none() {
    let owner = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "another", "uid": "u" });
    let lost = |case: Case| {
        case.metal3_cluster(json!({ "metadata": { "ownerReferences": [owner.clone()] } }))
            .with(|case| case.confirmed = true)
    };
    for (case, field) in [
        (Case::new(), "spec.infrastructureRef of the Cluster: "),
        (Case::running(), "spec.infrastructureRef of the Cluster: "),
    ] {
        let plan = lost(case).decide();
        let (reason, message) = condition_of(&plan, HOST);
        assert_eq!((writes(&plan).len(), reason.as_str()), (0, "Metal3ClusterNotOfCluster"));
        assert!(
            message.starts_with(field) && message.contains("Cluster another,"),
            "{message}"
        );
    }
    let foreign = json!({ "infrastructureRef": { "kind": "ByoCluster", "name": "byo" } });
    let recorded = Case::running().machine(json!({ "status": { "metal3Cluster": CLUSTER } }));
    let recorded = recorded.with(|case| case.cluster.as_mut().unwrap().spec = read(&foreign));
    let plan = lost(recorded).decide();
    let (reason, message) = condition_of(&plan, HOST);
    assert_eq!((writes(&plan).len(), reason.as_str()), (0, "Metal3ClusterNotOfCluster"));
    assert!(message.starts_with("status.metal3Cluster: "), "{message}");
    let deleted = || Case::running().machine(json!({ "metadata": { "deletionTimestamp": "2026-11-28T00:00:00Z" } }));
    let usual = deleted().with(|case| case.confirmed = true).decide();
    assert_eq!(lost(deleted()).decide(), usual);
    assert_ne!(usual, Plan::default());
}

#[test]
fn unreadable_metal3_cluster_may_be_the_machines_or_have_the_free_hosts() {
    let unreadable = |case: Case| case.with(|case| case.unreadable_cluster = Some("odd")).decide();
    let foreign = json!({ "infrastructureRef": { "kind": "ByoCluster", "name": CLUSTER } });
    let with_unreadable = |case: Case| case.with(|case| case.cluster.as_mut().unwrap().spec = read(&foreign));
    let unreadable_plan = unreadable(with_unreadable(Case::new()));
    assert!(
        writes(&unreadable_plan).is_empty()
            && condition_of(&unreadable_plan, HOST)
                .1
                .contains("Metal3Cluster odd cannot be read")
    );
    let gone = unreadable(Case::new().with(|case| case.metal3_clusters.clear()));
    assert!(writes(&gone).is_empty() && condition_of(&gone, HOST).1.contains("Metal3Cluster odd cannot be read"));
    // It may be another site, and the free hosts may be its own.
    let named = json!({ "spec": { "metal3ClusterRef": { "name": CLUSTER } } });
    for case in [Case::new(), with_unreadable(Case::new().machine(named))] {
        let plan = unreadable(case);
        let message = condition_of(&plan, HOST).1;
        assert!(
            writes(&plan).is_empty() && message.contains("its hosts are not known"),
            "{message}"
        );
    }
    // A machine that has its host goes on.
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let claimed = unreadable(Case::new().host(json!({ "spec": { "consumerRef": consumer } })));
    assert!(!writes(&claimed).is_empty());
    let known = unreadable(with_unreadable(Case::running()).machine(json!({ "status": { "metal3Cluster": CLUSTER } })));
    assert_eq!(writes(&known), ["machine dataTemplate"], "what was found before counts");
}

#[test]
fn annotation_that_names_no_host_of_the_namespace_is_an_error_and_no_host_is_touched() {
    for text in ["metal/x/h0", "other/h0", "h0", "metal/"] {
        let annotated = json!({ "metadata": { "annotations": { "metal3.io/BareMetalHost": text } } });
        let running = Case::running().host(blank()).machine(annotated.clone());
        let plan = running.with(|case| case.confirmed = true).decide();
        assert_eq!(writes(&plan).len(), 0, "{text}");
        assert!(
            condition_of(&plan, HOST).1.contains("it must be metal/<host>"),
            "{text}"
        );
        let deleting = Case::running().machine(annotated).deleting();
        let plan = deleting.with(|case| case.confirmed = true).decide();
        assert_eq!(writes(&plan).len(), 0, "{text}");
        assert!(
            condition_of(&plan, META).1.contains("it must be metal/<host>"),
            "{text}"
        );
    }
}

#[test]
fn running_machine_writes_nothing_to_its_host_after_a_change_of_its_spec() {
    let case = Case::running().machine(json!({ "spec": { "image": { "url": "http://192.0.2.9/other.raw" } } }));
    assert_eq!(writes(&case.decide()), ["machine dataTemplate"]);
}

#[test]
fn unreadable_host_is_neither_replaced_nor_released() {
    let unreadable = |case: Case| case.with(|case| case.unreadable = Some("odd")).decide();
    let live = unreadable(Case::running());
    assert_eq!(writes(&live).len(), 0);
    assert!(condition_of(&live, HOST).1.contains("h0 cannot be read: odd"));
    let claim_in_deletion = unreadable(Case::running().deleting());
    assert_eq!(
        (
            writes(&claim_in_deletion).len(),
            condition_of(&claim_in_deletion, META).0.as_str()
        ),
        (0, "DeletionFailed")
    );
    let upstream = unreadable(Case::new().machine(json!({ "metadata": { "finalizers": [FINALIZER] } })));
    assert!(writes(&upstream).is_empty() && condition_of(&upstream, HOST).1.contains("h9"));
    let blind = Case::running().deleting().with(|case| {
        case.unreadable = Some("odd");
        (case.rules.respect_unreadable, case.rules.confirm_freed) = (false, false);
    });
    assert_eq!(
        writes(&blind.decide()),
        ["machine finalizers"],
        "the rule prevents the removal of the finalizer"
    );
}

#[test]
fn paused_cluster_pauses_the_host_and_stops_even_a_deletion() {
    let paused = |case: Case| case.with(|case| case.cluster = Some(cluster(true)));
    let plan = paused(Case::running().deleting()).decide();
    assert_eq!(writes(&plan), ["Pause h0"]);
    let annotations = &host_patch(&plan)["metadata"]["annotations"];
    assert_eq!(annotations["baremetalhost.metal3.io/paused"], "metal3.io/capm3");
    assert!(
        annotations["baremetalhost.metal3.io/status"]
            .as_str()
            .unwrap()
            .contains("\"provisioned\"")
    );
    assert_eq!(annotations["clusterctl.cluster.x-k8s.io/block-move"], Value::Null);
    assert_eq!(condition_of(&plan, "Paused").0, "Paused");
    let mut careless = paused(Case::running().deleting());
    (careless.rules.respect_pause, careless.confirmed) = (false, true);
    assert_eq!(
        writes(&careless.decide()),
        ["Deprovision h0"],
        "the rule prevents the deprovisioning"
    );
}

#[test]
fn pause_by_the_user_is_never_changed_and_the_controllers_ends_with_that_of_the_cluster() {
    let annotated = |value: &str| json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": value, "clusterctl.cluster.x-k8s.io/block-move": null } } });
    assert_eq!(
        writes(&Case::running().host(annotated("me")).decide()),
        ["machine dataTemplate"]
    );
    let paused_by_us = Case::running().host(annotated("metal3.io/capm3")).decide();
    assert_eq!(writes(&paused_by_us), ["Resume h0"]);
    assert_eq!(
        host_patch(&paused_by_us)["metadata"]["annotations"]["baremetalhost.metal3.io/paused"],
        Value::Null
    );
    let still = Case::running()
        .host(annotated("metal3.io/capm3"))
        .with(|case| case.cluster = Some(cluster(true)));
    assert!(writes(&still.decide()).is_empty());
}

#[test]
fn moved_host_stays_paused_until_its_cluster_exists_and_keeps_its_saved_status() {
    let paused_by_us = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3", "clusterctl.cluster.x-k8s.io/block-move": null } } });
    let without_cluster = |case: Case| case.host(paused_by_us.clone()).with(|case| case.cluster = None);
    assert!(writes(&without_cluster(Case::running()).decide()).is_empty());
    assert_eq!(
        writes(&without_cluster(Case::running().deleting()).decide())[0],
        "Resume h0",
        "no other controller resumes it"
    );
    let brought = json!({
        "metadata": { "annotations": { "baremetalhost.metal3.io/status": "kept" } },
        "status": { "provisioning": { "state": "" } },
    });
    let paused = Case::running()
        .with(|case| case.cluster = Some(cluster(true)))
        .host(brought);
    let annotations = &host_patch(&paused.decide())["metadata"]["annotations"];
    assert_eq!(annotations["baremetalhost.metal3.io/paused"], "metal3.io/capm3");
    assert!(annotations.get("baremetalhost.metal3.io/status").is_none());
}

#[test]
fn machine_moved_to_another_cluster_is_not_changed() {
    let moved = json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
    let mut case = Case::running().deleting().machine(moved);
    case.confirmed = true;
    assert_eq!(case.decide(), Plan::default());
    case.rules.respect_move = false;
    assert_eq!(
        writes(&case.decide()),
        ["Deprovision h0"],
        "the rule prevents the deprovisioning"
    );
}

#[test]
fn deletion_needs_neither_machine_nor_cluster_nor_metal3_cluster() {
    let mut case = Case::running().deleting().with(|case| {
        (case.owner, case.cluster, case.confirmed) = (None, None, true);
        case.metal3_clusters.clear();
    });
    assert_eq!(writes(&case.decide()), ["Deprovision h0"]);
    let cleared = json!({ "image": null, "userData": null, "metaData": null });
    assert_eq!(
        host_patch(&case.decide())["spec"],
        json!({ "image": null, "userData": null, "metaData": null, "online": false })
    );
    for (state, expected) in [
        ("provisioned", &[][..]),
        ("deprovisioning", &[]),
        ("deleting", &[]),
        ("something new", &[]),
        ("available", &["secret None", "Release h0"]),
        ("inspecting", &["secret None", "Release h0"]),
        ("unmanaged", &["secret None", "Release h0"]),
    ] {
        case = case.host(json!({ "spec": cleared, "status": { "provisioning": { "state": state } } }));
        assert_eq!(writes(&case.decide()), expected, "{state}");
    }
    case = case.machine(json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" } } }));
    let patch = host_patch(&case.decide());
    assert_eq!(patch["spec"], json!({ "consumerRef": null }));
    assert_eq!(
        patch["metadata"]["annotations"]["clusterctl.cluster.x-k8s.io/block-move"],
        Value::Null
    );
    case.hosts.clear();
    assert_eq!(
        case.decide(),
        Plan::reading(Reads::Host("h0".to_owned())),
        "the cached absence of the host may be outdated"
    );
    case.is_live = true;
    assert_eq!(writes(&case.decide()), ["machine finalizers"]);
}

#[test]
fn released_host_stays_on_only_when_it_must_not_be_powered_off_or_is_cleaned_at_once() {
    for (disable, fast_track, cleaning, online) in [
        (true, false, "disabled", true),
        (false, true, "metadata", true),
        (false, true, "disabled", false),
        (false, false, "metadata", false),
    ] {
        let spec = json!({ "disablePowerOff": disable, "automatedCleaningMode": cleaning, "online": !online });
        let case = Case::running().deleting().host(json!({ "spec": spec })).with(|case| {
            (case.confirmed, case.settings) = (true, Settings { fast_track });
        });
        assert_eq!(
            host_patch(&case.decide())["spec"]["online"],
            online,
            "{disable} {fast_track} {cleaning}"
        );
    }
}

#[test]
fn node_gets_its_provider_id_before_the_machine_and_initialization_is_set_last() {
    let id = "metal3://metal/h0/m0";
    let labelled = Case::running()
        .with(|case| case.nodes = Some(vec![("node-0", "", UID, "")]))
        .decide();
    assert_eq!(
        writes(&labelled),
        [
            "machine dataTemplate".to_owned(),
            format!("node-0 is {id}"),
            "machine providerID".to_owned()
        ]
    );
    let initialization = |plan: Plan| plan.status.unwrap().status.initialization;
    assert_eq!(initialization(labelled).unwrap().provisioned, Some(true));
    assert!(initialization(Case::running().decide()).is_none());
    let unread = Case::running().with(|case| case.nodes = None);
    assert_eq!(unread.decide(), Plan::reading(Reads::Nodes));
    let cloud = Case::running()
        .metal3_cluster(json!({ "spec": { "cloudProviderEnabled": true } }))
        .with(|case| case.nodes = Some(vec![("node-0", "", UID, "")]));
    assert!(initialization(cloud.decide()).is_none(), "a cloud provider sets the ID");
    let done = unread
        .machine(json!({ "spec": { "providerID": id }, "status": { "initialization": { "provisioned": true } } }))
        .decide();
    assert_eq!(done.reads, Reads::Nothing, "nothing waits for the Node");
}

#[test]
fn machine_without_bootstrap_provider_gets_the_provider_id_of_its_labelled_node_or_none() {
    let provider_id = |nodes: Vec<(&'static str, &'static str, &'static str, &'static str)>| {
        let mut case = Case::running().with(|case| case.nodes = Some(nodes));
        case.owner.as_mut().unwrap().spec.bootstrap.config_ref = None;
        let plan = case.decide();
        let patches = plan.actions.iter().filter_map(|action| match action {
            Action::PatchMachine(patch) => patch.clone().into_document()["spec"]["providerID"]
                .as_str()
                .map(ToOwned::to_owned),
            _ => None,
        });
        let patches: Vec<String> = patches.collect();
        let is_provisioned = plan.status.unwrap().status.initialization.is_some();
        assert_eq!(is_provisioned, !patches.is_empty());
        patches
    };
    let (own, old) = ("metal3://metal/h0/m0", "metal3://c0ffee00-1111-4222-8333-444455556666");
    assert_eq!(provider_id(vec![]), [own]);
    assert_eq!(provider_id(vec![("a", "", UID, "")]), [own]);
    assert_eq!(
        provider_id(vec![("a", old, UID, "")]),
        [old],
        "a Node's ID cannot change"
    );
    assert_eq!(provider_id(vec![("a", "aws:///x", UID, "")]), [""; 0], "another's Node");
    assert_eq!(provider_id(vec![("a", "", UID, ""), ("b", "", UID, "")]), [""; 0]);
}

#[test]
fn required_failure_domain_blocks_the_machine_and_a_preferred_one_does_not() {
    let case = |policy: &str| {
        Case::new()
            .metal3_cluster(json!({ "spec": { "failureDomainPolicy": policy } }))
            .with(|case| case.owner.as_mut().unwrap().spec.failure_domain = Some("rack1".to_owned()))
    };
    assert!(writes(&case("Preferred").decide()).contains(&"Claim h0".to_owned()));
    let strict = case("Required").decide();
    let message = condition_of(&strict, HOST).1;
    assert!(writes(&strict).is_empty());
    assert!(
        message.contains("of 1 host, 1 not in failure domain rack1, which is required"),
        "{message}"
    );
}

/// No webhook saw such a machine, or the MachineSet that made it dropped the warning.
#[test]
fn members_of_a_machine_without_effect_are_named_in_a_condition() {
    for (spec, member) in [
        (
            json!({ "hostSelector": { "inNamespace": "other" } }),
            "spec.hostSelector.inNamespace",
        ),
        (json!({ "identityRef": { "name": "elsewhere" } }), "spec.identityRef"),
    ] {
        let plan = Case::new()
            .machine(json!({ "spec": spec }))
            .with(|case| case.confirmed = true)
            .decide();
        let status = &plan.status.as_ref().unwrap().status;
        let served = status.conditions.iter().find(|one| one.type_ == "SpecServed");
        assert!(
            served.is_some_and(|one| one.message.contains(member)),
            "{member}: {:?}",
            status.conditions
        );
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!("metal3://x/y")),
        "[a-z/:.]{0,9}".prop_map(|text| json!(text))
    ];
    (leaf.clone(), leaf.clone(), leaf.clone(), leaf, any::<bool>()).prop_map(|(a, b, c, d, e)| {
        json!({
            "metadata": { "annotations": { "metal3.io/BareMetalHost": a, "infrastructure.cluster.x-k8s.io/chosen-host": b } },
            "spec": { "providerID": c, "image": { "url": d }, "automatedCleaningMode": if e { json!("disabled") } else { Value::Null } },
        })
    })
}

proptest! {
    #[test]
    fn decision_is_total_and_deterministic_and_never_gives_an_image_without_data(
        machine in anything(), deleting: bool, confirmed: bool, running: bool, state in "(available|provisioned|[a-z ]{0,8})",
    ) {
        let base = if running { Case::running() } else { Case::new() };
        let case = base.machine(machine).host(json!({ "status": { "provisioning": { "state": state } } })).with(|case| case.confirmed = confirmed);
        let case = if deleting { case.deleting() } else { case };
        let plan = case.decide();
        for action in &plan.actions {
            if let Action::PatchHost { patch, change, .. } = action {
                let patch = patch.clone().into_document();
                prop_assert_eq!(&patch["metadata"]["resourceVersion"], "5");
                prop_assert!(!patch["spec"]["image"].is_object(), "{change:?} without data");
                prop_assert!(deleting || !matches!(change, HostChange::Deprovision | HostChange::Release));
            }
        }
    }
}
