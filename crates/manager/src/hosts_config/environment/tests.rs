use metal3_ironic::endpoint::Endpoint;

use super::*;

const ENDPOINT: (&str, &str) = ("IRONIC_ENDPOINT", "https://ironic.example.org:6385/v1/");

fn read(variables: &[(&str, &str)], files: &[&str]) -> Result<Environment, Vec<VariableError>> {
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Environment::read(find, |path| files.iter().any(|file| path == Path::new(file)))
}

/// The settings of an endpoint.
fn at(read: &Environment) -> Settings {
    let [
        NamedIronic {
            name,
            source: IronicSource::Endpoint(settings),
        },
    ] = read.ironics.as_slice()
    else {
        unreachable!("no resource is named");
    };
    assert_eq!(name, "ironic");
    settings.clone()
}

#[test]
fn an_ironic_resource_is_named_by_variables_and_trust_is_that_of_the_environment() {
    let name = ("IRONIC_NAME", "ironic");
    let own = ("POD_NAMESPACE", "system");
    let watched = ("WATCH_NAMESPACE", "hosts");
    for (variables, namespace) in [
        (vec![name, ("IRONIC_NAMESPACE", "metal3"), own, watched], "metal3"),
        (vec![name, own, watched], "system"),
        (vec![name, watched], "hosts"),
    ] {
        let read = read(&variables, &[CA, CERTIFICATE, KEY]).unwrap();
        let [
            NamedIronic {
                name,
                source: IronicSource::Resource(followed),
            },
        ] = read.ironics.as_slice()
        else {
            unreachable!("{variables:?}");
        };
        assert_eq!(name, "ironic");
        assert_eq!(followed.resource.to_string(), format!("{namespace}/ironic"));
        assert!(followed.trust.ca.is_some() && followed.trust.client.is_some());
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    }
    for (variables, named, cure) in [
        (vec![name], "IRONIC_NAMESPACE", "the namespace of the Ironic resource"),
        (
            vec![("IRONIC_NAME", "a.example.org/"), own],
            "IRONIC_NAME",
            "no name of an object",
        ),
        (
            vec![name, ("IRONIC_NAMESPACE", "a b")],
            "IRONIC_NAMESPACE",
            "no name of an object",
        ),
    ] {
        let faults = read(&variables, &[]).unwrap_err();
        assert!(
            faults[0].variable == named && faults[0].why.contains(cure),
            "{faults:?}"
        );
    }
    let alone = read(&[ENDPOINT, ("IRONIC_NAMESPACE", "metal3")], &[]).unwrap();
    assert_eq!(alone.warnings, ["IRONIC_NAMESPACE has no effect without IRONIC_NAME"]);
    let both = read(&[name, own, ENDPOINT], &[]).unwrap();
    assert!(
        both.warnings[0].starts_with("IRONIC_ENDPOINT has no effect"),
        "{:?}",
        both.warnings
    );
}

/// The name, where it is, its login and its trust.
fn shown(ironic: &NamedIronic) -> String {
    let trust = ironic.source.trust();
    let at = match &ironic.source {
        IronicSource::Resource(followed) => followed.resource.to_string(),
        IronicSource::Endpoint(settings) => match &settings.login {
            Login::Folder(folder) => format!("login of {}", folder.display()),
            _ => "open".to_owned(),
        },
    };
    let file = |path: Option<&Path>| path.map_or_else(String::new, |path| format!(", {}", path.display()));
    let key = trust.client.as_ref().map(|client| client.key.as_path());
    format!(
        "{}: {at}{}{}",
        ironic.name,
        file(trust.ca.as_ref().and_then(Ca::file)),
        file(key)
    )
}

