//! Deployment zones: which hosts a machine gets, and where its data come from.

use metal3_api::infrastructure::v1beta2::Metal3Cluster;

use super::*;

/// A Metal3Cluster with zones: by selectors, by label, and one whose selector cannot be read.
fn racks() -> Metal3Cluster {
    let zones = json!([
        { "name": "a", "hostSelector": { "matchLabels": { "rack": "7" } }, "dataTemplate": { "name": "net-a" } },
        { "name": "b", "dataTemplate": { "name": "net-b" } },
        { "name": "bare", "hostSelector": { "inNamespace": "other" } },
        { "name": "odd", "hostSelector": { "matchExpressions": [{ "key": "rack", "operator": "about", "values": [] }] } },
        { "name": "fast", "hostSelector": { "matchExpressions": [{ "key": "gpu", "operator": "in", "values": ["1"] }] } },
    ]);
    serde_json::from_value(json!({ "metadata": { "name": "edge" }, "spec": { "deploymentZones": zones } })).unwrap()
}

#[test]
fn zone_has_the_hosts_of_its_selector_or_those_with_its_name_in_their_label() {
    let key = "infrastructure.cluster.x-k8s.io/failure-domain";
    let cluster = racks();
    let zones = Zones::of(&cluster);
    let both = host("both", json!({ "metadata": { "labels": { "rack": "7", key: "b" } } }));
    for (host, preferred, zone) in [
        (labelled("h", "rack", "7"), None, Some("a")),
        (labelled("h", key, "b"), None, Some("b")),
        (labelled("h", "gpu", "1"), None, Some("fast")),
        // Its selector decides, not the label.
        (labelled("h", key, "a"), None, None),
        (labelled("h", key, "elsewhere"), None, None),
        // A selector without conditions selects nothing: the label decides.
        (labelled("h", key, "bare"), None, Some("bare")),
        (both.clone(), None, Some("a")),
        (both.clone(), Some("b"), Some("b")),
        (both, Some("elsewhere"), Some("a")),
    ] {
        let found = zones.of_host(&host, preferred).map(|zone| zone.name.as_str());
        assert_eq!(found, zone, "{:?} {preferred:?}", host.metadata.labels);
    }
    assert!(
        zones.has("elsewhere", &labelled("h", key, "elsewhere")),
        "no zone: the label decides"
    );
    assert!(zones.unreadable("odd").is_some() && zones.unreadable("a").is_none());
}

/// The chosen host and whether it is in the machine's domain, or why there is none.
fn chosen_of_racks(spec: Value, is_required: bool, hosts: &[BareMetalHost]) -> Result<(String, bool), String> {
    let (mut cluster, machine) = (racks(), machine(spec));
    cluster.spec.failure_domain_policy = is_required.then_some(FailureDomainPolicy::Required);
    let chooser = HostChooser::try_new(&machine, None).unwrap();
    let chooser = chooser.with_sites(&cluster, []);
    match chooser.choose(hosts) {
        Choice::Take { host, is_in_domain, .. } => Ok((host.metadata.name.clone().unwrap_or_default(), is_in_domain)),
        Choice::None(refusals) => Err(refusals.to_string()),
        Choice::Own(_) => panic!("no host has a consumer"),
    }
}

#[test]
fn host_outside_of_the_zone_is_taken_where_another_zone_has_a_data_template_for_it() {
    let key = "infrastructure.cluster.x-k8s.io/failure-domain";
    let (in_a, in_b, nowhere) = (
        labelled("in-a", "rack", "7"),
        labelled("in-b", key, "b"),
        labelled("nowhere", key, "c"),
    );
    let bare = labelled("bare", key, "bare");
    let all = [in_a, in_b.clone(), nowhere.clone()];
    let of_a = || json!({ "failureDomain": "a" });
    assert_eq!(chosen_of_racks(of_a(), false, &all), Ok(("in-a".to_owned(), true)));
    assert_eq!(
        chosen_of_racks(of_a(), false, std::slice::from_ref(&in_b)),
        Ok(("in-b".to_owned(), false))
    );
    let strict = chosen_of_racks(of_a(), true, &[in_b]).unwrap_err();
    assert!(
        strict.contains("not in failure domain a, which is required (hostSelector of the deployment zone)"),
        "{strict}"
    );
    let lost = std::slice::from_ref(&nowhere);
    let refused = chosen_of_racks(of_a(), false, lost).unwrap_err();
    assert!(
        refused.contains("in no deployment zone with a data template"),
        "{refused}"
    );
    // Its data are its own, or it is in a zone that needs none.
    let own = json!({ "failureDomain": "a", "metaData": { "name": "m" }, "networkData": { "name": "n" } });
    let odd = std::slice::from_ref(&bare);
    for (spec, hosts) in [
        (json!({ "failureDomain": "a", "dataTemplate": { "name": "own" } }), lost),
        (own, lost),
        (json!({ "failureDomain": "bare" }), odd),
        (json!({}), odd),
    ] {
        let found = chosen_of_racks(spec.clone(), false, hosts);
        assert!(found.is_ok(), "{spec}: {found:?}");
    }
    // Without a domain, or in one that is no zone (any more), the network of such a host is as unknown.
    for (spec, hosts) in [
        (json!({}), lost),
        (json!({ "failureDomain": "c" }), lost),
        (json!({ "failureDomain": "a", "metaData": { "name": "m" } }), lost),
        (json!({ "failureDomain": "a" }), odd),
    ] {
        let refused = chosen_of_racks(spec.clone(), false, hosts).unwrap_err();
        assert!(
            refused.contains("in no deployment zone with a data template"),
            "{spec}: {refused}"
        );
    }
}
