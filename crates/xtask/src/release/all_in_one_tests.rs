//! Tests of the manifests of the all-in-one installation.

use std::collections::BTreeSet;

use serde_json::from_value;

use super::tests::{FORMS, IMAGE, assert_names, assert_runs, find, of_kind};
use super::*;

const HOME: &str = "metal3-system";

fn installed(form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::ALL_IN_ONE, IMAGE, form)
}

/// All members with this name, at any depth.
fn members<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(map) => {
            let own = map.get(name).into_iter();
            own.chain(map.values().flat_map(|child| members(child, name))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| members(item, name)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn all_kinds_and_webhooks_are_in_one_namespace_without_provider_label() {
    for form in FORMS {
        let documents = installed(form);
        let of = |kind: &str| of_kind(&documents, kind).count();
        assert_eq!(of("CustomResourceDefinition"), catalog::definitions().len());
        assert_eq!((of("Namespace"), of("Deployment"), of("Service")), (1, 1, 3));
        assert_names(&documents, HOME);
        assert!(
            !serde_json::to_string(&documents)
                .unwrap()
                .contains("cluster.x-k8s.io/provider")
        );
    }
}

#[test]
fn every_webhook_service_is_in_the_certificate() {
    let documents = installed(CertificateSource::Mounted);
    let certificate: Vec<String> = from_value(find(&documents, "Certificate")["spec"]["dnsNames"].clone()).unwrap();
    let mut asked = 0;
    for document in &documents {
        for client in members(document, "clientConfig") {
            let service = &client["service"];
            let host = format!(
                "{}.{}.svc",
                service["name"].as_str().unwrap(),
                service["namespace"].as_str().unwrap()
            );
            assert!(
                certificate.contains(&host),
                "{host} of {}",
                document["metadata"]["name"]
            );
            let injected = &document["metadata"]["annotations"][INJECTION_ANNOTATION];
            assert_eq!(injected, "metal3-system/metal3-serving-cert");
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
}

#[test]
fn the_arguments_are_valid_and_the_role_is_the_union_of_the_three() {
    for form in FORMS {
        let documents = installed(form);
        let pod = &find(&documents, "Deployment")["spec"]["template"]["spec"];
        assert_eq!(restricted::violated(pod), <[&str; 0]>::default());
        assert_runs(from_value::<Vec<String>>(pod["containers"][0]["args"].clone()).unwrap());
        let needs = |layout: &Layout| -> BTreeSet<_> {
            let granted = install::granted(layout, CertificateSource::Mounted);
            granted.into_iter().flat_map(|(_, needs)| needs).collect()
        };
        let sum: BTreeSet<_> = [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS]
            .iter()
            .flat_map(needs)
            .collect();
        assert_eq!(needs(&layout::ALL_IN_ONE), sum);
    }
}

/// The rules of the roles for all namespaces, by name.
fn cluster_roles(layout: &Layout, form: CertificateSource) -> BTreeMap<String, Value> {
    let documents = documents_of(layout, IMAGE, form);
    of_kind(&documents, "ClusterRole")
        .map(|role| {
            (
                role["metadata"]["name"].as_str().unwrap().to_owned(),
                role["rules"].clone(),
            )
        })
        .collect()
}

#[test]
fn each_product_has_the_role_that_it_has_alone() {
    for form in FORMS {
        let roles = cluster_roles(&layout::ALL_IN_ONE, form);
        for (product, name, layout) in [
            ("metal3-ipam-manager-role", "ipam-manager-role", layout::IPAM),
            (
                "metal3-capm3-manager-role",
                "capm3-manager-role",
                layout::INFRASTRUCTURE,
            ),
            (
                "metal3-hosts-manager-role",
                "baremetal-operator-manager-role",
                layout::HOSTS,
            ),
        ] {
            assert_eq!(
                roles[product],
                cluster_roles(&layout, CertificateSource::Mounted)[name],
                "{product}"
            );
        }
        assert_eq!(
            roles.contains_key("metal3-certificates-role"),
            form == CertificateSource::SelfManaged
        );
        let documents = documents_of(&layout::ALL_IN_ONE, IMAGE, form);
        let own = roles
            .keys()
            .filter(|name| name.ends_with("-manager-role") || name.ends_with("-certificates-role"));
        for name in own {
            let bound =
                of_kind(&documents, "ClusterRoleBinding").filter(|binding| binding["roleRef"]["name"] == **name);
            assert_eq!(bound.count(), 1, "{name}");
        }
    }
}
