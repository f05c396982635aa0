//! Deployment zones: the data template and the failure domain follow the host.

use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, from_value, json};

use super::api_server::{CLUSTER, NAMESPACE};
use super::case::{Case, UID, blank, condition_of, writes};
use crate::machine::action::{Action, Plan, Reads};

const LABEL: &str = "infrastructure.cluster.x-k8s.io/failure-domain";

/// A machine for rack a, whose Metal3Cluster has these zones.
fn case(zones: Value) -> Case {
    Case::new()
        .metal3_cluster(json!({ "spec": { "deploymentZones": zones } }))
        .machine(json!({ "spec": { "dataTemplate": null } }))
        .with(|case| case.owner.as_mut().unwrap().spec.failure_domain = Some("a".to_owned()))
}

fn zones() -> Value {
    json!([
        { "name": "a", "hostSelector": { "matchLabels": { "rack": "7" } }, "dataTemplate": { "name": "net-a" } },
        { "name": "b", "dataTemplate": { "name": "net-b", "namespace": "metal" } },
    ])
}

fn labelled(case: Case, labels: &Value) -> Case {
    case.host(json!({ "metadata": { "labels": labels } }))
}

/// The template of the machine and that of its claim.
fn templates(plan: &Plan) -> (Option<Value>, Option<String>) {
    let written = plan.actions.iter().find_map(|action| match action {
        Action::PatchMachine(patch) => patch.clone().into_document().pointer("/spec/dataTemplate").cloned(),
        _ => None,
    });
    let claimed = plan.actions.iter().find_map(|action| match action {
        Action::CreateClaim(claim) => claim.spec.template.as_ref()?.name.clone(),
        _ => None,
    });
    (written, claimed)
}

fn failure_domain(plan: &Plan) -> Option<String> {
    plan.status.as_ref().unwrap().status.failure_domain.clone()
}

#[test]
fn machine_without_a_data_template_gets_that_of_the_zone_of_its_host() {
    for (labels, template, domain) in [
        (json!({ "rack": "7" }), "net-a", "a"),
        // Preferred is not required: the network is that of the rack it got.
        (json!({ LABEL: "b" }), "net-b", "b"),
        (json!({ "rack": "7", LABEL: "b" }), "net-a", "a"),
    ] {
        let plan = labelled(case(zones()), &labels).decide();
        let expected = json!({ "name": template, "namespace": "metal" });
        assert_eq!(
            templates(&plan),
            (Some(expected), Some(template.to_owned())),
            "{labels}"
        );
        assert_eq!(failure_domain(&plan), Some(domain.to_owned()), "{labels}");
    }
    let own = labelled(case(zones()), &json!({ "rack": "7" }))
        .machine(json!({ "spec": { "dataTemplate": { "name": "own", "namespace": "metal" } } }));
    assert_eq!(templates(&own.decide()), (None, Some("own".to_owned())));
    let secrets = json!({ "spec": { "metaData": { "name": "own" }, "networkData": { "name": "own" } } });
    let complete = labelled(case(zones()), &json!({ "rack": "7" })).machine(secrets);
    assert_eq!(templates(&complete.decide()), (None, None), "it has all its data");
    let outside = labelled(case(zones()), &json!({ LABEL: "c" })).decide();
    assert!(writes(&outside).is_empty(), "{:?}", writes(&outside));
}

/// The claim may have been the last write before a crash: the machine has the host and no template yet.
#[test]
fn host_is_not_provisioned_before_the_data_of_its_zone_are_rendered() {
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let claimed = labelled(case(zones()), &json!({ "rack": "7" }))
        .host(json!({ "spec": { "consumerRef": consumer } }))
        .with(|case| case.confirmed = true);
    let plan = claimed.decide();
    let (written, claim) = templates(&plan);
    assert_eq!(written.unwrap()["name"], "net-a");
    assert_eq!(claim.as_deref(), Some("net-a"));
    assert!(
        !writes(&plan).iter().any(|one| one.starts_with("Provision")),
        "{:?}",
        writes(&plan)
    );
    assert_eq!(condition_of(&plan, "Metal3DataReady").0, "WaitingForMetal3Data");
}