#[test]
fn several_ironics_are_resources_and_endpoints_each_with_its_own_login_and_trust() {
    let list = ("IRONIC_ENDPOINTS", "site-b=https://b:6385, site-c=http://c:6385,");
    let files = [
        CA,
        "/opt/metal3/auth/ironic/username",
        "/opt/metal3/auth/site-b/username",
        "/opt/metal3/auth/site-b/ca.crt",
        "/opt/metal3/auth/site-b/tls.crt",
        "/opt/metal3/auth/site-b/tls.key",
    ];
    let of_b =
        "site-b: login of /opt/metal3/auth/site-b, /opt/metal3/auth/site-b/ca.crt, /opt/metal3/auth/site-b/tls.key";
    let of_c = format!("site-c: open, {CA}");
    let resource = |name: &str, namespace: &str| format!("{name}: {namespace}/{name}, {CA}");
    for (variables, expected) in [
        (vec![list], vec![of_b.to_owned(), of_c.clone()]),
        (
            vec![ENDPOINT, list],
            vec![
                format!("ironic: login of /opt/metal3/auth/ironic, {CA}"),
                of_b.to_owned(),
                of_c.clone(),
            ],
        ),
        (
            vec![("IRONIC_NAME", "one,there/two"), OWN, list],
            vec![
                resource("one", "system"),
                resource("two", "there"),
                of_b.to_owned(),
                of_c.clone(),
            ],
        ),
    ] {
        let read = read(&variables, &files).unwrap();
        let all: Vec<String> = read.ironics.iter().map(shown).collect();
        assert_eq!(all, expected, "{variables:?}");
        assert_eq!(read.warnings, Vec::<String>::new());
    }
}

/// Variables and files with a mistake, the variable that is named and a part of the cure.
type Mistake = (
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    &'static str,
    &'static str,
);

const OWN: (&str, &str) = ("POD_NAMESPACE", "system");
const MISTAKES: &[Mistake] = &[
    (
        &[("IRONIC_ENDPOINTS", "https://b:6385")],
        &[],
        "IRONIC_ENDPOINTS",
        "write name=https",
    ),
    (
        &[("IRONIC_ENDPOINTS", "B=https://b:6385")],
        &[],
        "IRONIC_ENDPOINTS",
        "lower case",
    ),
    (&[("IRONIC_ENDPOINTS", "b=ftp://b")], &[], "IRONIC_ENDPOINTS", "http"),
    (
        &[("IRONIC_ENDPOINTS", "b=https://b,b=https://c")],
        &[],
        "IRONIC_ENDPOINTS",
        "two Ironics",
    ),
    (
        &[ENDPOINT, ("IRONIC_ENDPOINTS", "ironic=https://b")],
        &[],
        "IRONIC_ENDPOINTS",
        "two Ironics",
    ),
    (
        &[("IRONIC_ENDPOINTS", "b=https://b:6385,c=https://B:6385/v1/")],
        &[],
        "IRONIC_ENDPOINTS",
        "the same URL",
    ),
    (
        &[ENDPOINT, ("IRONIC_ENDPOINTS", "b=https://ironic.example.org:6385")],
        &[],
        "IRONIC_ENDPOINTS",
        "the same URL",
    ),
    (&[("IRONIC_NAME", "a,x/a"), OWN], &[], "IRONIC_NAME", "two Ironics"),
    (
        &[("IRONIC_ENDPOINTS", "b=https://b")],
        &["/opt/metal3/auth/b/tls.crt"],
        "IRONIC_ENDPOINTS",
        "a certificate needs its key",
    ),
    (
        &[("IRONIC_ENDPOINTS", " , ")],
        &[],
        "IRONIC_ENDPOINT",
        "must be the URL",
    ),
];

#[test]
fn mistake_in_the_list_of_ironics_is_named_with_its_variable_and_cure() {
    for (variables, files, variable, cure) in MISTAKES {
        let faults = read(variables, files).unwrap_err();
        let is_named = faults[0].variable == *variable && faults[0].why.contains(cure);
        assert!(is_named && faults.len() == 1, "{variables:?}: {faults:?}");
    }
}

