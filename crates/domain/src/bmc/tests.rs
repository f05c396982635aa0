use serde_json::{Value, json};

use super::*;
use crate::uri::UriError;

const LOGIN: Credentials<'_> = Credentials {
    username: "operator",
    password: "s3cret",
};

fn parse(text: &str) -> BmcAddress {
    BmcAddress::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn driver_info(text: &str) -> Value {
    parse(text)
        .driver_info(&LOGIN, CertificateVerification::Required)
        .into_json()
}

fn error(text: &str) -> BmcAddressError {
    BmcAddress::parse(text).expect_err(text)
}

/// Features of a row: needs MAC, secure boot, ISO, provisioning network, RAID, fast inspection.
struct Row {
    scheme: &'static str,
    driver: &'static str,
    boot: &'static str,
    raid: &'static str,
    of_idrac: bool,
    features: [bool; 6],
}

const IPMI: Row = Row {
    scheme: "ipmi",
    driver: "ipmi",
    boot: "ipxe",
    raid: "no-raid",
    of_idrac: false,
    features: [false, false, false, true, false, false],
};
const NETWORK: [bool; 6] = [false, true, false, true, true, true];
const ISO: [bool; 6] = [false, true, true, false, true, true];

/// One row per scheme, transports included.
fn every_scheme() -> Vec<Row> {
    let redfish = |scheme, boot, features| Row {
        scheme,
        driver: "redfish",
        boot,
        raid: "redfish",
        of_idrac: false,
        features,
    };
    let idrac = |scheme, boot, features| Row {
        scheme,
        driver: "idrac",
        boot,
        raid: "idrac-redfish",
        of_idrac: true,
        features,
    };
    vec![
        IPMI,
        Row {
            scheme: "libvirt",
            features: [true, false, false, true, false, false],
            ..IPMI
        },
        redfish("redfish", "ipxe", NETWORK),
        redfish("redfish+http", "ipxe", NETWORK),
        redfish("redfish+https", "ipxe", NETWORK),
        redfish("ilo5-redfish", "ipxe", NETWORK),
        redfish("ilo5-redfish+http", "ipxe", NETWORK),
        redfish("ilo5-redfish+https", "ipxe", NETWORK),
        idrac("idrac-redfish", "ipxe", NETWORK),
        idrac("idrac-redfish+http", "ipxe", NETWORK),
        idrac("idrac-redfish+https", "ipxe", NETWORK),
        redfish("redfish-virtualmedia", "redfish-virtual-media", ISO),
        redfish("redfish-virtualmedia+http", "redfish-virtual-media", ISO),
        redfish("redfish-virtualmedia+https", "redfish-virtual-media", ISO),
        redfish("ilo5-virtualmedia", "redfish-virtual-media", ISO),
        redfish("ilo5-virtualmedia+http", "redfish-virtual-media", ISO),
        redfish("ilo5-virtualmedia+https", "redfish-virtual-media", ISO),
        idrac("idrac-virtualmedia", "idrac-redfish-virtual-media", ISO),
        idrac("idrac-virtualmedia+http", "idrac-redfish-virtual-media", ISO),
        idrac("idrac-virtualmedia+https", "idrac-redfish-virtual-media", ISO),
        redfish("redfish-uefihttp", "redfish-https", ISO),
        redfish("redfish-uefihttp+http", "redfish-https", ISO),
        redfish("redfish-uefihttp+https", "redfish-https", ISO),
    ]
}

#[test]
fn each_scheme_has_its_driver_interfaces_and_features() {
    for row in every_scheme() {
        let address = parse(&format!("{}://bmc.example/redfish/v1/Systems/7", row.scheme));
        let profile = address.profile();
        assert_eq!(address.type_name(), row.scheme);
        assert_eq!(profile.driver, row.driver, "{}", row.scheme);
        let speaks_redfish = (row.driver != "ipmi").then_some("redfish");
        let idrac = row.of_idrac.then_some("idrac-redfish");
        let interfaces = [
            ("bios", idrac),
            ("boot", Some(row.boot)),
            ("firmware", speaks_redfish),
            ("inspect", speaks_redfish),
            ("management", idrac),
            ("power", idrac),
            ("raid", Some(row.raid)),
            ("vendor", idrac),
        ];
        assert_eq!(profile.interfaces.named(), interfaces, "{}", row.scheme);
        let features = [
            profile.needs_mac,
            profile.secure_boot,
            profile.iso_preprovisioning_image,
            profile.requires_provisioning_network,
            profile.supports_raid(),
            profile.supports_fast_inspection(),
        ];
        assert_eq!(features, row.features, "{}", row.scheme);
    }
}

#[test]
fn each_scheme_sets_the_driver_info_of_its_controller() {
    for row in every_scheme() {
        let text = format!("{}://bmc.example:8443/redfish/v1/Systems/7", row.scheme);
        let expected = if row.driver == "ipmi" {
            json!({"ipmi_address": "bmc.example", "ipmi_port": "8443", "ipmi_priv_level": "ADMINISTRATOR",
                   "ipmi_username": "operator", "ipmi_password": "s3cret"})
        } else {
            let scheme = if row.scheme.ends_with("+http") { "http" } else { "https" };
            json!({"redfish_address": format!("{scheme}://bmc.example:8443"),
                   "redfish_system_id": "/redfish/v1/Systems/7",
                   "redfish_username": "operator", "redfish_password": "s3cret"})
        };
        assert_eq!(driver_info(&text), expected, "{text}");
    }
}

#[test]
fn every_kind_is_in_the_table() {
    let rows: Vec<_> = every_scheme().iter().map(|row| row.scheme).collect();
    for kind in Kind::ALL {
        assert!(rows.contains(&kind.profile().scheme), "{kind:?}");
    }
}

#[test]
fn verification_is_set_only_when_disabled() {
    for (text, key) in [("ipmi://bmc", "ipmi_verify_ca"), ("redfish://bmc", "redfish_verify_ca")] {
        let with = |disabled| parse(text).driver_info(&LOGIN, CertificateVerification::unless_disabled(disabled));
        assert_eq!(with(false).get(key), None);
        assert_eq!(with(true).get(key), Some(&Value::Bool(false)));
    }
}

#[test]
fn ipmi_port_is_kept_as_text_and_defaults_to_623() {
    for (text, port) in [
        ("ipmi://192.0.2.1", "623"),
        ("ipmi://192.0.2.1:", "623"),
        ("ipmi://192.0.2.1:0", "0"),
        ("ipmi://192.0.2.1:00623", "00623"),
        ("ipmi://192.0.2.1:70000", "70000"),
        ("ipmi://[2001:db8::1]:6230", "6230"),
    ] {
        assert_eq!(driver_info(text)["ipmi_port"], port, "{text}");
    }
}

#[test]
fn privilege_level_is_the_first_in_a_sound_query() {
    for (query, level) in [
        ("", "ADMINISTRATOR"),
        ("?privilegelevel=OPERATOR", "OPERATOR"),
        ("?a=b&privilegelevel=USER&privilegelevel=OPERATOR", "USER"),
        ("?privilegelevel=", ""),
        ("?privilegelevel", ""),
        ("?PrivilegeLevel=USER", "ADMINISTRATOR"),
        ("?privilegelevel=A%42C+D", "ABC D"),
        ("?privilegelevel=USER&x=%zz", "ADMINISTRATOR"),
        ("?privilegelevel=USER;x=y", "ADMINISTRATOR"),
    ] {
        assert_eq!(
            driver_info(&format!("ipmi://bmc{query}"))["ipmi_priv_level"],
            level,
            "{query:?}"
        );
    }
}

#[test]
fn text_without_a_scheme_is_an_ipmi_host() {
    for (text, host, port) in [
        ("192.0.2.1", "192.0.2.1", None),
        ("192.0.2.1:6230", "192.0.2.1", Some("6230")),
        ("[2001:db8::1]:6230", "2001:db8::1", Some("6230")),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("bmc-1.example", "bmc-1.example", None),
        ("192.0.2.1/path", "192.0.2.1", None),
    ] {
        let result = BmcAddress::parse(text);
        if text == "[2001:db8::1]" {
            // Go reads a colon in the first path segment and then finds no port.
            assert_eq!(result.map_err(|error| error.class()), Err(BmcErrorClass::Invalid));
            continue;
        }
        let address = result.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(
            (address.kind(), address.host(), address.port()),
            (Kind::Ipmi, host, port),
            "{text:?}"
        );
    }
}

#[test]
fn name_with_a_port_reads_as_an_unknown_scheme() {
    for text in ["bmc-1:6230", "bmc-1.example:6230"] {
        assert_eq!(error(text).class(), BmcErrorClass::UnknownType, "{text:?}");
    }
}

#[test]
fn scheme_is_read_without_case_and_with_one_colon_alone() {
    assert_eq!(parse("REDFISH+HTTP://bmc/x").type_name(), "redfish+http");
    let address = parse("redfish:bmc.example");
    assert_eq!((address.kind(), address.host()), (Kind::Redfish, "bmc.example"));
}

#[test]
fn ipv6_keeps_its_brackets_in_the_url_only() {
    let text = "redfish+http://[2001:db8::7]:8000/redfish/v1/Systems/1";
    assert_eq!(driver_info(text)["redfish_address"], "http://[2001:db8::7]:8000");
    let address = parse("ipmi://[2001:db8::7]");
    assert_eq!(address.host(), "2001:db8::7");
    assert!(address.ip().is_some_and(|ip| ip.is_ipv6()));
    assert_eq!(parse("ipmi://bmc.example").ip(), None);
}

#[test]
fn path_names_the_system_unless_it_is_the_service_root() {
    for kind in ["redfish", "redfish-uefihttp"] {
        for (path, system) in [
            ("", Value::Null),
            ("/", Value::Null),
            ("/redfish/v1", Value::Null),
            ("/redfish/v1/", Value::Null),
            ("/redfish/v1/Systems/1", json!("/redfish/v1/Systems/1")),
            ("/redfish/v1/Systems/1/", json!("/redfish/v1/Systems/1/")),
            ("/redfish/v1/Systems/1?x=y#z", json!("/redfish/v1/Systems/1")),
            ("/../x", json!("/../x")),
            ("/a%20b", json!("/a b")),
        ] {
            let info = driver_info(&format!("{kind}://bmc{path}"));
            assert_eq!(
                info.get("redfish_system_id").unwrap_or(&Value::Null),
                &system,
                "{kind} {path:?}"
            );
        }
    }
}

#[test]
fn hosts_are_addresses_or_dns_names() {
    let longest = "a".repeat(63);
    for host in ["", "bmc", "1bmc", "a-b.c", "999.999.999.999", &longest, "192.0.2.1"] {
        assert!(BmcAddress::parse(&format!("redfish://{host}/x")).is_ok(), "{host:?}");
    }
    let too_long = "a".repeat(64);
    for host in [
        "-a",
        "a-.b",
        "a..b",
        "a.",
        "a_b",
        "b\u{fc}cher.example",
        &too_long,
        "%25",
        "[fe80::1%25eth0]",
    ] {
        let error = error(&format!("redfish://{host}/x"));
        assert!(matches!(error, BmcAddressError::Host { .. }), "{host:?}: {error:?}");
    }
}

#[test]
fn unreadable_text_is_invalid() {
    let rows = [
        ("redfish://[::1", UriError::UnclosedBracket),
        ("redfish://[192.0.2.1]/", UriError::BracketedHost),
        ("redfish://[bmc]/", UriError::BracketedHost),
        ("redfish://bmc:80:80/", UriError::Port),
        ("redfish://::1/", UriError::Port),
        ("redfish://bmc:http/", UriError::Port),
        ("redfish://bmc/%zz:", UriError::Escape),
        (" ", UriError::HostCharacter),
        ("redfish:a b", UriError::HostCharacter),
        ("redfish://b%41c:1/", UriError::Escape),
        ("redfish://u[s:x@bmc/", UriError::UserInfo),
    ];
    for (text, source) in rows {
        match error(text) {
            BmcAddressError::Malformed { source: found, .. } => assert_eq!(found, source, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
    for text in [
        "ipmi://192.0.2.1\nX",
        "ipmi://192.0.2.1\0",
        "bad%zz",
        "bad%zz:623",
        "2001:db8::1",
    ] {
        assert_eq!(error(text).class(), BmcErrorClass::Invalid, "{text:?}");
    }
    assert_eq!(error(""), BmcAddressError::Missing);
}

#[test]
fn removed_drivers_are_unknown() {
    for scheme in [
        "idrac",
        "ilo4",
        "ilo4-virtualmedia",
        "ilo5",
        "irmc",
        "ibmc",
        "http",
        "https",
        "ipmi+http",
        "redfish+ftp",
    ] {
        let text = format!("{scheme}://bmc.example/x");
        assert_eq!(
            error(&text).to_string(),
            format!("Unknown BMC type '{scheme}' for address {text}")
        );
    }
}

#[test]
fn user_info_is_not_the_host_and_is_dropped() {
    let address = parse("redfish://good.example:s3cret@evil.example/redfish/v1/Systems/1");
    assert_eq!((address.host(), address.authority()), ("evil.example", "evil.example"));
    assert!(!format!("{address:?}").contains("s3cret"));
}

#[test]
fn no_error_repeats_user_info() {
    for text in [
        "foo://admin:s3cret@bmc/x",
        "redfish://admin:s3cret@b_c/x",
        "redfish://admin:s3/cret@bmc:x/",
        "redfish://admin:s3cret@bmc:x/",
        "admin:s3cret@bmc",
        "redfish://admin:s3cret@[::1/",
        "s3cret@b c",
    ] {
        let error = error(text);
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("s3/cret"),
            "{text:?}: {shown}"
        );
    }
}

#[test]
fn passwords_are_not_printed() {
    let info = parse("redfish://bmc").driver_info(&LOGIN, CertificateVerification::Disabled);
    for shown in [format!("{LOGIN:?}"), format!("{info:?}"), format!("{info:#?}")] {
        assert!(shown.contains("operator") && !shown.contains("s3cret"), "{shown}");
    }
    assert_eq!(info.get("redfish_password"), Some(&json!("s3cret")));
}
