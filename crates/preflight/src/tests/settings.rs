//! Settings and rights of the Go managers, for this program.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::PolicyRule;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, BareMetalSwitch, HardwareData, HostDeployPolicy, HostNetworkAttachment,
};

use super::*;

fn deployment(name: &str, arguments: &[&str]) -> Deployment {
    let container = json!({ "name": "manager", "image": "x:v1.13.0", "args": arguments });
    let template = json!({ "metadata": {}, "spec": { "containers": [container] } });
    let spec = json!({ "selector": {}, "template": template });
    serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "sys" }, "spec": spec })).unwrap()
}

fn variable(name: &str, value: Option<&str>, source: Source) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        source,
    }
}

#[test]
fn settings_of_a_go_manager_are_printed_as_those_of_this_program_each_missing_one_with_the_reason() {
    let map = || Source::ConfigMap("ironic".to_owned());
    let variables = vec![
        variable("POD_NAMESPACE", None, Source::Pod("metadata.namespace".to_owned())),
        variable("IRONIC_ENDPOINT", Some("https://u:hunter2@ironic:6385"), map()),
        variable("LEASE_DURATION_SECONDS", None, Source::Secret("timings".to_owned())),
        variable("CAPM3_FAST_TRACK", Some("true"), map()),
        variable("IRONIC_SKIP_CLIENT_SAN_VERIFY", Some("true"), map()),
        variable("WORKERS", Some("4"), Source::Deployment),
        variable("DEPLOY_*", None, Source::Secret("images".to_owned())),
    ];
    let given = Given {
        deployment: "sys/baremetal-operator-controller-manager".to_owned(),
        variables,
        without_effect: vec![(
            "IRONIC_SKIP_CLIENT_SAN_VERIFY".to_owned(),
            "verification is complete".to_owned(),
        )],
    };
    let arguments = [
        "--enable-leader-election",
        "--controller-concurrency=$(WORKERS)",
        "--hostclaims",
        "--ironic=$(IRONIC_ENDPOINT)",
    ];
    let report = report(Facts {
        deployments: vec![deployment("baremetal-operator-controller-manager", &arguments)],
        given: vec![given],
        ..facts(Direction::ToThisProgram)
    });
    let text = render(&report);
    for line in [
        "Settings of sys/baremetal-operator-controller-manager for this program:\n",
        r#"    args: ["--controllers=hosts", "--leader-elect", "--controller-concurrency=4", "--hostclaims"]"#,
        r#"    IRONIC_ENDPOINT: "https://***@ironic:6385"    # from ConfigMap ironic"#,
        "    # LEASE_DURATION_SECONDS: keep the reference to Secret timings\n",
        "    # DEPLOY_*: keep the reference to Secret images\n",
        "    # without --ironic=https://***@ironic:6385: ",
        "    # POD_NAMESPACE: keep the reference to the field metadata.namespace of the Pod\n",
        "    # without CAPM3_FAST_TRACK: no controller of this program reads it\n",
        "    # without IRONIC_SKIP_CLIENT_SAN_VERIFY: verification is complete\n",
        "    # without WORKERS: no controller of this program reads it\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn fast_track_is_a_variable_of_machines() {
    let given = |name: &str| Given {
        deployment: format!("sys/{name}"),
        variables: vec![variable("CAPM3_FAST_TRACK", Some("true"), Source::Deployment)],
        ..Given::default()
    };
    let name = "capm3-controller-manager";
    let report = report(Facts {
        deployments: vec![deployment(name, &[])],
        given: vec![given(name)],
        ..facts(Direction::ToThisProgram)
    });
    let [settings] = report.settings.as_slice() else {
        unreachable!("{report:?}");
    };
    assert_eq!(
        (settings.variables.len(), settings.dropped.len()),
        (1, 0),
        "{settings:?}"
    );
}

#[test]
fn references_in_an_argument_are_replaced_as_kubernetes_does() {
    let value = |name: &str| (name == "A").then(|| "1".to_owned());
    for (given, expected) in [
        ("--x=$(A)$(A)", "--x=11"),
        ("--x=$(B)", "--x=$(B)"),
        ("--x=$$(A)", "--x=$(A)"),
        ("--x=$(A", "--x=$(A"),
        ("--x=$", "--x=$"),
        ("", ""),
    ] {
        assert_eq!(expanded(given, value), expected, "{given}");
    }
}

#[test]
fn rights_that_the_account_of_a_go_manager_lacks_are_named() {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str], names: &[&str]| PolicyRule {
        api_groups: Some(groups.iter().map(ToString::to_string).collect()),
        resources: Some(resources.iter().map(ToString::to_string).collect()),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        resource_names: Some(names.iter().map(ToString::to_string).collect()),
        ..PolicyRule::default()
    };
    let right = |group: &str, resource: &str, verb: &str, names: &[&str]| Right {
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb: verb.to_owned(),
        names: names.iter().map(ToString::to_string).collect(),
        is_local: false,
    };
    let given = [
        rule(&["metal3.io"], &["baremetalhosts"], &["get", "list"], &[]),
        rule(&["*"], &["*/status"], &["*"], &[]),
        rule(&["apps"], &["deployments"], &["watch"], &["one"]),
    ];
    let rows = [
        (right("metal3.io", "baremetalhosts", "get", &[]), None),
        (
            right("metal3.io", "baremetalhosts", "delete", &[]),
            Some("delete baremetalhosts.metal3.io"),
        ),
        (right("metal3.io", "baremetalhosts/status", "patch", &[]), None),
        (right("", "secrets", "get", &[]), Some("get secrets")),
        (right("apps", "deployments", "watch", &["one"]), None),
        (
            right("apps", "deployments", "watch", &["two"]),
            Some("watch deployments.apps"),
        ),
        (
            right("apps", "deployments", "watch", &[]),
            Some("watch deployments.apps"),
        ),
    ];
    for (needed, expected) in rows {
        let account = Account {
            deployment: "sys/manager".to_owned(),
            name: "sys/account".to_owned(),
            rules: given.to_vec(),
            // Those of a namespace give nothing in all namespaces.
            local_rules: vec![rule(&["*"], &["*"], &["*"], &[])],
            not_read: None,
            needed: vec![needed.clone()],
        };
        let facts = Facts {
            accounts: vec![account],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment sys/manager");
        let text: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(text.len(), usize::from(expected.is_some()), "{needed:?}: {text:?}");
        assert!(
            text.iter().all(|text| text.contains(expected.unwrap_or_default())),
            "{needed:?}: {text:?}"
        );
        let decides = found.iter().any(|(decision, _)| *decision != Decision::Go);
        assert!(!decides, "roles are part of the release");
    }
}

#[test]
fn kinds_that_have_no_controller_here_stop_no_switch_unless_something_waits_for_them() {
    assert_one(
        forward::<HostDeployPolicy>(json!({ "spec": {} })),
        "HostDeployPolicy",
        Decision::Go,
        "it is served with --hostclaims only",
    );
    for (facts, kind) in [
        (
            forward::<HostNetworkAttachment>(json!({ "spec": {} })),
            "HostNetworkAttachment",
        ),
        (forward::<BareMetalSwitch>(json!({ "spec": {} })), "BareMetalSwitch"),
    ] {
        assert_one(facts, kind, Decision::Go, "no controller of this program serves");
    }
    let facts = forward::<HardwareData>(json!({ "spec": { "hardware": 7 } }));
    assert_one(facts, "HardwareData", Decision::No, "cannot be decoded");
    assert_eq!(
        about(forward::<HardwareData>(json!({ "spec": {} })), "HardwareData"),
        []
    );
}

#[test]
fn switch_is_served_where_the_go_manager_serves_it_unless_its_login_is_in_another_namespace() {
    let served = |credentials: Value, value: Option<&str>| {
        let document = json!({ "metadata": { "name": "one", "namespace": "metal" }, "spec": { "address": "192.0.2.1", "macAddress": "52:54:00:00:00:01", "deviceType": "x", "credentials": credentials } });
        let name = "baremetal-operator-controller-manager";
        let given = Given {
            deployment: format!("sys/{name}"),
            variables: vec![variable("IRONIC_NETWORKING_ENABLED", value, Source::Deployment)],
            ..Given::default()
        };
        let found = about(
            Facts {
                given: vec![given],
                ..forward::<BareMetalSwitch>(document)
            },
            "BareMetalSwitch",
        );
        found.into_iter().map(|(decision, _)| decision).collect::<Vec<_>>()
    };
    let (own, other) = (json!({ "name": "a" }), json!({ "name": "a", "namespace": "other" }));
    for value in [Some("true"), Some("1"), None] {
        assert_eq!(served(own.clone(), value), []);
        assert_eq!(served(other.clone(), value), [Decision::No]);
    }
    for value in [Some("false"), Some("0"), Some("")] {
        assert_eq!(served(other.clone(), value), [Decision::Go], "as by the Go manager");
    }
}

#[test]
fn entries_of_a_secret_may_be_any_variable_unless_a_later_one_has_its_name() {
    let all = [
        variable("*", None, Source::Secret("all".to_owned())),
        variable("IRONIC_*", None, Source::Secret("ironic".to_owned())),
        variable("KNOWN", Some("1"), Source::Deployment),
        variable("HIDDEN", None, Source::Secret("one".to_owned())),
    ];
    let find = |of: &'static [usize], name: &str| {
        let found = Variable::find(of.iter().map(|at| &all[*at]), name);
        found.map(|one| one.name.clone())
    };
    assert_eq!(find(&[0, 2], "KNOWN").as_deref(), Some("KNOWN"));
    assert_eq!(find(&[2, 0], "KNOWN").as_deref(), Some("*"));
    assert_eq!(find(&[0, 2], "WATCH_NAMESPACE").as_deref(), Some("*"));
    assert_eq!(find(&[1, 2], "WATCH_NAMESPACE"), None);
    assert_eq!(find(&[1, 2], "IRONIC_NETWORKING_ENABLED").as_deref(), Some("IRONIC_*"));
    let unknown = |of: &[usize], text: &str| {
        let find = |name: &str| Variable::find(of.iter().map(|at| &all[*at]), name);
        unknown_reference(text, find).map(|one| one.source.text())
    };
    for (of, text, expected) in [
        (&[2, 3][..], "a $(KNOWN) $$(HIDDEN)", None),
        (&[2, 3], "$(KNOWN)-$(HIDDEN)", Some("Secret one")),
        (&[2, 3], "$(NONE)", None),
        (&[0, 2], "$(NONE)", Some("Secret all")),
    ] {
        assert_eq!(unknown(of, text).as_deref(), expected, "{text}");
    }
}