/// The zone of the claimed host was removed or renamed, or a label was, before the template was recorded in the machine.
#[test]
fn host_without_a_zone_is_not_written_without_data() {
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let without_a = json!([{ "name": "b", "dataTemplate": { "name": "net-b" } }]);
    for consumer in [Value::Null, consumer] {
        let plan = labelled(case(without_a.clone()), &json!({ "rack": "7" }))
            .host(json!({ "spec": { "consumerRef": consumer } }))
            .with(|case| case.confirmed = true)
            .decide();
        assert!(
            !writes(&plan)
                .iter()
                .any(|one| one.starts_with("Provision") || one.starts_with("Claim")),
            "{:?}",
            writes(&plan)
        );
        let status = serde_json::to_string(&plan.status.unwrap().status).unwrap();
        assert!(
            status.contains("in no deployment zone with a data template"),
            "{status}"
        );
    }
}

/// That there are no zones is read from a copy, which may be older than the machine.
#[test]
fn host_is_written_without_data_after_a_live_read_of_the_zones_only() {
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let case = |is_live| {
        Case::new()
            .machine(json!({ "spec": { "dataTemplate": null } }))
            .host(json!({ "spec": { "consumerRef": consumer.clone() } }))
            .with(|case| (case.confirmed, case.clusters_are_live) = (true, is_live))
    };
    assert_eq!(
        case(false).decide(),
        Plan::reading(Reads::Metal3Cluster("edge".to_owned()))
    );
    let plan = case(true).decide();
    assert!(
        writes(&plan).iter().any(|one| one.starts_with("Provision")),
        "{:?}",
        writes(&plan)
    );
    let own = json!({ "metaData": { "name": "own" }, "networkData": { "name": "own" } });
    let named = case(false).machine(json!({ "spec": own })).decide();
    assert_eq!(named.reads, Reads::Nothing, "the user gave data");
    let part = case(false).machine(json!({ "spec": { "metaData": { "name": "own" } } }));
    let read = Plan::reading(Reads::Metal3Cluster("edge".to_owned()));
    assert_eq!(part.decide(), read, "its network is that of the zone");
}

/// The claim fixes the name of the template, so a wrong one could not be corrected afterwards.
#[test]
fn no_host_is_claimed_while_the_template_of_a_zone_is_missing() {
    let absent = || Observed::Absent;
    let unknown = || Observed::Unknown(UnknownReason::Unreadable("odd".to_owned()));
    let case = |state: Observed<()>| {
        // The condition of the Metal3Cluster may be of an older generation.
        let found = json!([{ "type": "DeploymentZonesReady", "status": "True", "reason": "DataTemplatesFound",
            "lastTransitionTime": "2026-11-28T00:00:00Z", "message": "" }]);
        let cluster = json!({ "spec": { "deploymentZones": zones() }, "status": { "conditions": found } });
        labelled(Case::new().metal3_cluster(cluster), &json!({ "rack": "7" }))
            .machine(json!({ "spec": { "dataTemplate": null } }))
            .with(|case| case.bad_template = Some(("net-a", state)))
    };
    for (state, why) in [
        (absent(), "does not exist; create it, or correct the name"),
        (unknown(), "cannot be read: odd"),
    ] {
        let plan = case(state).decide();
        assert_eq!(writes(&plan), Vec::<String>::new());
        let message = condition_of(&plan, "AssociateBareMetalHost").1;
        let field = "Metal3Cluster edge: spec.deploymentZones[a].dataTemplate: Metal3DataTemplate net-a ";
        assert!(message.starts_with(field) && message.contains(why), "{message}");
    }
    // The host was claimed by an earlier process: the name is not fixed either.
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let claimed = case(absent())
        .machine(json!({ "metadata": { "annotations": { "metal3.io/BareMetalHost": "metal/h0" } } }))
        .host(json!({ "spec": { "consumerRef": consumer } }))
        .with(|case| case.confirmed = true);
    assert_eq!(templates(&claimed.decide()), (None, None));
    assert_eq!(
        templates(&case(Observed::Present(())).decide()).1.as_deref(),
        Some("net-a")
    );
    let own = case(absent()).machine(json!({ "spec": { "dataTemplate": { "name": "own", "namespace": "metal" } } }));
    assert!(!writes(&own.decide()).is_empty());
}

/// No controller writes the status of one that is paused or served by another manager: no machine waits for it.
#[test]
fn host_is_claimed_without_a_condition_of_the_metal3_cluster() {
    let plan = labelled(case(zones()), &json!({ "rack": "7" })).decide();
    assert_eq!(templates(&plan).1.as_deref(), Some("net-a"));
}

