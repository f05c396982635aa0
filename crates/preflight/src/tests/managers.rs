//! Rules about the managers that run.

use super::*;

fn variable(name: &str, value: Option<&str>, source: Source) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        source,
    }
}

/// A report about one Go manager with these arguments and variables.
fn report_of(name: &str, arguments: &[&str], variables: Vec<Variable>) -> Report {
    let namespace = "capm3-system";
    let given = Given {
        deployment: format!("{namespace}/{name}"),
        variables,
        without_effect: Vec::new(),
    };
    report(Facts {
        deployments: vec![deployment(namespace, name, "r/m:v1.14.0", arguments, false)],
        given: vec![given],
        ..facts(Direction::ToThisProgram)
    })
}

const MACHINES: &str = "capm3-controller-manager";
const HOSTS: &str = "baremetal-operator-controller-manager";

/// A manager, its arguments and its variables, and what is said of them.
type Row<'a> = (&'a str, &'a [&'a str], Vec<Variable>, Option<&'a str>);

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn scope_of_a_manager_is_named_with_its_settings_because_the_files_of_the_release_have_none() {
    let watched = |value: &str| {
        vec![variable(
            "WATCH_NAMESPACE",
            Some(value),
            Source::ConfigMap("ironic".to_owned()),
        )]
    };
    let name = || vec![variable("NAME", Some("lab"), Source::Deployment)];
    let rows: [Row<'_>; 11] = [
        (
            MACHINES,
            &["--watch-filter=blue"],
            Vec::new(),
            Some("--watch-filter=blue, and"),
        ),
        (
            MACHINES,
            &["--namespace", "lab"],
            Vec::new(),
            Some("--namespace=lab, and"),
        ),
        (MACHINES, &["--namespace=$(NAME)"], name(), Some("--namespace=lab, and")),
        (
            MACHINES,
            &["--namespace=lab", "--watch-filter=blue", "--no-such-flag"],
            Vec::new(),
            Some("--namespace=lab and --watch-filter=blue, and"),
        ),
        (MACHINES, &["--webhook-port=9443"], Vec::new(), None),
        (MACHINES, &[], watched("lab"), None),
        (
            HOSTS,
            &[],
            watched("lab"),
            Some("WATCH_NAMESPACE=lab (from ConfigMap ironic), and"),
        ),
        (HOSTS, &[], watched(""), None),
        (
            HOSTS,
            &["-namespace=other"],
            watched("lab"),
            Some("--namespace=other, and"),
        ),
        (HOSTS, &["--namespace="], watched("lab"), None),
        (
            HOSTS,
            &["--namespace=$(OTHER)"],
            watched("lab"),
            Some("--namespace=$(OTHER), and"),
        ),
    ];
    for (manager, arguments, variables, named) in rows {
        let found = report_of(manager, arguments, variables).findings;
        let found: Vec<_> = found
            .iter()
            .filter(|one| one.cure.contains("into the file before it is applied"))
            .collect();
        assert_eq!(
            found.len(),
            usize::from(named.is_some()),
            "{manager} {arguments:?}: {found:?}"
        );
        assert!(
            found
                .iter()
                .all(|one| one.decision == Decision::Go && one.what.contains(named.unwrap_or_default())),
            "{manager} {arguments:?}: {found:?}"
        );
    }
}