#[test]
fn switch_whose_login_a_host_of_the_namespace_names_is_found() {
    let switch = json!({ "metadata": { "name": "one", "namespace": "metal" }, "spec": { "address": "192.0.2.1",
        "macAddress": "52:54:00:00:00:01", "deviceType": "x", "credentials": { "name": "a" } } });
    let found = |namespace: &str, spec: Value| {
        let host = json!({ "metadata": { "name": "host", "namespace": namespace }, "spec": spec });
        let given = Given {
            deployment: "sys/manager".to_owned(),
            variables: vec![variable("IRONIC_NETWORKING_ENABLED", Some("true"), Source::Deployment)],
            ..Given::default()
        };
        let mut facts = Facts {
            given: vec![given],
            ..forward::<BareMetalSwitch>(switch.clone())
        };
        facts = with::<BareMetalHost>(facts, host);
        let found = about(facts, "BareMetalSwitch");
        found.into_iter().map(|(decision, _)| decision).collect::<Vec<_>>()
    };
    for spec in [
        json!({ "bmc": { "credentialsName": "a" } }),
        json!({ "preprovisioningNetworkDataName": "a" }),
        json!({ "userData": { "name": "a" } }),
        json!({ "metaData": { "name": "a" } }),
        json!({ "networkData": { "name": "a" } }),
        json!({ "image": { "url": "oci://r.example/os", "ociAuthSecretName": "a" } }),
    ] {
        assert_eq!(found("metal", spec.clone()), [Decision::No], "{spec}");
        assert_eq!(found("other", spec.clone()), [], "{spec}");
    }
    assert_eq!(found("metal", json!({ "bmc": { "credentialsName": "b" } })), []);
}

