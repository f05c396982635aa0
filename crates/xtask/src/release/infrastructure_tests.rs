//! Tests of the manifests of clusters and machines, and of the cluster templates.

use std::collections::{BTreeMap, BTreeSet};

use metal3_runtime::guard;
use serde_json::from_value;

use super::tests::{FORMS, IMAGE, assert_guarded, assert_names, assert_provider, assert_runs, find, granted, of_kind};
use super::*;

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

fn installed(form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::INFRASTRUCTURE, IMAGE, form)
}

#[test]
fn every_object_has_the_provider_label_and_none_is_of_hosts() {
    for form in FORMS {
        let documents = installed(form);
        assert_names(&documents, "capm3-system");
        assert_provider(&documents, "infrastructure-metal3");
        let definitions = of_kind(&documents, "CustomResourceDefinition");
        let groups: Vec<&Value> = definitions.map(|definition| &definition["spec"]["group"]).collect();
        assert!(
            groups.len() == 9 && groups.iter().all(|group| **group == GROUP),
            "{groups:?}"
        );
    }
}

#[test]
fn the_deployment_has_the_name_and_label_that_the_guard_checks() {
    for form in FORMS {
        let documents = installed(form);
        let selector = json!({
            "cluster.x-k8s.io/provider": "infrastructure-metal3",
            "control-plane": "controller-manager",
            "controller-tools.k8s.io": "1.0",
        });
        assert_guarded(&documents, guard::CAPM3, &selector);
        let deployment = find(&documents, "Deployment");
        assert_eq!(deployment["spec"]["replicas"], 2);
        assert_eq!(
            restricted::violated(&deployment["spec"]["template"]["spec"]),
            <[&str; 0]>::default()
        );
    }
}

#[test]
fn roles_grant_exactly_the_declared_permissions() {
    for form in FORMS {
        let granted = granted(&layout::INFRASTRUCTURE, form);
        // Nodes are read with the kubeconfigs of their clusters, never with this account.
        assert!(
            granted
                .iter()
                .all(|(group, resource, _)| (group.as_str(), resource.as_str()) != ("", "nodes"))
        );
        // Only for the owners of hosts, where their permissions are enforced: no controller can delete a host.
        assert!(granted.contains(&("metal3.io".into(), "baremetalhosts".into(), "delete".into())));
    }
}

#[test]
fn the_documented_label_aggregates_roles_for_other_providers() {
    let page = include_str!("../../../../docs/multi-provider.md");
    for form in FORMS {
        let documents = installed(form);
        let name = "capm3-endpoint-reader";
        let of = |kind: &str| {
            let found = of_kind(&documents, kind).filter(|one| one["metadata"]["name"] == name);
            let [only] = found.collect::<Vec<_>>()[..] else {
                panic!("one {kind} {name}")
            };
            only
        };
        let role = of("ClusterRole");
        assert_eq!(role["rules"], json!([]), "the role grants nothing by default");
        let labels = &role["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        let labels: BTreeMap<String, String> = from_value(labels.clone()).unwrap();
        assert!(
            labels
                .iter()
                .all(|(label, value)| page.contains(&format!("{label}: \"{value}\""))),
            "{labels:?}"
        );
        assert!(!labels.is_empty());
        let binding = of("ClusterRoleBinding");
        assert_eq!(binding["roleRef"]["name"], name);
        assert_eq!(binding["subjects"][0]["name"], layout::INFRASTRUCTURE.account);
    }
    // Products that read no endpoints have no aggregated role.
    for other in [&layout::IPAM, &layout::HOSTS] {
        assert!(install::endpoint_reader(other).is_empty());
    }
}

/// The text after substitution of the default values of variables.
fn with_defaults(text: &str) -> String {
    let mut pieces = text.split("${");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (expression, rest) = piece.split_once('}').unwrap();
        filled.push_str(expression.split_once(":=").unwrap().1);
        filled.push_str(rest);
    }
    filled
}

#[test]
fn the_variables_of_the_go_manager_s_release_are_valid() {
    let files = files(IMAGE, String::new()).unwrap();
    for (name, form) in [
        ("infrastructure-components.yaml", CertificateSource::Mounted),
        (
            "infrastructure-components-self-managed.yaml",
            CertificateSource::SelfManaged,
        ),
    ] {
        let text = &files[Path::new(name)];
        let read: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        assert_eq!(read, installed(form));
        for variable in [
            "CAPM3_FAST_TRACK",
            "ENABLE_BMH_NAME_BASED_PREALLOCATION",
            "CAPM3_DIAGNOSTICS_ADDRESS",
            "CAPM3_INSECURE_DIAGNOSTICS",
        ] {
            assert!(text.contains(&format!("${{{variable}:=")), "{variable}");
        }
        let read: Vec<Value> = serde_saphyr::from_multiple(&with_defaults(text)).unwrap();
        let container = &find(&read, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        assert_runs(from_value::<Vec<String>>(container["args"].clone()).unwrap());
        let settings = find(&read, "ConfigMap");
        assert_eq!(
            container["envFrom"][0]["configMapRef"]["name"],
            settings["metadata"]["name"]
        );
        assert_eq!(settings["data"], json!({ "CAPM3_FAST_TRACK": "false" }));
    }
}

#[test]
fn the_cluster_template_is_released_in_the_stored_versions() {
    let documents = template(TEMPLATE);
    let kinds: BTreeSet<&str> = documents
        .iter()
        .filter_map(|document| document["kind"].as_str())
        .collect();
    for kind in [
        "Cluster",
        "KubeadmControlPlane",
        "MachineDeployment",
        "Metal3Cluster",
        "Metal3MachineTemplate",
    ] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
    for document in &documents {
        assert!(
            document["apiVersion"].as_str().unwrap().ends_with("/v1beta2"),
            "{document}"
        );
        assert_eq!(document["metadata"]["namespace"], "${NAMESPACE}");
    }
}

/// The objects of a template, without variables that stand on a line of their own.
fn template(name: &str) -> Vec<Value> {
    let files = files(IMAGE, String::new()).unwrap();
    let lines = files[Path::new(name)].lines();
    let text: String = lines
        .filter(|line| !line.starts_with("${"))
        .map(|line| format!("{line}\n"))
        .collect();
    serde_saphyr::from_multiple(&text).unwrap()
}

#[test]
fn flavours_set_no_bare_metal_endpoint_and_have_workers() {
    for name in super::FLAVOURS {
        let documents = template(name);
        let metal3 = find(&documents, "Metal3Cluster");
        assert!(metal3["spec"]["controlPlaneEndpoint"].is_null(), "{name}");
        let source = &metal3["spec"]["controlPlaneEndpointSource"]["type"];
        let is_sourced = *source == "ControlPlane" || metal3["spec"]["clusterName"] == "${CLUSTER_NAME}";
        assert!(is_sourced, "{name}");
        let workers = find(&documents, "MachineDeployment");
        let machines = &workers["spec"]["template"]["spec"]["infrastructureRef"]["kind"];
        assert_eq!(*machines, "Metal3MachineTemplate", "{name}");
        for document in &documents {
            assert_eq!(document["metadata"]["namespace"], "${NAMESPACE}", "{name}");
        }
    }
}
