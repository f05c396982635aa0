//! Tests of the manifests of hosts.

use std::collections::BTreeMap;

use metal3_runtime::guard;
use serde_json::from_value;

use super::tests::{
    FORMS, IMAGE, assert_guarded, assert_names, assert_round_trip, assert_runs, find, granted, of_kind,
};
use super::*;

fn installed(form: CertificateSource) -> Vec<Value> {
    documents_of(&layout::HOSTS, IMAGE, form)
}

fn pod(form: CertificateSource) -> Value {
    find(&installed(form), "Deployment")["spec"]["template"]["spec"].clone()
}

#[test]
fn pods_meet_the_restricted_pod_security_standard() {
    for form in FORMS {
        assert_eq!(restricted::violated(&pod(form)), <[&str; 0]>::default());
    }
}

#[test]
fn hosts_have_no_provider_label() {
    for form in FORMS {
        let text = serde_json::to_string(&installed(form)).unwrap();
        assert!(!text.contains("cluster.x-k8s.io/provider"), "{text}");
    }
}

#[test]
fn exactly_the_kinds_of_hosts_are_installed() {
    for form in FORMS {
        let documents = installed(form);
        let definitions = of_kind(&documents, "CustomResourceDefinition");
        let groups: BTreeMap<String, String> = definitions
            .map(|definition| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (
                    text(&definition["metadata"]["name"]),
                    text(&definition["spec"]["group"]),
                )
            })
            .collect();
        let known = catalog::definitions();
        let known = known
            .iter()
            .filter(|definition| definition.group == "metal3.io")
            .count();
        assert_eq!(groups.len(), known);
        assert!(groups.contains_key("baremetalhosts.metal3.io") && groups.contains_key("hardwaredata.metal3.io"));
        assert!(groups.values().all(|group| group == "metal3.io"));
    }
}

#[test]
fn the_only_namespace_comes_first_and_names_are_unique() {
    for form in FORMS {
        assert_names(&installed(form), "baremetal-operator-system");
    }
}

#[test]
fn the_deployment_has_the_name_and_label_that_the_guard_checks() {
    for form in FORMS {
        let selector = json!({ "control-plane": "controller-manager" });
        assert_guarded(&installed(form), guard::HOSTS, &selector);
    }
}

#[test]
fn roles_grant_exactly_the_declared_permissions() {
    for form in FORMS {
        assert!(!granted(&layout::HOSTS, form).is_empty());
    }
}

#[test]
fn self_managed_certificates_permit_writing_only_the_own_webhook_configurations() {
    let documents = installed(CertificateSource::SelfManaged);
    let rules = find(&documents, "ClusterRole")["rules"].as_array().unwrap();
    let text = serde_json::to_string(rules).unwrap();
    assert!(!text.contains("customresourcedefinitions"), "{text}");
    let configurations: Vec<&Value> = rules
        .iter()
        .filter(|rule| rule["resources"].to_string().contains("webhookconfigurations"))
        .collect();
    assert!(!configurations.is_empty());
    for rule in configurations {
        assert!(
            rule["resourceNames"].as_array().is_some_and(|names| !names.is_empty()),
            "{rule}"
        );
    }
}

#[test]
fn ironic_credentials_and_ca_are_mounted_optionally_at_the_default_paths() {
    for form in FORMS {
        let pod = pod(form);
        let volumes = pod["volumes"].as_array().unwrap();
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        for (secret, folder) in [
            ("ironic-credentials", "/opt/metal3/auth/ironic"),
            ("ironic-cacert", "/opt/metal3/certs/ca"),
            ("ironic-client-cert", "/opt/metal3/certs/client"),
        ] {
            let volume = volumes
                .iter()
                .find(|volume| volume["secret"]["secretName"] == secret)
                .unwrap();
            assert_eq!(volume["secret"]["optional"], true);
            let mount = mounts.iter().find(|mount| mount["name"] == volume["name"]).unwrap();
            assert_eq!(
                (&mount["mountPath"], &mount["readOnly"]),
                (&json!(folder), &json!(true))
            );
        }
    }
}

#[test]
fn the_installed_configuration_is_valid() {
    for form in FORMS {
        let documents = installed(form);
        let container = &pod(form)["containers"][0];
        assert_runs(from_value::<Vec<String>>(container["args"].clone()).unwrap());
        let settings = find(&documents, "ConfigMap");
        assert_eq!(
            container["envFrom"][0]["configMapRef"]["name"],
            settings["metadata"]["name"]
        );
        let variables: BTreeMap<String, String> = from_value(settings["data"].clone()).unwrap();
        let read = metal3_manager::hosts_config::Environment::read(|name| variables.get(name).cloned(), |_| false);
        assert!(read.is_ok(), "{read:?}");
    }
}

#[test]
fn manifests_round_trip() {
    assert_round_trip(&layout::HOSTS, "hosts");
}

/// The webhook's denial and `docs/install.md` name this role.
#[test]
fn role_of_users_who_restore_hosts_grants_only_that() {
    for form in FORMS {
        let documents = installed(form);
        let name = |role: &&Value| role["metadata"]["name"] == "baremetal-operator-host-restore";
        let role = of_kind(&documents, "ClusterRole").find(name).unwrap();
        let rule = json!({ "apiGroups": ["metal3.io"], "resources": ["baremetalhosts/restore"], "verbs": ["update"] });
        assert_eq!(role["rules"], json!([rule]));
        assert!(role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"].is_null());
        let bound = of_kind(&documents, "ClusterRoleBinding")
            .all(|binding| binding["roleRef"]["name"] != role["metadata"]["name"]);
        assert!(bound, "the manifests bind it to no one");
    }
}