#[test]
fn scope_that_is_not_known_makes_the_decision_unknown_and_is_named() {
    let secret = |name: &str| vec![variable(name, None, Source::Secret("scope".to_owned()))];
    let pod = || vec![variable("POD_IP", None, Source::Pod("status.podIP".to_owned()))];
    let rows: [Row<'_>; 9] = [
        (
            MACHINES,
            &["--namespace=$(NS)"],
            secret("NS"),
            Some("the argument --namespace=$(NS) of Deployment capm3-system/capm3"),
        ),
        (
            MACHINES,
            &["--namespace", "$(NS)", "--leader-elect"],
            secret("NS"),
            Some("the argument $(NS) of"),
        ),
        (
            MACHINES,
            &["--label-selector=a"],
            Vec::new(),
            Some("what --label-selector of Deployment capm3-system/capm3"),
        ),
        (MACHINES, &[], secret("WATCH_NAMESPACE"), None),
        (MACHINES, &["--health-addr=$(POD_IP):1"], pod(), None),
        (
            HOSTS,
            &[],
            secret("WATCH_NAMESPACE"),
            Some("WATCH_NAMESPACE of Deployment capm3-system/baremetal"),
        ),
        (HOSTS, &[], secret("*"), Some("WATCH_NAMESPACE of Deployment")),
        (HOSTS, &[], secret("IRONIC_*"), None),
        (HOSTS, &["--namespace=lab"], secret("*"), None),
    ];
    for (manager, arguments, variables, named) in rows {
        let found = report_of(manager, arguments, variables);
        assert_eq!(
            found.not_read.len(),
            usize::from(named.is_some()),
            "{manager} {arguments:?}: {:?}",
            found.not_read
        );
        let is_it = |one: &NotRead| one.what.starts_with(named.unwrap_or_default());
        assert!(
            found.not_read.iter().all(is_it),
            "{manager} {arguments:?}: {:?}",
            found.not_read
        );
        let is_refused = found.findings.iter().any(|one| one.what.contains("needs a value"));
        assert!(!is_refused, "{manager} {arguments:?}: {:?}", found.findings);
    }
    let unknown = report_of(MACHINES, &["--label-selector=a"], Vec::new());
    assert_eq!((unknown.decision, unknown.exit_code()), (Decision::Unknown, 5));
}

/// Kubernetes starts the program of `command` with what follows it, and with `args`.
#[test]
fn arguments_of_a_command_are_those_of_the_manager() {
    let (program, operator) = ("/manager", "/baremetal-operator");
    for (command, args, named, unknown) in [
        (
            &[program, "--namespace=lab"][..],
            &[][..],
            Some("--namespace=lab, and"),
            None,
        ),
        (
            &[operator, "--namespace", "lab"],
            &["--webhook-port=9443"],
            Some("--namespace=lab, and"),
            None,
        ),
        (
            &[program, "--namespace=lab"],
            &["--namespace=other"],
            Some("--namespace=other, and"),
            None,
        ),
        (&[program], &["--webhook-port=9443"], None, None),
        (&[], &["--namespace=lab"], Some("--namespace=lab, and"), None),
        (
            &["/bin/sh", "-c", "/manager --namespace=lab"],
            &[],
            None,
            Some("the arguments of Deployment capm3-system/capm3-controller-manager"),
        ),
    ] {
        let mut one = deployment("capm3-system", MACHINES, "r/m:v1.14.0", args, false);
        let pod = one.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.containers[0].command = Some(command.iter().map(ToString::to_string).collect());
        let found = report(Facts {
            deployments: vec![one],
            ..facts(Direction::ToThisProgram)
        });
        let scope = found.findings.iter().find(|one| one.what.starts_with("serves only"));
        let is_named = |part: &str| scope.is_some_and(|one| one.what.contains(part));
        assert!(
            named.map_or(scope.is_none(), is_named),
            "{command:?} {args:?}: {found:?}"
        );
        let is_unknown = |what: &str| found.not_read.iter().any(|one| one.what == what);
        assert!(
            unknown.map_or(found.not_read.is_empty(), is_unknown),
            "{command:?} {args:?}: {found:?}"
        );
    }
}

/// A list after the flag, and of several lists each.
#[test]
fn controllers_of_this_program_are_those_of_its_arguments() {
    for (arguments, controllers) in [
        (&["--controllers=ipam"][..], &["ipam"][..]),
        (&["--controllers", "ipam"], &["ipam"]),
        (&["-controllers", "hosts, ipam", "--leader-elect"], &["ipam", "hosts"]),
        (&["--controllers=ipam", "--controllers", "hosts"], &["ipam", "hosts"]),
        (&["--leader-elect"], &["capm3", "ipam", "hosts"]),
    ] {
        let one = deployment("metal3", "metal3-controller-manager", "r/m:v1.14.0", arguments, true);
        let found = found(&[one]);
        let mut named = found[0].controllers.clone();
        named.sort_unstable();
        let mut expected = controllers.to_vec();
        expected.sort_unstable();
        assert_eq!(named, expected, "{arguments:?}");
    }
}

