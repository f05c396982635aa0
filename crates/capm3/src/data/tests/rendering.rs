use metal3_domain::network_data::NetworkData;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::super::Problem;
use super::super::pools::Grant;
use super::templates::specs;
use super::{fixture, grant};

proptest! {
    #[test]
    fn rendering_is_total_and_deterministic_and_reads_back_unchanged(spec in specs(), v6 in any::<bool>()) {
        let fixture = fixture(spec);
        let grant = if v6 { Grant { address: "fd00::50".to_owned(), ..grant() } } else { grant() };
        let rendered = fixture.render(&grant);
        prop_assert_eq!(&rendered, &fixture.render(&grant));
        match rendered {
            Ok((meta_data, network_data)) => {
                let read: Value = serde_saphyr::from_str(&meta_data).map_err(|error| TestCaseError::fail(format!("{error}\n{meta_data}")))?;
                let read = read.as_object().cloned().unwrap_or_default();
                prop_assert!(read.values().all(Value::is_string), "{}", meta_data);
                prop_assert_eq!(&read["providerid"], "lab/host-7/w-0");
                let read = serde_saphyr::from_str::<NetworkData>(&network_data);
                prop_assert!(read.is_ok(), "{:?}\n{}", read, network_data);
            }
            Err(error) => {
                prop_assert!(!matches!(error.problem, Problem::NotGranted(_)), "{error}: it was not collected");
                prop_assert!(error.field.starts_with("spec."), "{error}");
            }
        }
    }
}

/// Metadata with one list of one entry, by default of the key `k`.
fn meta_data(list: &str, mut entry: Value) -> Value {
    entry.as_object_mut().unwrap().entry("key").or_insert("k".into());
    json!({ "metaData": { list: [entry] } })
}

fn rendered(spec: Value) -> String {
    fixture(spec).render(&grant()).unwrap().0
}

/// List, entry without its key, and the expected value.
fn sources() -> Vec<(&'static str, Value, &'static str)> {
    let of = |object: &str, member: &str, name: &str| json!({ "object": object, member: name });
    let largest = json!({ "offset": i32::MAX, "step": i32::MAX });
    vec![
        ("strings", json!({ "value": "on" }), "\"on\""),
        ("objectNames", json!({ "object": "machine" }), "md-x"),
        ("indexes", json!({ "offset": 10, "step": 5, "prefix": "n-" }), "n-20"),
        ("indexes", json!({ "suffix": "-z" }), "2-z"),
        ("indexes", json!({ "step": 0 }), "\"2\""),
        ("indexes", largest, "\"6442450941\""),
        ("namespaces", json!({}), "lab"),
        ("ipAddressesFromPool", json!({ "name": "p" }), "10.1.2.50"),
        ("prefixesFromPool", json!({ "name": "p" }), "\"24\""),
        ("gatewaysFromPool", json!({ "name": "p" }), "10.1.2.1"),
        ("dnsServersFromPool", json!({ "name": "p" }), "9.9.9.9,1.1.1.1"),
        (
            "fromHostInterfaces",
            json!({ "interface": "eno1" }),
            "52:54:00:aa:00:01",
        ),
        (
            "fromHostInterfaces",
            json!({ "fromBootMAC": true }),
            "52:54:00:0a:0b:0c",
        ),
        ("fromHostInterfaces", json!({ "interface": "eno2" }), "\"\""),
        ("fromLabels", of("machine", "label", "zone"), "north"),
        ("fromLabels", of("machine", "label", "none"), "\"\""),
        ("fromAnnotations", of("machine", "annotation", "pool"), "p"),
        ("fromAnnotations", of("baremetalhost", "annotation", "pool"), "\"\""),
    ]
}

#[test]
fn every_source_of_metadata_gives_its_value() {
    for (list, entry, value) in sources() {
        let expected = format!("k: {value}\nproviderid: lab/host-7/w-0\n");
        assert_eq!(rendered(meta_data(list, entry.clone())), expected, "{list} {entry}");
    }
}

#[test]
fn provider_id_overrides_every_other_source() {
    assert_eq!(
        rendered(meta_data("strings", json!({ "key": "providerid", "value": "x" }))),
        "providerid: lab/host-7/w-0\n"
    );
}

/// One network of this kind.
fn network(kind: &str, mut network: Value) -> Value {
    (network["id"], network["link"]) = ("n".into(), "a".into());
    json!({ "networkData": { "networks": { kind: [network] } } })
}

/// The error of a template that cannot be rendered.
fn render_error(spec: &Value) -> (String, String) {
    let error = fixture(spec.clone()).render(&grant()).unwrap_err();
    (error.field.clone(), error.to_string())
}

