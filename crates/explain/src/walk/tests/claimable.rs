//! Which host is the cause when a machine can claim none: those are not that the controller never gives it.

use super::causes::{deleting, with};
use super::*;

/// The chooser takes no free host while one is kept for the set.
#[test]
fn machine_waits_for_the_host_that_is_kept_for_its_set() {
    let of_set =
        json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "workers" }, "annotations": null } });
    let machine = with(
        metal3_machine(
            "m0",
            ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
        ),
        of_set,
    );
    let kept = |set: &str| {
        json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": set } },
            "status": { "provisioning": { "state": "deprovisioning" } } })
    };
    let free = host("h0", failed("registration error"));
    let own = host("h1", kept("md-workers"));
    assert_end(
        "m3m/m0",
        &[machine.clone(), free, own],
        ("BareMetalHost/h1 Deprovisioning", State::Waiting),
    );
    let other = host("h1", kept("md-others"));
    let end = ("Metal3Machine/m0 AssociateBareMetalHostFailed", State::Blocked);
    assert_end("m3m/m0", &[machine.clone(), other], end);
    let gone = host("h0", deleting(failed("registration error")));
    assert_end("m3m/m0", &[machine, gone], end);
}

/// A machine that can claim no host, whose Machine states a failure domain.
fn in_domain(domain: &str) -> [Value; 2] {
    let waiting = metal3_machine(
        "m0",
        ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
    );
    let without_host = json!({ "metadata": { "annotations": null } });
    let owner = machine("m0", json!({ "spec": { "failureDomain": domain } }));
    [with(waiting, without_host), owner]
}

fn metal3_cluster(name: &str, spec: Value) -> Value {
    object(
        &format!("{INFRASTRUCTURE}/v1beta2"),
        "Metal3Cluster",
        name,
        json!({ "spec": spec }),
    )
}

fn in_rack(name: &str, rack: &str, change: Value) -> Value {
    let labels = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/failure-domain": rack } } });
    with(host(name, labels), change)
}

/// The machine itself, whose message names the domain.
const REFUSED: (&str, State) = ("Metal3Machine/m0 AssociateBareMetalHostFailed", State::Blocked);
const FAILED: (&str, State) = ("BareMetalHost/h0 RegistrationError", State::Blocked);

#[test]
fn host_outside_of_a_required_failure_domain_is_not_the_cause() {
    let required = metal3_cluster("edge", json!({ "failureDomainPolicy": "Required" }));
    let preferred = metal3_cluster("edge", json!({}));
    let of = |policy: &Value, domain: &str, hosts: &[Value]| {
        let machine = in_domain(domain);
        [&machine, &[cluster(json!({})), policy.clone(), secret()][..], hosts].concat()
    };
    let elsewhere = in_rack("h0", "b", failed("registration error"));
    let near = in_rack(
        "h1",
        "a",
        json!({ "status": { "provisioning": { "state": "inspecting" } } }),
    );
    let one = std::slice::from_ref(&elsewhere);
    assert_end("m3m/m0", &of(&required, "a", one), REFUSED);
    assert_end("m3m/m0", &of(&required, "b", one), FAILED);
    assert_end("m3m/m0", &of(&required, "", one), FAILED);
    assert_end("m3m/m0", &of(&preferred, "a", one), FAILED);
    for policy in [&required, &preferred] {
        let both = [elsewhere.clone(), near.clone()];
        let end = ("BareMetalHost/h1 Inspecting", State::Waiting);
        assert_end("m3m/m0", &of(policy, "a", &both), end);
    }
    let kept = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers" } },
        "status": { "provisioning": { "state": "deprovisioning" } } });
    let mut objects = of(&required, "a", &[in_rack("h0", "b", kept)]);
    merge(
        &mut objects[0],
        json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "workers" } } }),
    );
    assert_end("m3m/m0", &objects, REFUSED);
}