#[test]
fn last_use_of_a_switch_counts() {
    for (arguments, is_on) in [
        (&["--hostclaims"][..], true),
        (&["-hostclaims=true"], true),
        (&["--hostclaims", "--hostclaims=false"], false),
        (&["--hostclaims=F", "--hostclaims=1"], true),
        (&["hostclaims"], false),
        (&[], false),
    ] {
        let one = deployment("metal3", HOSTS, "r/m:v0.14.0", arguments, false);
        assert_eq!(found(&[one])[0].serves_claims(), is_on, "{arguments:?}");
    }
}

#[test]
fn managers_are_found_with_their_release_and_arguments() {
    let mut facts = facts(Direction::ToThisProgram);
    facts.deployments = vec![
        deployment(
            "capm3-system",
            "capm3-controller-manager",
            "quay.io/metal3-io/capm3:v1.8.2",
            &["--leader-elect"],
            false,
        ),
        deployment(
            "x",
            "baremetal-operator-controller-manager",
            "r:5000/bmo@sha256:00",
            &["--demo-mode", "--webhook-port=0"],
            false,
        ),
        deployment(
            "metal3-ipam-system",
            "ipam-controller-manager",
            "r/capm3:v1.15.0",
            &["--no-such-flag"],
            true,
        ),
        deployment("default", "web", "nginx:1.2", &[], false),
    ];
    let report = report(facts);
    let seen: Vec<_> = report
        .managers
        .iter()
        .map(|one| (one.controllers.join(","), one.is_this_program, one.series))
        .collect();
    let (old, new) = (Some(Series::new(1, 8)), Some(Series::new(1, 15)));
    assert_eq!(
        seen,
        [
            ("capm3".to_owned(), false, old),
            ("ipam".to_owned(), true, new),
            ("hosts".to_owned(), false, None)
        ]
    );
    let text = render(&report);
    for part in [
        "release 1.8 is older than 1.9",
        "upgrade it to 1.9",
        "--demo-mode:",
        "does not say it",
        "already",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("nginx") && !text.contains("no-such-flag"), "{text}");
    assert_eq!((report.decision, report.exit_code()), (Decision::No, 4));
}