#[test]
fn right_for_the_namespace_of_the_program_may_come_from_a_role_of_it_and_unread_roles_are_named() {
    let lease = Right {
        group: "coordination.k8s.io".to_owned(),
        resource: "leases".to_owned(),
        verb: "update".to_owned(),
        is_local: true,
        ..Right::default()
    };
    let rule = PolicyRule {
        api_groups: Some(vec![lease.group.clone()]),
        resources: Some(vec![lease.resource.clone()]),
        verbs: vec![lease.verb.clone()],
        ..PolicyRule::default()
    };
    for (local_rules, not_read, expected) in [
        (vec![rule.clone()], None, None),
        (Vec::new(), None, Some("update leases.coordination.k8s.io")),
        (vec![rule], Some("forbidden"), Some("could not be read: forbidden")),
    ] {
        let account = Account {
            deployment: "sys/manager".to_owned(),
            local_rules,
            not_read: not_read.map(str::to_owned),
            needed: vec![lease.clone()],
            ..Account::default()
        };
        let facts = Facts {
            accounts: vec![account],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment sys/manager");
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        assert!(
            found
                .iter()
                .all(|(_, text)| text.contains(expected.unwrap_or_default())),
            "{found:?}"
        );
    }
}

#[test]
fn only_what_each_pod_has_for_itself_is_no_setting() {
    for (path, differs) in [
        ("metadata.name", true),
        ("metadata.uid", true),
        ("spec.nodeName", true),
        ("status.podIP", true),
        ("metadata.namespace", false),
        ("metadata.annotations['limit']", false),
        ("limits.cpu", false),
    ] {
        assert_eq!(Source::Pod(path.to_owned()).differs_between_pods(), differs, "{path}");
    }
    assert!(!Source::Secret("metadata.name".to_owned()).differs_between_pods());
}