/// The policy is that of the Metal3Cluster that the controller takes.
#[test]
fn policy_is_that_of_the_metal3_cluster_of_the_machine() {
    let other = json!({ "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" } } });
    let required = |name: &str, cluster: &str| {
        let labels = json!({ "metadata": { "labels": null } });
        let spec = json!({ "clusterName": cluster, "failureDomainPolicy": "Required" });
        with(metal3_cluster(name, spec), labels)
    };
    let of = |clusters: &[Value]| {
        let host = in_rack("h0", "b", failed("registration error"));
        [&in_domain("a")[..], &[cluster(other.clone()), secret(), host], clusters].concat()
    };
    assert_end("m3m/m0", &of(&[required("x", "edge")]), REFUSED);
    assert_end("m3m/m0", &of(&[required("x", "another")]), FAILED);
    let mut objects = of(&[
        required("x", "edge"),
        metal3_cluster("y", json!({ "clusterName": "edge" })),
    ]);
    merge(
        &mut objects[0],
        json!({ "spec": { "metal3ClusterRef": { "name": "x" } } }),
    );
    assert_end("m3m/m0", &objects, REFUSED);
}

/// Of two that joined, the failure domain decides.
#[test]
fn policy_is_that_of_the_metal3_cluster_with_the_failure_domain() {
    let other = json!({ "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" } } });
    let site = |name: &str, policy: &str, zones: Value| {
        let spec = json!({ "clusterName": "edge", "failureDomainPolicy": policy, "deploymentZones": zones });
        metal3_cluster(name, spec)
    };
    let of = |x: Value, y: Value| {
        let host = in_rack("h0", "c", failed("registration error"));
        let sites = [site("x", "Required", x), site("y", "Preferred", y)];
        [&in_domain("a")[..], &[cluster(other.clone()), secret(), host], &sites].concat()
    };
    let zone = |name: &str| json!([{ "name": name }]);
    assert_end("m3m/m0", &of(zone("a"), zone("b")), REFUSED);
    assert_end("m3m/m0", &of(zone("b"), zone("a")), FAILED);
    assert_end("m3m/m0", &of(zone("a"), zone("a")), FAILED);
}

/// The controller gives no host without a network to a machine whose data come from the zones.
#[test]
fn host_outside_of_the_zones_that_give_the_data_is_not_the_cause() {
    let zone = |name: &str, template: Value| json!({ "name": name, "dataTemplate": template });
    let named = || json!({ "name": "net" });
    let template = json!({ "spec": { "dataTemplate": named() } });
    let secrets = json!({ "spec": { "metaData": named(), "networkData": named() } });
    for (zones, domain, rack, machine, end) in [
        (vec![zone("a", named())], "a", "b", json!({}), REFUSED),
        (vec![zone("a", named())], "", "b", json!({}), REFUSED),
        (vec![zone("a", named())], "", "a", json!({}), FAILED),
        (
            vec![zone("a", named()), zone("b", named())],
            "a",
            "b",
            json!({}),
            FAILED,
        ),
        (
            vec![zone("a", named()), zone("b", Value::Null)],
            "a",
            "b",
            json!({}),
            REFUSED,
        ),
        (
            vec![zone("a", named()), zone("b", Value::Null)],
            "b",
            "b",
            json!({}),
            FAILED,
        ),
        (vec![zone("a", Value::Null)], "a", "b", json!({}), FAILED),
        (vec![zone("a", named())], "a", "b", template, FAILED),
        (vec![zone("a", named())], "a", "b", secrets, FAILED),
    ] {
        let zoned = metal3_cluster("edge", json!({ "deploymentZones": zones }));
        let host = in_rack("h0", rack, failed("registration error"));
        let [waiting, owner] = in_domain(domain);
        let objects = [with(waiting, machine), owner, cluster(json!({})), zoned, secret(), host];
        assert_end("m3m/m0", &objects, end);
    }
}

