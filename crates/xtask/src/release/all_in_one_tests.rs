//! Tests of the manifests of the all-in-one installation.

use std::collections::BTreeSet;

use metal3_flags::{Request, parse};
use serde_json::from_value;

use super::*;

const IMAGE: &str = "registry.example.org/capm3:v1";
const FORMS: [CertificateSource; 2] = [CertificateSource::Mounted, CertificateSource::SelfManaged];
const HOME: &str = "metal3-system";

fn installed(form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::ALL_IN_ONE, IMAGE, form)
}

fn find<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
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
        let of = |kind: &str| documents.iter().filter(|document| document["kind"] == kind).count();
        assert_eq!(of("CustomResourceDefinition"), catalog::definitions().len());
        assert_eq!((of("Namespace"), of("Deployment"), of("Service")), (1, 1, 3));
        assert_eq!(documents[0]["kind"], "Namespace");
        assert!(
            !serde_json::to_string(&documents)
                .unwrap()
                .contains("cluster.x-k8s.io/provider")
        );
        let mut names = BTreeSet::new();
        for document in &documents {
            assert!(names.insert((document["kind"].to_string(), document["metadata"]["name"].to_string())));
            let own = &document["metadata"]["namespace"];
            assert!(own.is_null() || own == HOME, "{document}");
        }
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
        let arguments: Vec<String> = from_value(pod["containers"][0]["args"].clone()).unwrap();
        assert!(matches!(parse(arguments), Ok(Request::Run(_))));
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