#[test]
fn an_endpoint_alone_is_enough_and_defaults_are_those_of_the_go_manager() {
    let read = read(&[ENDPOINT], &[]).unwrap();
    assert!(matches!(at(&read).login, Login::Open));
    assert!(at(&read).trust.ca.is_none() && at(&read).trust.client.is_none() && !at(&read).trust.insecure);
    assert_eq!(at(&read).time_limit, Duration::from_secs(30));
    assert_eq!((read.slots, read.workers), (20, None));
    assert_eq!(read.node, NodeSettings::default());
    assert!(read.warnings.is_empty());
}

#[test]
fn mounted_files_are_found_at_the_paths_of_the_go_manager() {
    let read = read(&[ENDPOINT], &["/opt/metal3/auth/ironic/username", CA, CERTIFICATE, KEY]).unwrap();
    let Login::Folder(folder) = &at(&read).login else {
        unreachable!("there is a login");
    };
    assert_eq!(folder, Path::new("/opt/metal3/auth/ironic"));
    assert_eq!(at(&read).trust.ca.as_ref().and_then(Ca::file), Some(Path::new(CA)));
    let client = at(&read).trust.client.unwrap();
    assert_eq!(
        (client.certificate.as_path(), client.key.as_path()),
        (Path::new(CERTIFICATE), Path::new(KEY))
    );
}

#[test]
fn the_empty_directory_of_an_absent_secret_means_no_credentials() {
    let read = read(&[ENDPOINT], &["/opt/metal3/auth/ironic"]).unwrap();
    assert!(matches!(at(&read).login, Login::Open));
}

#[test]
fn each_variable_sets_its_field() {
    let variables = [
        ENDPOINT,
        ("METAL3_AUTH_ROOT_DIR", "/login"),
        ("IRONIC_CACERT_FILE", "/ca"),
        ("IRONIC_INSECURE", "True"),
        ("IRONIC_CLIENT_TIMEOUT", "1m30s"),
        ("DEPLOY_KERNEL_URL", "http://images/kernel"),
        ("DEPLOY_RAMDISK_URL", "http://images/ramdisk"),
        ("DEPLOY_ISO_URL", "http://images/iso"),
        ("PROVISIONING_LIMIT", "3"),
        ("BMO_CONCURRENCY", "17"),
        ("PROVISIONING_NETWORK_DISABLED", "true"),
        ("LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE", "Never"),
        ("DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE", "Always"),
        ("IRONIC_EXTERNAL_URL_V6", "https://[2001:db8::1]:6385"),
        ("WATCH_NAMESPACE", "metal"),
        ("IRONIC_CLIENT_CACHE_TTL", "5s"),
    ];
    let read = read(&variables, &["/login/ironic/password", "/ca"]).unwrap();
    assert_eq!(Ok(&at(&read).endpoint), Endpoint::parse(ENDPOINT.1).as_ref());
    assert!(matches!(&at(&read).login, Login::Folder(folder) if folder == Path::new("/login/ironic")));
    assert_eq!(at(&read).trust.ca.as_ref().and_then(Ca::file), Some(Path::new("/ca")));
    assert!(at(&read).trust.insecure);
    assert_eq!(at(&read).time_limit, Duration::from_secs(90));
    assert_eq!((read.slots, read.workers), (3, Some(17)));
    let node = read.node;
    assert!(node.provisioning_network_disabled && !node.fake_hardware);
    let usual = node.ramdisks.usual;
    assert_eq!(usual.kernel.as_deref(), Some("http://images/kernel"));
    assert_eq!(usual.initramfs.as_deref(), Some("http://images/ramdisk"));
    assert_eq!(usual.iso.as_deref(), Some("http://images/iso"));
    assert_eq!(
        (node.live_iso_boot_device.as_str(), node.direct_boot_device.as_str()),
        ("Never", "Always")
    );
    assert_eq!(node.external_url_v6.as_deref(), Some("https://[2001:db8::1]:6385"));
    assert_eq!(read.namespace.as_deref(), Some("metal"));
    assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
}