/// The controller gives no machine a host of another site.
#[test]
fn host_of_another_site_is_not_the_cause() {
    let other = json!({ "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" } } });
    let site = |name: &str, cluster: &str, spec: Value| {
        let spec = with(spec, json!({ "clusterName": cluster }));
        with(metal3_cluster(name, spec), json!({ "metadata": { "labels": null } }))
    };
    let reported = |name: &str| json!({ "failureDomains": [{ "name": name }] });
    let zone = |name: &str| json!({ "deploymentZones": [{ "name": name }] });
    for (south, rack, end) in [
        (site("south", "edge", reported("b")), "b", REFUSED),
        (site("south", "edge", zone("b")), "b", REFUSED),
        (site("south", "edge", reported("b")), "a", FAILED),
        (site("south", "edge", reported("b")), "c", FAILED),
        (site("south", "edge", reported("a")), "a", FAILED),
        (site("south", "another", reported("b")), "b", FAILED),
    ] {
        let host = in_rack("h0", rack, failed("registration error"));
        let [mut machine, owner] = in_domain("");
        merge(
            &mut machine,
            json!({ "spec": { "metal3ClusterRef": { "name": "north" } } }),
        );
        let north = site("north", "edge", reported("a"));
        let objects = [machine, owner, cluster(other.clone()), secret(), host, north, south];
        assert_end("m3m/m0", &objects, end);
    }
}

/// It is not known whether the host would be refused.
#[test]
fn host_is_not_the_cause_while_the_policy_cannot_be_read() {
    let machine = in_domain("a");
    let host = in_rack("h0", "b", failed("registration error"));
    let objects = [&machine[..], &[cluster(json!({})), secret(), host]].concat();
    let explanation = explained(&objects, "m3m/m0", Some("Metal3Cluster"));
    assert_eq!(explanation.state, State::Unknown);
    assert_eq!(links(&explanation), [REFUSED.0]);
}

#[test]
fn host_that_a_user_withholds_or_deploys_is_not_the_cause() {
    for change in [
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/detached": "" } } }),
        json!({ "metadata": { "annotations": { "capi.metal3.io/unhealthy": "" } } }),
        json!({ "metadata": { "annotations": { "capm3.metal3.io/unhealthy": "" } } }),
        json!({ "spec": { "image": { "url": "http://192.0.2.1/i", "checksum": "c", "format": "raw" } } }),
        json!({ "spec": { "customDeploy": { "method": "install" } } }),
        json!({ "spec": { "externallyProvisioned": true } }),
        json!({ "status": { "operationalStatus": "detached" } }),
    ] {
        let host = with(host("h0", failed("registration error")), change.clone());
        let [machine, owner] = in_domain("");
        let explanation = explained(&[machine, owner, host], "m3m/m0", None);
        assert_eq!(links(&explanation), [REFUSED.0], "{change}");
    }
}

/// The set of another Cluster may have the same name, and one that fails is not awaited.
#[test]
fn kept_host_is_awaited_only_for_its_cluster_and_while_it_goes_on_alone() {
    let kept = |name: &str, cluster: &str, change: Value| {
        let kept = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers",
                "cluster.x-k8s.io/cluster-name": cluster } },
            "spec": { "consumerRef": { "kind": "Cluster", "name": cluster, "namespace": "lab" } },
            "status": { "provisioning": { "state": "deprovisioning" } } });
        with(with(host(name, json!({})), kept), change)
    };
    let [mut machine, owner] = in_domain("");
    merge(
        &mut machine,
        json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "workers" } } }),
    );
    let of = |hosts: &[Value]| [&[machine.clone(), owner.clone(), secret()][..], hosts].concat();
    let broken = json!({ "status": { "operationalStatus": "error", "errorType": "power management error", "errorMessage": "x" } });
    let end = ("BareMetalHost/h1 Deprovisioning", State::Waiting);
    let ours = kept("h1", "edge", json!({}));
    assert_end("m3m/m0", &of(&[kept("h0", "edge", broken), ours]), end);
    assert_end("m3m/m0", &of(&[kept("h0", "other", json!({}))]), REFUSED);
}