/// Zones appear in a Cluster that runs: its machines keep what they have.
#[test]
fn machine_that_runs_without_data_template_gets_none_from_a_new_zone() {
    let zoned = json!({ "spec": { "deploymentZones": zones() } });
    let running = labelled(Case::running(), &json!({ "rack": "7" }))
        .metal3_cluster(zoned.clone())
        .machine(json!({ "spec": { "dataTemplate": null }, "status": { "renderedData": null } }))
        .with(|case| case.nodes = Some(vec![("node-0", "", UID, "")]));
    let plan = running.decide();
    assert_eq!(templates(&plan), (None, None));
    assert_eq!(failure_domain(&plan), Some("a".to_owned()));
    let waiting = labelled(Case::running().host(blank()), &json!({ "rack": "7" }))
        .metal3_cluster(zoned)
        .machine(json!({ "spec": { "dataTemplate": null }, "status": { "renderedData": null } }));
    assert_eq!(templates(&waiting.decide()).1.as_deref(), Some("net-a"));
}

#[test]
fn zone_that_cannot_be_used_is_named_with_field_and_remedy() {
    let selector = json!({ "matchExpressions": [{ "key": "rack", "operator": "about", "values": [] }] });
    for (zone, field) in [
        (json!({ "name": "a", "hostSelector": selector }), "[a].hostSelector: "),
        (
            json!({ "name": "a", "dataTemplate": { "name": "" } }),
            "[a].dataTemplate.name: it is missing",
        ),
        (
            json!({ "name": "b", "dataTemplate": { "name": "t", "namespace": "kube-system" } }),
            "[b].dataTemplate.namespace: it must be metal",
        ),
    ] {
        let plan = labelled(case(json!([zone])), &json!({ LABEL: "a" })).decide();
        let (reason, message) = condition_of(&plan, "AssociateBareMetalHost");
        assert_eq!(
            (writes(&plan).len(), reason.as_str()),
            (0, "AssociateBareMetalHostFailed"),
            "{zone}"
        );
        let expected = format!("Metal3Cluster edge: spec.deploymentZones{field}");
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// The label of the host is what Cluster API reads when there are no zones.
#[test]
fn failure_domain_in_the_status_is_that_of_the_host() {
    for (labels, domain) in [
        (json!({ LABEL: "rack9" }), Some("rack9")),
        (json!({ LABEL: "" }), None),
        (json!({}), None),
    ] {
        let plan = labelled(Case::new(), &labels).decide();
        assert_eq!(failure_domain(&plan).as_deref(), domain, "{labels}");
    }
}

/// A Cluster of other infrastructure with the Metal3Clusters `north` and `south`.
fn sites(north: Value, south: Value) -> Case {
    let site = |name: &str, mut spec: Value| -> Metal3Cluster {
        spec["clusterName"] = json!(CLUSTER);
        from_value(json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec })).unwrap()
    };
    Case::new().with(|case| {
        let infrastructure = case.cluster.as_mut().unwrap().spec.infrastructure_ref.as_mut();
        "ByoCluster".clone_into(&mut infrastructure.unwrap().kind);
        case.metal3_clusters = vec![site("north", north), site("south", south)];
    })
}

/// A site has hosts of its own: a machine without a failure domain does not take those of another, nor one whose site is full.
#[test]
fn host_of_another_site_is_not_taken() {
    let domain = |name: &str| json!({ "failureDomains": [{ "name": name }] });
    let zone = json!({ "deploymentZones": [{ "name": "x", "hostSelector": { "matchLabels": { "rack": "s" } } }] });
    for (south, wanted, labels, is_taken) in [
        (domain("s"), None, json!({ LABEL: "s" }), false),
        (domain("s"), Some("n"), json!({ LABEL: "s" }), false),
        (domain("s"), None, json!({ LABEL: "n" }), true),
        (domain("s"), Some("n"), json!({ LABEL: "elsewhere" }), true),
        (domain("n"), None, json!({ LABEL: "n" }), true),
        (zone, None, json!({ "rack": "s" }), false),
    ] {
        let case = sites(domain("n"), south)
            .machine(json!({ "spec": { "metal3ClusterRef": { "name": "north" } } }))
            .with(|case| case.owner.as_mut().unwrap().spec.failure_domain = wanted.map(str::to_owned));
        let plan = labelled(case, &labels).decide();
        let takes = writes(&plan).iter().any(|one| one.starts_with("Claim"));
        assert_eq!(takes, is_taken, "{wanted:?} {labels}: {:?}", writes(&plan));
        let message = condition_of(&plan, "AssociateBareMetalHost").1;
        let says = message.contains("1 hosts of another Metal3Cluster of the Cluster");
        assert_eq!(says, !is_taken, "{message}");
    }
}