/// As with the Go manager: the variable of one architecture, then the list, then the common one.
#[test]
fn agents_of_an_architecture_are_those_of_its_variables_then_of_the_lists() {
    let variables = [
        ENDPOINT,
        ("DEPLOY_ISO_URL", "http://images/iso"),
        (
            "DEPLOY_ISO_BY_ARCH",
            "AArch64:http://images/list-arm, riscv64:https://images/list-risc,aarch64:http://images/second",
        ),
        ("DEPLOY_ISO_URL_X86_64", "http://images/x86"),
        (
            "DEPLOY_KERNEL_BY_ARCH",
            "x86_64:http://images/list-kernel,aarch64:http://images/arm-kernel",
        ),
        ("DEPLOY_RAMDISK_BY_ARCH", "x86_64:http://images/list-ramdisk"),
        ("DEPLOY_KERNEL_URL_X86_64", "http://images/kernel"),
        ("DEPLOY_RAMDISK_URL_AARCH64", "http://images/arm-ramdisk"),
        ("DEPLOY_ISO_URL_AARCH64", ""),
    ];
    let ramdisks = read(&variables, &[]).unwrap().node.ramdisks;
    let shown = ramdisks.by_architecture.iter().map(|(architecture, of)| {
        let text = |url: &Option<String>| url.as_deref().unwrap_or("-").replace("http://images/", "");
        format!(
            "{architecture} {} {} {}",
            text(&of.kernel),
            text(&of.initramfs),
            text(&of.iso)
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "aarch64 arm-kernel arm-ramdisk list-arm",
            "riscv64 - - https://images/list-risc",
            "x86_64 kernel list-ramdisk x86",
        ]
    );
    assert_eq!(ramdisks.usual.iso.as_deref(), Some("http://images/iso"));
}

#[test]
fn each_variable_without_effect_is_named_with_the_reason() {
    let ignored = metal3_flags::VARIABLES
        .iter()
        .filter(|variable| variable.description.starts_with("Ignored"));
    let ignored: Vec<&str> = ignored.map(|variable| variable.name).collect();
    assert_eq!(ignored.len(), 1);
    for variable in ignored {
        let warnings = read(&[ENDPOINT, (variable, "x")], &[]).unwrap().warnings;
        assert!(
            warnings.len() == 1 && warnings[0].starts_with(variable),
            "{variable}: {warnings:?}"
        );
        assert!(
            warnings[0].split_once(' ').is_some_and(|(_, why)| why.len() > 20),
            "{warnings:?}"
        );
    }
}

#[test]
fn an_invalid_value_is_reported_with_variable_and_fix() {
    for (variable, value, cure) in [
        ("IRONIC_ENDPOINT", "ironic", "write https://host:6385"),
        (
            "IRONIC_ENDPOINT",
            "https://admin:hunter2@host",
            "user name and password apart",
        ),
        ("IRONIC_CACERT_FILE", "/nowhere", "mount it"),
        ("IRONIC_INSECURE", "maybe", "true or false"),
        ("IRONIC_CLIENT_TIMEOUT", "0", "such as 30s"),
        ("IRONIC_CLIENT_TIMEOUT", "-1s", "such as 30s"),
        ("DEPLOY_KERNEL_URL", "http://images/kernel", "write both"),
        ("DEPLOY_RAMDISK_URL", "http://images/ramdisk", "write both"),
        ("DEPLOY_ISO_URL", "images/hunter2.iso", "write one such as"),
        ("DEPLOY_ISO_URL_AARCH64", "images/hunter2.iso", "write one such as"),
        ("DEPLOY_ISO_BY_ARCH", "http://hunter2/iso", "write one such as x86_64:"),
        ("DEPLOY_ISO_BY_ARCH", "x86_64:hunter2", "write one such as x86_64:"),
        (
            "DEPLOY_KERNEL_URL_AARCH64",
            "http://images/kernel",
            "DEPLOY_RAMDISK_URL_AARCH64: a kernel of aarch64 needs its ramdisk",
        ),
        (
            "DEPLOY_RAMDISK_BY_ARCH",
            "x86_64:http://images/r",
            "a ramdisk of x86_64 needs its kernel",
        ),
        ("PROVISIONING_LIMIT", "many", "from 0"),
        ("BMO_CONCURRENCY", "0", "from 1"),
        ("PROVISIONING_NETWORK_DISABLED", "yes", "true or false"),
        (
            "LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE",
            "default",
            "Default, Always, Never",
        ),
        ("WATCH_NAMESPACE", "a,b", "a process for each"),
        ("IRONIC_SKIP_CLIENT_SAN_VERIFY", "true", "a certificate for the name"),
        ("IRONIC_NETWORKING_ENABLED", "yes", "write true or false"),
    ] {
        // The first of two takes precedence.
        let faults = read(&[(variable, value), ENDPOINT], &[]).unwrap_err();
        let text = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(
            text.contains(cure) && !text.contains("hunter2"),
            "{variable}={value}: {text}"
        );
        let is_named = |name: &str| faults.iter().any(|fault| fault.variable == name);
        assert!(
            is_named(variable) || variable.starts_with("DEPLOY_"),
            "{variable}={value}: {text}"
        );
    }
}

#[test]
fn switches_are_configured_by_four_variables() {
    let names = [
        "IRONIC_SWITCH_CONFIGS_SECRET",
        "IRONIC_SWITCH_CREDENTIALS_SECRET",
        "IRONIC_SWITCH_CREDENTIALS_PATH",
    ];
    let given = |enabled: &'static str, values: [&'static str; 3]| {
        let mut variables = vec![ENDPOINT, ("IRONIC_NETWORKING_ENABLED", enabled)];
        variables.extend(names.into_iter().zip(values));
        read(&variables, &[])
    };
    let valid = ["configs", "keys", "/etc/keys"];
    for enabled in ["1", "t", "T", "true", "TRUE", "True"] {
        let switches = given(enabled, valid).unwrap().switches.unwrap();
        assert_eq!(
            [&*switches.configs, &*switches.keys, &*switches.folder],
            valid,
            "{enabled}"
        );
    }
    for enabled in ["", "0", "f", "F", "false", "FALSE", "False"] {
        let read = given(enabled, valid).unwrap();
        assert!(read.switches.is_none(), "{enabled}");
        for name in names {
            let is_it =
                |text: &String| text.starts_with(&format!("{name} has no effect without IRONIC_NETWORKING_ENABLED"));
            assert!(read.warnings.iter().any(is_it), "{name}: {:?}", read.warnings);
        }
    }
    for (values, wrong) in [
        (["", "", ""], &names[..]),
        (["A_b", "keys", "/k"], &names[..1]),
        (["same", "same", "/k"], &names[1..2]),
        (["configs", "keys", "relative"], &names[2..]),
        (["configs", "keys", "/a b"], &names[2..]),
        (["configs", "keys", "/a\npassword=x"], &names[2..]),
    ] {
        let faults = given("true", values).unwrap_err();
        let named: Vec<&str> = faults.iter().map(|fault| fault.variable).collect();
        assert_eq!(named, wrong, "{values:?}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let faults = read(&[("BMO_CONCURRENCY", "x"), ("PROVISIONING_LIMIT", "x")], &[]).unwrap_err();
    let named: Vec<&str> = faults.iter().map(|fault| fault.variable).collect();
    assert_eq!(named, ["IRONIC_ENDPOINT", "PROVISIONING_LIMIT", "BMO_CONCURRENCY"]);
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let faults = read(&[ENDPOINT], &[CERTIFICATE]).unwrap_err();
    assert_eq!(
        faults.first().map(|fault| fault.variable),
        Some("IRONIC_CLIENT_PRIVATE_KEY_FILE")
    );
}

#[test]
fn certificate_and_key_are_read_from_the_files_of_their_variables() {
    let variables = [
        ENDPOINT,
        ("IRONIC_CLIENT_CERT_FILE", "/c"),
        ("IRONIC_CLIENT_PRIVATE_KEY_FILE", "/k"),
    ];
    let client = read(&variables, &["/c", "/k"])
        .map(|read| at(&read))
        .unwrap()
        .trust
        .client
        .unwrap();
    assert_eq!(
        (client.certificate.as_path(), client.key.as_path()),
        (Path::new("/c"), Path::new("/k"))
    );
}

#[test]
fn documented_variables_are_exactly_those_that_are_read() {
    let requested = std::cell::RefCell::new(std::collections::BTreeSet::new());
    for given in [&[ENDPOINT][..], &[("IRONIC_NAME", "ironic"), ("WATCH_NAMESPACE", "a")]] {
        let find = |name: &str| {
            requested.borrow_mut().insert(name.to_owned());
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        assert!(Environment::read(find, |_| false).is_ok());
    }
    // That of a Pod is no setting of hosts.
    requested.borrow_mut().remove("POD_NAMESPACE");
    // The parser of flags reads the lease.
    let lease = |name: &str| {
        requested.borrow_mut().insert(name.to_owned());
        None
    };
    assert!(metal3_flags::parse_with(["--help".to_owned()], lease).is_ok());
    let documented: Vec<&str> = metal3_flags::VARIABLES.iter().map(|variable| variable.name).collect();
    assert_eq!(requested.into_inner().into_iter().collect::<Vec<_>>(), documented);
}

/// The Go manager compares with the word true only, so that another word left the verification of certificates on.
#[test]
fn only_the_word_true_turns_verification_and_the_provisioning_network_off() {
    for variable in ["IRONIC_INSECURE", "PROVISIONING_NETWORK_DISABLED"] {
        for (value, expected) in [
            ("true", true),
            ("TRUE", true),
            ("false", false),
            ("0", false),
            ("", false),
        ] {
            let read = read(&[ENDPOINT, (variable, value)], &[]).unwrap();
            let found = [at(&read).trust.insecure, read.node.provisioning_network_disabled];
            assert_eq!(found.contains(&true), expected, "{variable}={value}");
        }
        for value in ["1", "t", "T", "yes"] {
            let Err(error) = read(&[ENDPOINT, (variable, value)], &[]) else {
                panic!("{variable}={value} is accepted");
            };
            assert!(format!("{error:?}").contains(variable), "{error:?}");
        }
    }
}

#[test]
fn with_images_of_agents_urls_are_public_and_a_kernel_may_be_alone() {
    let read = |variable: (&str, &str)| {
        let variables = [ENDPOINT, variable];
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Environment::read_for(find, |_| false, true)
    };
    for (variable, value) in [
        ("DEPLOY_ISO_URL", "http://u:hunter2@images/iso"),
        ("DEPLOY_ISO_URL", "http://images/iso?token=hunter2"),
        ("DEPLOY_ISO_URL_AARCH64", "http://u:hunter2@images/iso"),
        ("DEPLOY_ISO_BY_ARCH", "x86_64:http://u:hunter2@images/iso"),
    ] {
        let faults = read((variable, value)).unwrap_err();
        let text = faults[0].to_string();
        assert!(
            text.starts_with(variable) && text.contains("use a URL without them"),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
    for alone in ["DEPLOY_KERNEL_URL", "DEPLOY_KERNEL_URL_AARCH64"] {
        assert!(read((alone, "http://images/kernel")).is_ok(), "{alone}");
    }
    assert!(read(("DEPLOY_RAMDISK_URL", "http://images/ramdisk")).is_err());
}
