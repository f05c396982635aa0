//! Tests of the command line.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use metal3_domain::objectives::{Objectives, Subject};
use metal3_flags::{
    AtOnce, BmcSecrets, CertificateSource, FlagError, ForeignDeployment, Handling, Options, Owner, Request, Shape,
    TABLE, parse,
};

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn options(line: &str) -> Options {
    match parse(arguments(line)) {
        Ok(Request::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn errors(line: &str) -> Vec<String> {
    parse(arguments(line))
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn defaults_are_those_of_the_go_managers() {
    let options = options("--controllers=ipam");
    assert_eq!(options.controllers, [Owner::Ipam]);
    assert_eq!(
        (options.health.as_deref(), options.diagnostics.as_deref()),
        (Some(":9440"), Some(":8443"))
    );
    assert_eq!((options.webhook_port, options.pools_at_once), (Some(9443), 10));
    assert_eq!(
        options.webhook_folder.to_str(),
        Some("/tmp/k8s-webhook-server/serving-certs/")
    );
    assert_eq!(
        (options.namespace, options.watch_filter, options.kubeconfig),
        (None, None, None)
    );
    assert_eq!((options.election, options.pace), (None, None));
    assert_eq!(options.tls.min_version, "VersionTLS12");
    assert!(!options.observe_only && !options.force && !options.insecure_diagnostics);
    assert_eq!(options.warnings, Vec::<String>::new());
}

#[test]
fn spelling_is_that_of_go() {
    for line in [
        "--controllers=ipam --observe-only --namespace=metal",
        "-controllers=ipam -observe-only=true -namespace metal",
        "--controllers ipam --observe-only=1 --namespace metal",
        "--controllers=,ipam, --observe-only=false --observe-only --namespace=x --namespace=metal",
    ] {
        let options = options(line);
        assert!(options.observe_only, "{line}");
        assert_eq!(options.namespace.as_deref(), Some("metal"), "{line}");
    }
    assert!(!options("--controllers=ipam --observe-only --observe-only=false").observe_only);
}

#[test]
fn the_arguments_of_the_go_manager_s_deployment_are_accepted() {
    let line = "--controllers=ipam --webhook-port=9443 --diagnostics-address=:8443 --insecure-diagnostics=false \
                --leader-elect --sync-period=10m --v=4 --logging-format=json";
    let options = options(line);
    assert!(options.election.is_some());
    assert_eq!((options.log_level.as_str(), options.log_format.as_str()), ("4", "json"));
    assert_eq!(options.warnings.len(), 1, "{:?}", options.warnings);
    assert!(
        options
            .warnings
            .iter()
            .all(|warning| warning.contains("--sync-period does nothing"))
    );
}

#[test]
fn aliases_set_the_same_option() {
    let options = options("--controllers=ipam --enable-leader-election --metrics-addr=127.0.0.1:1");
    assert!(options.election.is_some());
    assert_eq!(options.diagnostics.as_deref(), Some("127.0.0.1:1"));
    for (given, expected) in [
        ("--enableBMHNameBasedPreallocation=true", true),
        ("--enableBMHNameBasedPreallocation=false", false),
    ] {
        let options = self::options(&format!("--controllers=capm3 {given}"));
        assert_eq!(options.names_claims_by_host, expected, "{given}");
    }
}

#[test]
fn host_flags_have_the_go_manager_s_defaults() {
    let usual = options("--controllers=hosts");
    assert_eq!(usual.controllers, [Owner::Hosts]);
    assert_eq!((usual.hosts_at_once, usual.retries), (None, 5));
    assert_eq!((usual.deprovision_budget, usual.fake_hardware), (100, false));
    assert_eq!(
        (usual.bmc_secrets, usual.plain_node_names),
        (BmcSecrets::Labelled, false)
    );
    assert!(!usual.builds_agent_images && options("--controllers=hosts --build-preprov-image").builds_agent_images);
    let given = options(
        "--controllers=hosts --controller-concurrency=3 --max-provisioning-retries=0 --deprovision-budget=7 \
         --lab-fake-hardware --enable-leader-election --provisioner=ironic --dev --bmc-secrets=any --adopt-plain-node-names",
    );
    assert_eq!((given.hosts_at_once, given.retries), (Some(3), 0));
    assert_eq!((given.deprovision_budget, given.fake_hardware), (7, true));
    assert_eq!((given.bmc_secrets, given.plain_node_names), (BmcSecrets::Any, true));
    assert!(given.election.is_some());
    assert_eq!(
        options("--controllers=hosts,ipam,hosts").controllers,
        [Owner::Hosts, Owner::Ipam]
    );
}

/// Every flag that any release of the Go managers since 1.9, respectively 0.9, defines itself, with its default or an equal
/// value.
#[test]
fn every_flag_of_the_go_managers_releases_is_known() {
    let hosts = "--namespace= --metrics-addr=:8443 --enable-leader-election=false --build-preprov-image=false \
                 --hostclaims=false --dev=false --demo-mode=false --test-mode=false --provisioner=ironic \
                 --health-addr=:9440 --webhook-port=9443 --kube-api-qps=20 --kube-api-burst=30 --tls-min-version=TLS12 \
                 --tls-max-version=TLS13 --tls-cipher-suites= --tls-curve-preferences= --controller-concurrency=0 \
                 --max-provisioning-retries=5 --lease-duration-seconds= --renew-deadline-seconds= \
                 --retry-period-seconds=";
    options(&format!("--controllers=hosts {hosts}"));
    let both = "--leader-elect=false --watch-filter= --sync-period=10m --webhook-port=9443 \
                --webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs/ --health-addr=:9440 --namespace= \
                --kube-api-qps=20 --kube-api-burst=30 --tls-min-version=VersionTLS12 --tls-cipher-suites= \
                --diagnostics-address=:8443 --insecure-diagnostics=false --logging-format=text \
                --log-flush-frequency=5s --v=0 --vmodule= --log-text-split-stream=false \
                --log-text-info-buffer-size=0 --log-json-split-stream=false --log-json-info-buffer-size=0";
    options(&format!("--controllers=ipam {both} --ippool-concurrency=10"));
    let capm3 = "--leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --leader-elect-retry-period=2s \
                 --clustercache-client-qps=20 --clustercache-client-burst=30 --metal3machine-concurrency=10 \
                 --metal3cluster-concurrency=10 --metal3datatemplate-concurrency=10 --metal3data-concurrency=10 \
                 --metal3labelsync-concurrency=10 --metal3machinetemplate-concurrency=10 \
                 --metal3remediation-concurrency=10 --enable-bmh-name-based-preallocation=false \
                 --skip-crd-migration-phases=";
    options(&format!("--controllers=capm3 {both} {capm3}"));
}

#[test]
fn lease_of_the_host_controllers_is_set_in_seconds() {
    let line = "--controllers=hosts --enable-leader-election";
    let usual = options(&format!("{line} --lease-duration-seconds=")).election.unwrap();
    assert_eq!(usual.lease, Duration::from_secs(15));
    let given = options(&format!(
        "{line} --lease-duration-seconds=60 --renew-deadline-seconds=40 --retry-period-seconds 5"
    ));
    let election = given.election.unwrap();
    assert_eq!(
        (election.lease, election.renew_deadline, election.retry),
        (Duration::from_mins(1), Duration::from_secs(40), Duration::from_secs(5))
    );
    let text = errors("--controllers=hosts --lease-duration-seconds=1m").join("\n");
    assert!(
        text.contains("--lease-duration-seconds:") && text.contains("a whole number"),
        "{text}"
    );
}

#[test]
fn lease_of_the_environment_is_in_force_where_no_flag_sets_it() {
    let read = |line: &str, variables: &[(&str, &str)]| {
        let arguments = line.split_whitespace().map(str::to_owned);
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        metal3_flags::parse_with(arguments, |name| found(name).map(|(_, value)| (*value).to_owned()))
    };
    let lease = |line: &str, variables: &[(&str, &str)]| {
        let Ok(Request::Run(options)) = read(line, variables) else {
            unreachable!("{line}");
        };
        let election = options.election.unwrap();
        [election.lease, election.renew_deadline, election.retry].map(|span| span.as_secs())
    };
    let line = "--controllers=hosts --enable-leader-election";
    let variables = [
        ("LEASE_DURATION_SECONDS", " 60 "),
        ("RENEW_DEADLINE_SECONDS", "40"),
        ("RETRY_PERIOD_SECONDS", "5"),
    ];
    assert_eq!(lease(line, &[]), [15, 10, 2]);
    assert_eq!(lease(line, &variables), [60, 40, 5]);
    assert_eq!(lease(line, &[("LEASE_DURATION_SECONDS", "")]), [15, 10, 2]);
    for flag in ["--lease-duration-seconds=90", "--leader-elect-lease-duration=90s"] {
        assert_eq!(lease(&format!("{line} {flag}"), &variables), [90, 40, 5], "{flag}");
    }
    for value in ["1m", "-1", "2.5"] {
        let errors = read(line, &[("RETRY_PERIOD_SECONDS", value)]).unwrap_err();
        let text = errors[0].to_string();
        assert!(
            text.starts_with("RETRY_PERIOD_SECONDS:") && text.contains("seconds"),
            "{text}"
        );
    }
}

#[test]
fn capm3_flags_have_the_go_manager_s_defaults() {
    let usual = options("--controllers=capm3");
    assert_eq!(usual.controllers, [Owner::Capm3]);
    let at_once = |clusters, machines, machine_templates, templates, data, remediations| AtOnce {
        clusters,
        machines,
        machine_templates,
        templates,
        data,
        remediations,
    };
    assert_eq!(
        (usual.at_once, usual.names_claims_by_host),
        (at_once(10, 10, 10, 10, 10, 10), false)
    );
    assert_eq!(usual.workload_pace, None);
    assert_eq!((usual.adopts_namesakes, usual.wakes_control_planes), (false, false));
    assert!(!usual.looks_before_joins);
    let line = "--controllers=capm3 --webhook-port=9443 --enable-bmh-name-based-preallocation=true \
                --diagnostics-address=:8443 --insecure-diagnostics=false --metal3cluster-concurrency=1 \
                --metal3machine-concurrency=2 --metal3datatemplate-concurrency=3 --metal3data-concurrency=4 \
                --clustercache-client-qps=5 --clustercache-client-burst=6 --skip-crd-migration-phases=All \
                --metal3machinetemplate-concurrency=6 --metal3remediation-concurrency=5 --adopt-same-name-clusters --nudge-control-plane \
                --join-preflight";
    let given = options(line);
    assert_eq!(
        (given.at_once, given.names_claims_by_host),
        (at_once(1, 2, 6, 3, 4, 5), true)
    );
    assert_eq!((given.pace, given.workload_pace), (None, Some((5.0, 6))));
    assert_eq!((given.adopts_namesakes, given.wakes_control_planes), (true, true));
    assert!(given.looks_before_joins);
    assert_eq!(given.warnings.len(), 1, "{:?}", given.warnings);
    assert_eq!(options("--controllers=ipam,capm3,hosts").controllers, Owner::ALL);
}

#[test]
fn zero_disables_servers() {
    let options = options("--controllers=ipam --webhook-port=0 --health-addr=0 --diagnostics-address=0");
    assert_eq!(
        (options.webhook_port, options.health, options.diagnostics),
        (None, None, None)
    );
}

#[test]
fn values_are_typed() {
    let options = options(
        "--controllers=ipam --leader-elect --leader-elect-lease-duration=1m --leader-elect-renew-deadline=40s \
         --leader-elect-retry-period=3s --kube-api-qps=20 --kube-api-burst=30 --webhook-certificates=self-managed \
         --tls-cipher-suites=A,B --tls-min-version=VersionTLS13 --tls-max-version=TLS13 \
         --tls-curve-preferences=X25519,CurveP256 --foreign-deployments=ipam=metal/addresses --ippool-concurrency=3 \
         --kubeconfig=/x --insecure-diagnostics --watch-filter=blue",
    );
    let election = options.election.unwrap();
    assert_eq!(
        (election.lease, election.renew_deadline),
        (Duration::from_secs(60), Duration::from_secs(40))
    );
    assert_eq!(election.retry, Duration::from_secs(3));
    assert_eq!(options.pace, Some((20.0, 30)));
    assert_eq!(options.certificates, CertificateSource::SelfManaged);
    assert_eq!(options.tls.cipher_suites, ["A", "B"]);
    assert_eq!(
        (options.tls.min_version.as_str(), options.tls.max_version.as_str()),
        ("VersionTLS13", "TLS13")
    );
    assert_eq!(options.tls.curves, ["X25519", "CurveP256"]);
    assert_eq!(
        options.foreign,
        [ForeignDeployment {
            controllers: Owner::Ipam,
            namespace: "metal".to_owned(),
            name: "addresses".to_owned(),
        }]
    );
    assert_eq!(options.pools_at_once, 3);
    assert_eq!(options.kubeconfig.as_deref(), Some("/x".as_ref()));
    assert!(options.insecure_diagnostics);
    assert_eq!(options.watch_filter.as_deref(), Some("blue"));
}

/// A flag and a value of it, where the type alone allows values that are invalid, or are set already.
const VALUES: [(&str, &str); 12] = [
    ("allowed-bmc-networks", "192.0.2.0/24"),
    ("bmc-secrets", "any"),
    ("controllers", "capm3"),
    ("enable-leader-election", "false"),
    ("foreign-deployments", "ipam=metal/addresses"),
    ("leader-elect", "false"),
    ("lease-duration-seconds", "7"),
    ("renew-deadline-seconds", "7"),
    ("retry-period-seconds", "7"),
    ("state-objectives", "host/inspecting=7s"),
    ("tls-min-version", "VersionTLS13"),
    ("webhook-certificates", "self-managed"),
];

/// A value of a type.
const fn any(shape: Shape) -> &'static str {
    match shape {
        Shape::Switch => "true",
        Shape::Number => "7",
        Shape::Span => "7s",
        Shape::Text | Shape::List => "x",
    }
}

#[test]
fn each_flag_without_effect_is_named_with_the_reason() {
    let ignored = TABLE.iter().filter_map(|flag| match flag.handling {
        Handling::Ignored(why) => Some((flag, why)),
        _ => None,
    });
    for (flag, why) in ignored {
        let options = options(&format!("--controllers=ipam --{}={}", flag.name, any(flag.shape)));
        assert_eq!(options.warnings, [format!("--{} does nothing: {why}", flag.name)]);
    }
}

#[test]
fn each_flag_changes_the_options() {
    // Some flags have no effect without one of these.
    let line = "--controllers=ipam --leader-elect --kube-api-qps=1 --clustercache-client-qps=1 \
                --webhook-client-ca-file=/ca.crt";
    let usual = options(line);
    for flag in TABLE {
        let is_read = matches!(flag.handling, Handling::Supported | Handling::Alias(_));
        if !is_read || ["help", "version"].contains(&flag.name) {
            continue;
        }
        let known = VALUES.iter().find(|(name, _)| *name == flag.name);
        let value = known.map_or(any(flag.shape), |(_, value)| value);
        let mut given = options(&format!("{line} --{}={value}", flag.name));
        given.warnings.clear();
        assert_ne!(given, usual, "{}", flag.name);
    }
}

#[test]
fn invalid_arguments_are_reported_with_flag_and_remedy() {
    for (line, words) in [
        ("", ["--controllers:", "write --controllers=ipam"]),
        ("--controllers=", ["--controllers:", "write --controllers=ipam"]),
        ("--controllers=all", ["\"all\"", "one of ipam"]),
        ("--controllers=ipam --nonsense", ["--nonsense:", "--help"]),
        ("--controllers=ipam stray", ["\"stray\"", "is no flag"]),
        ("--controllers=ipam --", ["\"--\"", "is no flag"]),
        ("--controllers=ipam --=x", ["\"--=x\"", "is no flag"]),
        ("--controllers=ipam --namespace", ["--namespace:", "--namespace=VALUE"]),
        (
            "--controllers=ipam --observe-only=maybe",
            ["--observe-only:", "true or false"],
        ),
        (
            "--controllers=ipam --webhook-port=99999",
            ["--webhook-port:", "from 0 to 65535"],
        ),
        ("--controllers=ipam --webhook-port=x", ["--webhook-port:", "a number"]),
        (
            "--controllers=ipam --ippool-concurrency=0",
            ["--ippool-concurrency:", "from 1"],
        ),
        (
            "--controllers=ipam --leader-elect-retry-period=2",
            ["--leader-elect-retry-period:", "10s"],
        ),
        (
            "--controllers=ipam --webhook-certificates=none",
            ["--webhook-certificates:", "self-managed"],
        ),
        (
            "--controllers=hosts --bmc-secrets=none",
            ["--bmc-secrets:", "labelled or any"],
        ),
        (
            "--controllers=hosts --allowed-bmc-networks=192.0.2.0/24,bmc.example.org",
            ["--allowed-bmc-networks:", "a network such as"],
        ),
        (
            "--controllers=hosts --allowed-image-hosts=http://images.example.org",
            ["--allowed-image-hosts:", "a host name"],
        ),
        (
            "--controllers=capm3 --allowed-workload-endpoints=192.0.2.0/33",
            ["--allowed-workload-endpoints:", "a host name"],
        ),
        (
            "--controllers=ipam --metal3machine-concurrency=0",
            ["--metal3machine-concurrency:", "from 1"],
        ),
    ] {
        let text = errors(line).join("\n");
        assert!(words.iter().all(|word| text.contains(word)), "{line}: {text}");
    }
}

#[test]
fn unsupported_host_flags_are_rejected() {
    for (line, words) in [
        (
            "--controllers=hosts --watch-filter=x",
            ["--watch-filter:", "in a process of their own"],
        ),
        (
            "--controllers=hosts --namespace=a,b",
            ["--namespace:", "a process for each"],
        ),
        (
            "--controllers=hosts --max-provisioning-retries=-1",
            ["--max-provisioning-retries:", "from 0"],
        ),
        (
            "--controllers=hosts --deprovision-budget=x",
            ["--deprovision-budget:", "a number"],
        ),
        (
            "--controllers=hosts --provisioner=demo",
            ["--provisioner:", "no plugins"],
        ),
        ("--controllers=hosts --demo-mode", ["--demo-mode:", "no plugins"]),
        ("--controllers=hosts --test-mode", ["--test-mode:", "no plugins"]),
    ] {
        let text = errors(line).join("\n");
        assert!(words.iter().all(|word| text.contains(word)), "{line}: {text}");
    }
}

#[test]
fn names_of_clients_without_their_ca_are_refused_with_the_flag_to_add() {
    let names = "--controllers=ipam --webhook-client-names=kube-apiserver";
    let errors = errors(names);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("--webhook-client-names") && errors[0].contains("--webhook-client-ca-file"));
    let options = options(&format!("{names} --webhook-client-ca-file=/ca.crt"));
    assert_eq!(options.webhook_client_ca.as_deref(), Some("/ca.crt".as_ref()));
    assert_eq!(options.webhook_client_names, ["kube-apiserver"]);
}

#[test]
fn observe_only_rejects_self_managed_certificates() {
    let text = errors("--controllers=ipam --observe-only --webhook-certificates=self-managed").join("\n");
    for words in [
        "--webhook-certificates:",
        "--observe-only writes nothing",
        "--insecure-diagnostics",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn foreign_deployments_are_unique_and_well_formed() {
    for (line, words) in [
        (
            "--controllers=ipam --foreign-deployments=ipam=a/b,ipam=c/d",
            ["\"ipam=c/d\"", "CONTROLLERS=NAMESPACE/NAME"],
        ),
        (
            "--controllers=ipam --foreign-deployments=addresses=a/b",
            ["--foreign-deployments:", "of ipam, capm3, hosts"],
        ),
        (
            "--controllers=ipam --foreign-deployments=ipam=name",
            ["--foreign-deployments:", "NAMESPACE/NAME"],
        ),
    ] {
        let text = errors(line).join("\n");
        assert!(words.iter().all(|word| text.contains(word)), "{line}: {text}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    assert_eq!(errors("--nonsense --observe-only=x --controllers=all").len(), 3);
}

#[test]
fn the_default_value_of_an_unsupported_flag_is_accepted() {
    assert!(
        options("--controllers=ipam --hostclaims=false --max-provisioning-retries=5")
            .warnings
            .is_empty()
    );
}

#[test]
fn help_and_version_take_precedence_over_errors() {
    for line in ["--help", "-h", "--nonsense --help"] {
        assert!(matches!(parse(arguments(line)), Ok(Request::Help(_))), "{line}");
    }
    let version = Request::Version(format!("capm3 {}\n", metal3_flags::version::version()));
    for line in ["--version", "--nonsense --version"] {
        assert_eq!(parse(arguments(line)), Ok(version.clone()), "{line}");
    }
}

#[test]
fn no_argument_causes_a_panic() {
    let inputs = [
        "",
        "-",
        "--",
        "---",
        "=",
        "-=",
        "--é=ü",
        "--v=",
        "--v=NaN",
        "--v=inf",
        "--kube-api-qps=-1",
        "\u{0}",
    ];
    for argument in inputs {
        drop(parse([argument.to_owned()]));
        for flag in TABLE {
            drop(parse([format!("--{}", flag.name), argument.to_owned()]));
            drop(parse([format!("--{}={argument}", flag.name)]));
        }
    }
}

#[test]
fn the_table_is_sorted_and_consistent() {
    assert!(TABLE.is_sorted_by(|one, other| one.name < other.name));
    for flag in TABLE {
        match flag.handling {
            Handling::Supported => assert!(!flag.description.is_empty(), "{}", flag.name),
            Handling::Alias(other) => {
                let other = TABLE.iter().find(|flag| flag.name == other).unwrap();
                assert_eq!(
                    (other.shape, other.handling),
                    (flag.shape, Handling::Supported),
                    "{}",
                    flag.name
                );
            }
            Handling::Ignored(_) | Handling::Refused(_) => assert!(!flag.owners.is_empty(), "{}", flag.name),
        }
        if flag.shape == Shape::Switch {
            assert_eq!(flag.default, "false", "{}", flag.name);
        }
    }
}

#[test]
fn errors_can_be_matched_by_variant() {
    assert_eq!(
        parse(["--x".to_owned()]).unwrap_err().first(),
        Some(&FlagError::Unknown("x".into()))
    );
}

#[test]
fn objectives_of_states_are_replaced_one_by_one() {
    let given = options(
        "--controllers=hosts --state-objectives=host/inspecting=40m,machine/pending=0 --state-objectives=host/registering=90s",
    );
    let of = |subject, state| given.objectives.of(subject, state);
    assert_eq!(of(Subject::Host, "inspecting"), Some(Duration::from_mins(40)));
    assert_eq!(of(Subject::Host, "registering"), Some(Duration::from_secs(90)));
    assert_eq!(of(Subject::Machine, "pending"), None);
    assert_eq!(
        of(Subject::Host, "deprovisioning"),
        Objectives::default().of(Subject::Host, "deprovisioning")
    );
    for item in [
        "host/inspecting",
        "host/inspecting=40",
        "host/none of these=1m",
        "inspecting=1m",
    ] {
        let arguments = ["--controllers=hosts".to_owned(), format!("--state-objectives={item}")];
        let faults = parse(arguments).unwrap_err();
        let text = faults.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains(item) && text.contains("host/STATE=DURATION"), "{text}");
    }
}