#[test]
fn manager_in_a_namespace_that_is_not_looked_at_stops_the_switch() {
    for (namespace, replicas, stops) in [
        ("baremetal-operator-system", 1, false),
        ("metal3", 1, true),
        ("metal3", 0, false),
    ] {
        let mut one = deployment(
            namespace,
            "baremetal-operator-controller-manager",
            "r/bmo:v0.13.0",
            &[],
            false,
        );
        one.spec.as_mut().unwrap().replicas = Some(replicas);
        let facts = Facts {
            deployments: vec![one],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment");
        let named = |(of, text): &(Decision, String)| {
            *of == Decision::No
                && text.contains("--foreign-deployments=hosts=metal3/baremetal-operator-controller-manager")
        };
        assert_eq!(found.iter().any(named), stops, "{namespace} {replicas}: {found:?}");
    }
}

#[test]
fn controllers_whose_manager_is_not_found_are_named_if_they_have_objects() {
    let mut facts = forward::<BareMetalHost>(host("provisioned", json!({})));
    facts.deployments = vec![deployment(
        "capm3-system",
        "capm3-controller-manager",
        "r/capm3:v1.13.0",
        &[],
        false,
    )];
    let found = report(facts);
    let unknown: Vec<&str> = found.not_read.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(
        (found.decision, unknown),
        (Decision::Unknown, vec!["the manager of hosts"])
    );
    let nothing = report(super::facts(Direction::ToThisProgram));
    assert_eq!(nothing.not_read, []);
}

#[test]
fn newer_release_than_is_known_stops_the_switch() {
    for (image, stops) in [("r/capm3:v1.14.3", false), ("r/capm3:v1.15.0", true)] {
        let facts = Facts {
            deployments: vec![deployment(
                "capm3-system",
                "capm3-controller-manager",
                image,
                &[],
                false,
            )],
            ..facts(Direction::ToThisProgram)
        };
        let found = about(facts, "Deployment");
        assert_eq!(
            found.iter().any(|(_, text)| text.contains("is newer than 1.14")),
            stops,
            "{image}: {found:?}"
        );
    }
}

/// The tag of an image may be a digest, or one of the user, and an upgrade may have been recorded that was not made.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn release_is_that_of_tag_label_and_inventory_and_their_contradiction_is_named() {
    type Row<'a> = (
        &'a str,
        Option<&'a str>,
        Option<&'a str>,
        Option<&'a str>,
        Option<Series>,
        &'a [(Decision, &'a str)],
    );
    let (known, unclear) = (Some(Series::new(1, 13)), "its release is not clear: it is ");
    let (older, newer) = ("release 1.8 is older than 1.9", "release 1.15 is newer than 1.14");
    let provider = Some("infrastructure-metal3");
    let rows: [Row<'_>; 9] = [
        ("r/m:v1.13.1", provider, None, Some("v1.13.1"), known, &[]),
        ("r/m@sha256:00", provider, None, Some("v1.13.1"), known, &[]),
        ("r/m@sha256:00", None, None, Some("v1.13.1"), known, &[]),
        ("r/m@sha256:00", None, Some("1.13.1"), None, known, &[]),
        ("r/m@sha256:00", Some("ipam-metal3"), None, Some("v1.13.1"), None, &[]),
        (
            "r/m:v1.13.1",
            provider,
            None,
            Some("v1.14.0"),
            known,
            &[(Decision::Go, unclear)],
        ),
        (
            "r/m:v1.13.1",
            provider,
            None,
            Some("v1.8.0"),
            known,
            &[(Decision::No, older), (Decision::Go, unclear)],
        ),
        (
            "r/m:v1.13.1",
            provider,
            Some("1.15.0"),
            None,
            known,
            &[(Decision::No, newer), (Decision::Go, unclear)],
        ),
        ("r/m:mine", provider, None, Some("nightly"), None, &[]),
    ];
    for (image, label, labelled, recorded, series, expected) in rows {
        let mut one = deployment("capm3-system", MACHINES, image, &[], false);
        let labels = [
            ("cluster.x-k8s.io/provider", label),
            ("app.kubernetes.io/version", labelled),
        ];
        let labels = labels
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        one.metadata.labels = Some(labels.collect());
        let provider = |namespace: &str, version: &str| Provider {
            namespace: namespace.to_owned(),
            name: "infrastructure-metal3".to_owned(),
            version: version.to_owned(),
        };
        let elsewhere = provider("other", "v1.2.0");
        let report = report(Facts {
            deployments: vec![one],
            providers: Some(
                recorded
                    .map(|version| provider("capm3-system", version))
                    .into_iter()
                    .chain([elsewhere])
                    .collect(),
            ),
            ..facts(Direction::ToThisProgram)
        });
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|one| (one.decision, one.what.as_str()))
            .collect();
        let is_it = |((of, text), (decision, part)): (&(Decision, &str), &(Decision, &str))| {
            of == decision && text.contains(part)
        };
        let matches = found.len() == expected.len() && found.iter().zip(expected).all(is_it);
        assert!(matches, "{image} {label:?} {labelled:?} {recorded:?}: {found:?}");
        assert_eq!(
            report.managers[0].series, series,
            "{image} {label:?} {labelled:?} {recorded:?}"
        );
        let unknown: Vec<&str> = report.not_read.iter().map(|one| one.what.as_str()).collect();
        let release = "the release of Deployment capm3-system/capm3-controller-manager";
        let expected = series.map_or(vec![release], |_| Vec::new());
        assert_eq!(unknown, expected, "{image} {label:?} {labelled:?} {recorded:?}");
        let is_known = report.decision != Decision::Unknown;
        assert_eq!(
            is_known,
            series.is_some(),
            "{image} {label:?} {labelled:?} {recorded:?}"
        );
    }
}