/// Zones change, and a move drops the status: what the failure domain decided is recorded with the host.
#[test]
fn site_that_the_failure_domain_decided_is_recorded_in_the_machine() {
    let zone = |name: &str| json!({ "deploymentZones": [{ "name": name }] });
    let recorded = |plan: &Plan| {
        plan.actions.iter().find_map(|action| match action {
            Action::PatchMachine(patch) => patch
                .clone()
                .into_document()
                .pointer("/spec/metal3ClusterRef/name")
                .cloned(),
            _ => None,
        })
    };
    let of_n = |case: Case| case.with(|case| case.owner.as_mut().unwrap().spec.failure_domain = Some("n".to_owned()));
    let plan = labelled(of_n(sites(zone("n"), zone("s"))), &json!({ LABEL: "n" })).decide();
    assert_eq!(recorded(&plan), Some(json!("north")));
    // A machine that runs, and has no failure domain: a second site joined.
    let running = sites(zone("n"), zone("s"))
        .machine(json!({
            "metadata": { "annotations": { "metal3.io/BareMetalHost": "metal/h0" } }, "status": { "metal3Cluster": "north" },
        }))
        .host(json!({ "spec": { "consumerRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
        } } }));
    assert_eq!(recorded(&running.decide()), Some(json!("north")));
    // One alone needs no record.
    let alone = of_n(sites(zone("n"), zone("s"))).with(|case| drop(case.metal3_clusters.pop()));
    let plan = labelled(alone, &json!({ LABEL: "n" })).decide();
    assert!(writes(&plan).iter().any(|one| one.starts_with("Claim")));
    assert_eq!(recorded(&plan), None);
}

/// What it is written with is recorded with the claim; the server may be moved while that is awaited.
#[test]
fn host_that_left_the_required_failure_domain_is_not_written() {
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": "metal",
    });
    let own = json!({ "spec": { "metaData": { "name": "own" }, "networkData": { "name": "own" } } });
    for (policy, rack, is_written) in [
        ("Required", "7", true),
        ("Required", "8", false),
        ("Preferred", "8", true),
    ] {
        let plan = labelled(case(zones()), &json!({ "rack": rack }))
            .metal3_cluster(json!({ "spec": { "failureDomainPolicy": policy } }))
            .machine(own.clone())
            .host(json!({ "spec": { "consumerRef": consumer } }))
            .with(|case| case.confirmed = true)
            .decide();
        let writes_image = writes(&plan).iter().any(|one| one.starts_with("Provision"));
        assert_eq!(writes_image, is_written, "{policy} {rack}: {:?}", writes(&plan));
    }
    // The template of the rack that it is in now is not fixed either.
    let moved = labelled(case(zones()), &json!({ LABEL: "b" }))
        .metal3_cluster(json!({ "spec": { "failureDomainPolicy": "Required" } }))
        .host(json!({ "spec": { "consumerRef": consumer } }))
        .with(|case| case.confirmed = true)
        .decide();
    assert_eq!(templates(&moved), (None, None));
    assert!(
        condition_of(&moved, "AssociateMetal3MachineMetaData")
            .1
            .contains("not in failure domain a any more")
    );
}

#[test]
fn template_missing_in_another_zone_holds_back_no_machine_that_must_stay_in_its_own() {
    for (policy, is_held) in [("Required", false), ("Preferred", true)] {
        let plan = labelled(case(zones()), &json!({ "rack": "7" }))
            .metal3_cluster(json!({ "spec": { "failureDomainPolicy": policy } }))
            .with(|case| case.bad_template = Some(("net-b", Observed::Absent)))
            .decide();
        assert_eq!(writes(&plan).is_empty(), is_held, "{policy}: {:?}", writes(&plan));
    }
}

#[test]
fn metal3_cluster_that_does_not_exist_is_named_with_its_field() {
    let named = Case::new().machine(json!({ "spec": { "metal3ClusterRef": { "name": "nroth" } } }));
    let without = |kind: &str| {
        let kind = kind.to_owned();
        Case::new().with(|case| {
            case.metal3_clusters.clear();
            case.cluster
                .as_mut()
                .unwrap()
                .spec
                .infrastructure_ref
                .as_mut()
                .unwrap()
                .kind = kind;
        })
    };
    for (case, expected) in [
        (named, "spec.metal3ClusterRef.name: there is no Metal3Cluster nroth; "),
        (
            without("Metal3Cluster"),
            "there is no Metal3Cluster edge, which Cluster edge names; ",
        ),
        (
            without("ByoCluster"),
            "no Metal3Cluster belongs to Cluster edge; set spec.clusterName",
        ),
    ] {
        let message = condition_of(&case.decide(), "AssociateBareMetalHost").1;
        assert!(message.starts_with(expected), "{message}");
    }
}
