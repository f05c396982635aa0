//! Cases that the examples of the infrastructure kinds do not cover: kept values and the limits of rows.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use metal3_api::catalog;
use metal3_api::rules::{Decision, Operation, Reviewer};
use serde_json::{Value, json};

fn reviewer(kind: &str) -> Reviewer {
    let mut reviewers = catalog::reviewers().into_iter();
    reviewers.find(|reviewer| reviewer.kind == kind).unwrap()
}

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": { "name": "x", "namespace": "metal" }, "spec": spec,
    })
}

fn create(kind: &str, spec: &Value) -> Decision {
    (reviewer(kind).review)(Operation::Create, None, Some(&object(kind, spec))).unwrap()
}

fn rules(decision: &Decision) -> Vec<&'static str> {
    decision.findings.iter().map(|finding| finding.rule).collect()
}

fn defaulted(kind: &str, spec: &Value) -> Value {
    (reviewer(kind).set_defaults)(&object(kind, spec)).unwrap()["spec"].clone()
}

#[test]
fn an_endpoint_keeps_its_port_and_an_absent_endpoint_stays_absent() {
    let endpoint = |port: i32| json!({ "host": "192.0.2.249", "port": port });
    for (given, expected) in [(0, 6443), (6443, 6443), (443, 443)] {
        let spec = defaulted("Metal3Cluster", &json!({ "controlPlaneEndpoint": endpoint(given) }));
        assert_eq!(spec["controlPlaneEndpoint"], endpoint(expected));
    }
    assert_eq!(
        defaulted("Metal3Cluster", &json!({})),
        json!({ "cloudProviderEnabled": false })
    );
}

#[test]
fn a_strategy_keeps_its_values_and_empty_counts_as_absent() {
    let template = |strategy: &Value| json!({ "template": { "spec": { "strategy": strategy } } });
    let usual = json!({ "type": "Reboot", "retryLimit": 1, "timeoutSeconds": 600 });
    for (given, expected) in [
        (json!({}), usual.clone()),
        (json!({ "type": "", "retryLimit": 0, "timeoutSeconds": 0 }), usual),
        (
            json!({ "type": "Replace", "retryLimit": 2, "timeoutSeconds": 7 }),
            json!({ "type": "Replace", "retryLimit": 2, "timeoutSeconds": 7 }),
        ),
    ] {
        let kind = "Metal3RemediationTemplate";
        assert_eq!(defaulted(kind, &template(&given)), template(&expected), "{given}");
    }
}

#[test]
fn a_deploy_step_without_a_name_does_not_replace_an_image() {
    let decision = create("Metal3Machine", &json!({ "customDeploy": { "method": "" } }));
    assert_eq!(rules(&decision), ["image-complete"]);
}

#[test]
fn image_of_a_machine_that_nothing_verifies_is_accepted_with_a_warning() {
    let (md5, sha) = ("0123456789abcdef0123456789abcdef", "0".repeat(64));
    let (http, https) = ("http://192.0.2.9/os", "https://192.0.2.9/os");
    for (image, found) in [
        (json!({ "url": http, "checksum": sha }), None),
        (json!({ "url": https, "checksum": https }), None),
        (json!({ "url": "oci://192.0.2.9/os" }), None),
        (
            json!({ "url": https, "checksum": md5 }),
            Some(("image-checksum-strong", "checksum")),
        ),
        (
            json!({ "url": https, "checksum": https, "checksumType": "md5" }),
            Some(("image-checksum-strong", "checksum")),
        ),
        (
            json!({ "url": http, "checksum": http }),
            Some(("image-verified", "checksum")),
        ),
        (
            json!({ "url": http, "diskFormat": "live-iso", "checksum": sha }),
            Some(("image-verified", "url")),
        ),
        (
            json!({ "url": https, "diskFormat": "live-iso" }),
            Some(("image-verified", "url")),
        ),
    ] {
        let with_step = json!({ "image": image, "customDeploy": { "method": "install" } });
        for spec in [json!({ "image": image }), with_step] {
            let template = json!({ "template": { "spec": spec } });
            for (kind, spec, path) in [
                ("Metal3Machine", spec, "spec.image"),
                ("Metal3MachineTemplate", template, "spec.template.spec.image"),
            ] {
                let decision = create(kind, &spec);
                assert!(decision.allowed(), "{kind} {spec}");
                let findings = decision.findings.iter();
                let findings = findings.map(|finding| (finding.rule, finding.path.to_string()));
                let expected = found.map(|(rule, member)| (rule, format!("{path}.{member}")));
                assert_eq!(Vec::from_iter(findings), Vec::from_iter(expected), "{kind} {spec}");
            }
        }
    }
}