#[test]
fn metadata_errors_have_field_and_remedy() {
    for (list, entry, remedy) in [
        ("fromHostInterfaces", json!({ "interface": "eno9" }), "eno1, eno2"),
        ("fromHostInterfaces", json!({}), "set interface"),
        ("ipAddressesFromPool", json!({ "name": "No Name" }), "not a pool name"),
        (
            "ipAddressesFromPool",
            json!({ "name": "p", "kind": "Other" }),
            "set apiGroup",
        ),
    ] {
        let (field, text) = render_error(&meta_data(list, entry));
        assert_eq!(field, format!("spec.metaData.{list}[0]"));
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn link_errors_have_field_and_remedy() {
    let of_annotation = json!({ "fromAnnotation": { "object": "metal3machine", "annotation": "mac" } });
    for (mac, field, remedy) in [
        (json!({}), "", "set one of string"),
        (json!({ "string": "zz" }), "", "six pairs"),
        (
            json!({ "fromHostInterface": "eno9" }),
            ".fromHostInterface",
            "eno1, eno2",
        ),
        (
            json!({ "fromHostInterface": "eno2" }),
            ".fromHostInterface",
            "has no MAC address",
        ),
        (of_annotation, ".fromAnnotation", "Metal3Machine lab/w-0"),
    ] {
        let link = json!({ "id": "a", "type": "phy", "macAddress": mac });
        let (found, text) = render_error(&json!({ "networkData": { "links": { "ethernets": [link] } } }));
        assert_eq!(found, format!("spec.networkData.links.ethernets[0].macAddress{field}"));
        assert!(text.contains(remedy), "{text}");
    }
    let parameters = json!([{ "name": "mode", "value": 4 }]);
    let bond = json!({ "id": "b", "bondMode": "802.3ad", "macAddress": {}, "parameters": parameters });
    let (field, text) = render_error(&json!({ "networkData": { "links": { "bonds": [bond] } } }));
    assert_eq!(field, "spec.networkData.links.bonds[0].parameters");
    assert!(text.contains("mode"), "{text}");
}

#[test]
fn network_errors_have_field_and_remedy() {
    let route = |route: Value| json!({ "routes": [route] });
    let annotation = json!({ "fromPoolAnnotation": { "object": "baremetalhost", "annotation": "pool" } });
    let long = route(json!({ "network": "0.0.0.0", "prefix": 33, "gateway": {} }));
    let unannotated = route(json!({ "network": "0.0.0.0", "gateway": annotation }));
    let gateway = ".routes[0].gateway.fromPoolAnnotation";
    let rows = [
        ("ipv4", json!({}), "", "set one of ipAddressFromIPPool"),
        ("ipv6", json!({ "ipAddressFromIPPool": "p" }), "", "IPv6"),
        ("ipv4DHCP", long, ".routes[0].prefix", "0 to 32"),
        ("ipv4DHCP", unannotated, gateway, "BareMetalHost lab/host-7"),
    ];
    for (kind, entry, field, remedy) in rows {
        let (found, text) = render_error(&network(kind, entry));
        assert_eq!(found, format!("spec.networkData.networks.{kind}[0]{field}"));
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn missing_values_of_a_provider_are_empty_or_an_error() {
    let bare = Grant {
        prefix: None,
        gateway: String::new(),
        dns_servers: Vec::new(),
        ..grant()
    };
    let spec = network(
        "ipv4",
        json!({
            "ipAddressFromIPPool": "p",
            "routes": [{ "network": "0.0.0.0", "gateway": { "fromIPPool": "p" }, "services": { "dnsFromIPPool": "p" } }],
        }),
    );
    let text = fixture(spec).render(&bare).unwrap().1;
    assert!(
        text.contains("netmask: \"\"\n") && text.contains("gateway: \"\"\n"),
        "{text}"
    );
    let error = fixture(meta_data("prefixesFromPool", json!({ "name": "p" })))
        .render(&bare)
        .unwrap_err();
    assert!(matches!(error.problem, Problem::NoPrefix(_)), "{error}");
    let wrong = Grant {
        address: "not an address".to_owned(),
        ..grant()
    };
    let wrong = fixture(network("ipv4", json!({ "ipAddressFromIPPool": "p" }))).render(&wrong);
    assert!(matches!(wrong.unwrap_err().problem, Problem::NoAddress { .. }));
}

#[test]
fn pool_is_collected_once_and_only_where_it_is_used() {
    let both = json!({
        "id": "n", "link": "a", "ipAddressFromIPPool": "unused", "fromPoolRef": { "name": "unused" },
        "fromPoolAnnotation": { "object": "machine", "annotation": "pool" },
        "routes": [
            { "network": "0.0.0.0", "gateway": { "string": "10.0.0.1", "fromIPPool": "unused" } },
            { "network": "10.0.0.0", "gateway": { "fromPoolRef": { "name": "r" }, "fromIPPool": "unused" } },
        ],
    });
    let dynamic = json!({
        "id": "d", "link": "a",
        "routes": [{ "network": "::", "gateway": { "fromPoolAnnotation": { "object": "machine", "annotation": "pool" } } }],
    });
    let fixture = fixture(json!({
        "metaData": { "gatewaysFromPool": [{ "key": "a", "name": "p" }, { "key": "b", "name": "p" }] },
        "networkData": { "networks": { "ipv4": [both], "ipv6SLAAC": [dynamic] }, "services": { "dnsFromIPPool": "s" } },
    }));
    let needed = super::needed(fixture.spec(), &fixture.subject()).unwrap();
    let names: Vec<String> = needed.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["p", "r", "s"]);
}

#[test]
fn enough_random_templates_can_be_rendered() {
    let mut runner = TestRunner::deterministic();
    let rendered = (0..256).filter(|_| {
        let spec = specs().new_tree(&mut runner).unwrap().current();
        fixture(spec)
            .render(&grant())
            .is_ok_and(|(meta_data, network_data)| meta_data.lines().count() + network_data.lines().count() > 4)
    });
    let rendered = rendered.count();
    assert!((64..256).contains(&rendered), "{rendered} of 256");
}
