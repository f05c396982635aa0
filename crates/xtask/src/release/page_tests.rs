//! What docs/install.md says of the objects: how they are removed, and who reaches the Pods.

use super::tests::{FORMS, IMAGE, find};
use super::*;

#[test]
fn ports_other_than_webhooks_are_not_open_to_everyone() {
    let page = documents::text(&workspace::root().unwrap().join("docs/install.md")).unwrap();
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        let documents = documents_of(&layout, IMAGE, CertificateSource::Mounted);
        let policy = find(&documents, "NetworkPolicy");
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], layout.selector());
        let mut open = Vec::new();
        for rule in policy["spec"]["ingress"].as_array().unwrap() {
            let ports = rule["ports"]
                .as_array()
                .unwrap()
                .iter()
                .map(|port| port["port"].clone());
            open.extend(ports.map(|port| (port, rule.get("from").cloned())));
        }
        let wanted = [
            (json!(layout.webhook_port), None),
            (json!("metrics"), Some(install::metrics_from())),
        ];
        assert_eq!(open, wanted);
        let name = policy["metadata"]["name"].as_str().unwrap();
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/install.md does not name {name}"
        );
    }
}

/// What `kubectl delete --selector` of docs/install.md removes: all but what the objects of the user are in.
#[test]
fn removal_by_label_leaves_definitions_and_namespaces() {
    let (label, value) = guard::PART_OF_LABEL;
    let page = documents::text(&workspace::root().unwrap().join("docs/install.md")).unwrap();
    assert!(page.contains(&format!("all-in-one.yaml --selector={label}={value}\n")));
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        for form in FORMS {
            let all = [documents_of(&layout, IMAGE, form), namespaced::documents(&layout, form)].concat();
            for object in all {
                let is_kept = ["CustomResourceDefinition", "Namespace"]
                    .map(Value::from)
                    .contains(&object["kind"]);
                let is_selected = object["metadata"]["labels"][label] == value;
                assert!(is_selected != is_kept, "{object}");
            }
        }
    }
}