/// The paths of warnings of changes that are not taken over.
fn not_taken_over(kind: &str, old: &Value, new: &Value) -> Vec<String> {
    let decision = (reviewer(kind).review)(Operation::Update, Some(old), Some(new)).unwrap();
    assert!(decision.allowed(), "{new}");
    let all = decision.findings.iter();
    let findings = all.filter(|finding| finding.rule == "changed-in-place");
    findings.map(|finding| finding.path.to_string()).collect()
}

#[test]
fn change_that_existing_machines_do_not_take_over_is_named() {
    let image = |name: &str| json!({ "url": format!("https://images/{name}"), "checksum": "https://images/os.sums" });
    let old = || json!({ "image": image("old") });
    let with = |name: &str, value: Value| {
        let mut spec = old();
        spec[name] = value;
        spec
    };
    for (new, member) in [
        (with("image", image("new")), Some("image")),
        (
            with("customDeploy", json!({ "method": "install" })),
            Some("customDeploy"),
        ),
        (
            with("hostSelector", json!({ "matchLabels": { "a": "b" } })),
            Some("hostSelector"),
        ),
        (with("dataTemplate", json!({ "name": "t" })), Some("dataTemplate")),
        (with("metaData", json!({ "name": "s" })), Some("metaData")),
        (with("networkData", json!({ "name": "s" })), Some("networkData")),
        (with("automatedCleaningMode", json!("disabled")), None),
    ] {
        let template = |spec: &Value| object("Metal3MachineTemplate", &json!({ "template": { "spec": spec } }));
        let machine = |spec: &Value, change: Value| {
            let mut machine = object("Metal3Machine", spec);
            for (member, value) in change.as_object().unwrap() {
                machine[member] = value.clone();
            }
            machine
        };
        let provisioned = || json!({ "status": { "initialization": { "provisioned": true } } });
        let expected = |path: &str| Vec::from_iter(member.map(|member| format!("{path}.{member}")));
        assert_eq!(
            not_taken_over("Metal3MachineTemplate", &template(&old()), &template(&new)),
            expected("spec.template.spec")
        );
        let is_changed = |change: Value| {
            not_taken_over(
                "Metal3Machine",
                &machine(&old(), change.clone()),
                &machine(&new, change),
            )
        };
        assert_eq!(is_changed(provisioned()), expected("spec"));
        assert_eq!(is_changed(json!({})), [""; 0], "it has no host");
        let annotations = json!({ "metal3.io/BareMetalHost": "metal/h0" });
        let with_host = json!({ "metadata": { "name": "x", "namespace": "metal", "annotations": annotations } });
        assert_eq!(
            is_changed(with_host),
            expected("spec"),
            "its host may have the image already"
        );
        let annotations = json!({ "in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "" });
        let updated = json!({ "metadata": { "name": "x", "namespace": "metal", "annotations": annotations },
            "status": provisioned()["status"] });
        assert_eq!(is_changed(updated), [""; 0], "Cluster API updates it");
    }
}

#[test]
fn members_of_a_cluster_without_effect_are_named_with_the_fix() {
    let endpoint = json!({ "host": "192.0.2.249", "port": 6443 });
    for (member, value) in [
        ("identityRef", json!({ "name": "elsewhere" })),
        ("hostAPI", json!("HostClaim")),
        (
            "deploymentZones",
            json!([{ "name": "rack1", "hostNamespace": "other" }]),
        ),
    ] {
        let spec = json!({ "controlPlaneEndpoint": endpoint, member: value });
        for (kind, spec) in [
            ("Metal3Cluster", spec.clone()),
            // It has no status: nothing else can tell.
            ("Metal3ClusterTemplate", json!({ "template": { "spec": spec } })),
        ] {
            let warnings = create(kind, &spec).warnings();
            assert!(
                warnings.iter().any(|one| one.contains(member)),
                "{kind} {member}: {warnings:?}"
            );
        }
    }
}

/// A template may be in another namespace than the clusters made from it.
#[test]
fn data_template_of_a_zone_is_in_the_namespace_of_the_cluster() {
    for (namespace, cluster, template) in [
        (json!(null), None, None),
        (json!(""), None, None),
        (json!("metal"), None, Some("zone-data-template-without-namespace")),
        (
            json!("other"),
            Some("zone-data-template-in-own-namespace"),
            Some("zone-data-template-without-namespace"),
        ),
    ] {
        let zone = json!({ "name": "a", "dataTemplate": { "name": "net", "namespace": namespace } });
        let endpoint = json!({ "host": "192.0.2.249", "port": 6443 });
        let spec = json!({ "controlPlaneEndpoint": endpoint, "deploymentZones": [zone] });
        assert_eq!(
            rules(&create("Metal3Cluster", &spec)),
            Vec::from_iter(cluster),
            "{spec}"
        );
        let of_class = json!({ "template": { "spec": spec } });
        assert_eq!(
            rules(&create("Metal3ClusterTemplate", &of_class)),
            Vec::from_iter(template),
            "{spec}"
        );
    }
}

#[test]
fn members_of_a_machine_without_effect_are_named_with_the_fix() {
    let image = json!({ "url": "https://images/os.raw", "checksum": "https://images/os.sums" });
    let with = |name: &str, value: Value| json!({ "image": image, name: value });
    let selector = |namespace: Value| {
        with(
            "hostSelector",
            json!({ "inNamespace": namespace, "matchLabels": { "a": "b" } }),
        )
    };
    for (spec, member) in [
        (
            with("userData", json!({ "name": "u" })),
            "userData has no effect: the bootstrap data",
        ),
        (
            with("identityRef", json!({ "name": "i" })),
            "identityRef has no effect yet: hosts of another cluster",
        ),
        (
            selector(json!("other")),
            "hostSelector.inNamespace has no effect yet: hosts of other namespaces",
        ),
    ] {
        for (kind, spec) in [
            ("Metal3Machine", spec.clone()),
            ("Metal3MachineTemplate", json!({ "template": { "spec": spec } })),
        ] {
            let decision = create(kind, &spec);
            assert_eq!(
                (decision.allowed(), rules(&decision)),
                (true, vec!["members-effective"]),
                "{spec}"
            );
            let [warning] = decision.warnings().try_into().unwrap();
            assert!(warning.contains(member) && warning.contains("; remove it"), "{warning}");
        }
    }
    assert_eq!(rules(&create("Metal3Machine", &selector(Value::Null))), [""; 0]);
    let foreign = with("userData", json!({ "name": "u", "namespace": "other" }));
    assert!(rules(&create("Metal3Machine", &foreign)).contains(&"secrets-in-own-namespace"));
}

#[test]
fn a_pool_without_a_name_counts_as_absent() {
    for source in [
        json!({ "ipAddressFromIPPool": "" }),
        json!({ "fromPoolRef": { "name": "" } }),
    ] {
        let mut network = json!({ "id": "a", "link": "eth0" });
        network
            .as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        let spec = json!({ "networkData": { "networks": { "ipv4": [network] } } });
        assert_eq!(
            rules(&create("Metal3DataTemplate", &spec)),
            ["network-has-a-pool"],
            "{source}"
        );
    }
}

#[test]
fn members_of_an_endpoint_source_belong_to_one_type_each() {
    let service = json!({ "name": "apiserver" });
    let pool = json!({ "name": "vips" });
    let object = json!({ "apiGroup": "g", "kind": "K", "name": "n" });
    for (source, found) in [
        (json!({ "type": "Service", "service": service }), vec![]),
        (json!({ "type": "IPPool", "ipPool": pool }), vec![]),
        (json!({ "type": "ControlPlane", "objectRef": object }), vec![]),
        (json!({ "type": "InfraCluster", "objectRef": object }), vec![]),
        (json!({ "type": "Service" }), vec!["service: Required value"]),
        (json!({ "type": "IPPool" }), vec!["ipPool: Required value"]),
        (json!({ "service": service }), vec!["service: Forbidden"]),
        (json!({ "type": "Cluster", "ipPool": pool }), vec!["ipPool: Forbidden"]),
        (
            json!({ "type": "Cluster", "objectRef": object }),
            vec!["objectRef: Forbidden"],
        ),
    ] {
        let spec = json!({ "clusterName": "c", "controlPlaneEndpointSource": source });
        let decision = create("Metal3Cluster", &spec);
        let texts: Vec<String> = decision.findings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), found.len(), "{source}: {texts:?}");
        for (text, found) in texts.iter().zip(found) {
            let found = format!("spec.controlPlaneEndpointSource.{found}");
            assert!(text.starts_with(&found), "{source}: {text}");
        }
    }
}