/// The version of a provider is that of its own controllers only: the host operator of another provider has a series of its own.
#[test]
fn version_of_a_provider_is_that_of_its_own_controllers() {
    let (machines, addresses) = ("infrastructure-metal3", "ipam-metal3");
    let (ipam, known) = ("ipam-controller-manager", Some(Series::new(1, 13)));
    for (name, label, provider, series) in [
        (MACHINES, Some(machines), machines, known),
        (MACHINES, None, machines, known),
        (MACHINES, Some(addresses), addresses, None),
        (ipam, Some(addresses), addresses, known),
        (ipam, None, addresses, known),
        (ipam, Some(machines), machines, known),
        (ipam, None, machines, None),
        (HOSTS, Some(machines), machines, None),
        (HOSTS, None, machines, None),
        (MACHINES, Some("infrastructure-own"), "infrastructure-own", None),
    ] {
        let mut one = deployment("capm3-system", name, "r/m@sha256:00", &[], false);
        let label = label.map(|label| ("cluster.x-k8s.io/provider".to_owned(), label.to_owned()));
        one.metadata.labels = Some(label.into_iter().collect());
        let provider = Provider {
            namespace: "capm3-system".to_owned(),
            name: provider.to_owned(),
            version: "v1.13.1".to_owned(),
        };
        let found = report(Facts {
            deployments: vec![one],
            providers: Some(vec![provider.clone()]),
            ..facts(Direction::ToThisProgram)
        });
        assert_eq!(found.managers[0].series, series, "{name} {provider:?}: {found:?}");
    }
}

#[test]
fn inventory_that_could_not_be_read_is_named_when_nothing_else_says_the_release() {
    for (image, is_named) in [("r/m:v1.13.1", false), ("r/m@sha256:00", true)] {
        let found = report(Facts {
            deployments: vec![deployment("capm3-system", MACHINES, image, &[], false)],
            providers: None,
            ..facts(Direction::ToThisProgram)
        });
        let mut unread = found.not_read.iter();
        let named = unread.any(|one| one.why.contains("the inventory of clusterctl could not be read"));
        assert_eq!(named, is_named, "{image}: {found:?}");
    }
}

#[test]
fn arguments_of_a_manager_are_judged_with_their_variables_and_shown_without_logins() {
    let given = |arguments: &[&str]| {
        let name = "baremetal-operator-controller-manager";
        let mut facts = facts(Direction::ToThisProgram);
        facts.deployments = vec![deployment(
            "baremetal-operator-system",
            name,
            "r/bmo:v0.13.0",
            arguments,
            false,
        )];
        facts.given = vec![Given {
            deployment: format!("baremetal-operator-system/{name}"),
            variables: vec![Variable {
                name: "NAMESPACES".to_owned(),
                value: Some("a,b".to_owned()),
                source: Source::Deployment,
            }],
            without_effect: Vec::new(),
        }];
        about(facts, "Deployment")
    };
    for arguments in [["--namespace=a,b"], ["--namespace=$(NAMESPACES)"]] {
        let found = given(&arguments);
        let is_it = |(of, text): &(Decision, String)| *of == Decision::No && text.contains("all namespaces");
        assert!(found.iter().any(is_it), "{found:?}");
    }
    let found = given(&["--ironic", "https://u:hunter2@ironic:6385"]);
    assert!(found.iter().any(|(_, text)| text.contains("ironic:6385")), "{found:?}");
    assert!(!found.iter().any(|(_, text)| text.contains("hunter2")), "{found:?}");
}
