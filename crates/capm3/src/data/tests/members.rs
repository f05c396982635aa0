//! Each member of a template, removed alone, changes what is rendered or which pools are used.

use metal3_api::infrastructure::v1beta2::Metal3DataTemplate;
use metal3_harness::without_effect;
use serde_json::{Value, json};

use super::{fixture, grant};

/// Sources of a link's address.
fn macs() -> [Value; 3] {
    [
        json!({ "string": "52:54:00:00:00:01" }),
        json!({ "fromHostInterface": "eno1" }),
        json!({ "fromAnnotation": { "object": "machine", "annotation": "mac" } }),
    ]
}

/// Three links of a kind, one for each source of the address.
fn links(kind: &Value) -> Value {
    let link = |(position, mac): (usize, Value)| {
        let mut link = kind.clone();
        let base = json!({ "id": format!("l{position}"), "name": "eth0", "mtu": 9000, "macAddress": mac });
        link.as_object_mut().unwrap().extend(base.as_object().unwrap().clone());
        link
    };
    macs().into_iter().enumerate().map(link).collect()
}

/// Sources of a pool.
fn pools() -> (Value, Value) {
    (
        json!({ "name": "r", "apiGroup": "ipam.example.org", "kind": "Pool" }),
        json!({ "object": "machine", "annotation": "pool" }),
    )
}

/// Routes with every source of a gateway and of name servers.
fn routes(network: &str, gateway: &str) -> Value {
    let (reference, annotation) = pools();
    let route = |gateway: Value, services: Value| json!({ "network": network, "prefix": 8, "gateway": gateway, "services": services });
    json!([
        route(json!({ "string": gateway }), json!({ "dns": [gateway] })),
        route(json!({ "fromIPPool": "g" }), json!({ "dnsFromIPPool": "d" })),
        route(json!({ "fromPoolRef": reference }), json!({})),
        route(json!({ "fromPoolAnnotation": annotation }), json!({})),
    ])
}

/// Networks with every source of the address.
fn networks(network: &str, gateway: &str) -> Value {
    let (reference, annotation) = pools();
    json!([
        { "id": "n", "link": "l0", "ipAddressFromIPPool": "p", "routes": routes(network, gateway) },
        { "id": "m", "link": "l0", "fromPoolRef": reference },
        { "id": "o", "link": "l0", "fromPoolAnnotation": annotation },
    ])
}

fn meta_data() -> Value {
    let pool = json!([{ "key": "p", "name": "p", "apiGroup": "ipam.example.org", "kind": "Pool" }]);
    json!({
        "strings": [{ "key": "a", "value": "x" }],
        "objectNames": [{ "key": "b", "object": "machine" }],
        "indexes": [{ "key": "c", "offset": 10, "step": 5, "prefix": "n-", "suffix": "-z" }],
        "namespaces": [{ "key": "d" }],
        "ipAddressesFromPool": pool, "prefixesFromPool": pool, "gatewaysFromPool": pool, "dnsServersFromPool": pool,
        "fromHostInterfaces": [{ "key": "e", "interface": "eno1" }, { "key": "f", "fromBootMAC": true }],
        "fromLabels": [{ "key": "g", "object": "machine", "label": "zone" }],
        "fromAnnotations": [{ "key": "h", "object": "machine", "annotation": "pool" }],
    })
}

/// Templates of one network each, because an address of one family does not fit a network of the other.
fn documents() -> Vec<Value> {
    let bond = json!({
        "bondMode": "802.3ad", "bondXmitHashPolicy": "layer3+4", "bondLinks": ["l0"],
        "parameters": [{ "name": "miimon", "value": 100 }],
    });
    let vlan = json!({ "vlanID": 7, "vlanLink": "l0" });
    let links = json!({ "ethernets": links(&json!({ "type": "phy" })), "bonds": links(&bond), "vlans": links(&vlan) });
    let dynamic =
        |network: &str, gateway: &str| json!([{ "id": "n", "link": "l0", "routes": routes(network, gateway) }]);
    let of = |network_data: Value| json!({ "spec": { "metaData": meta_data(), "networkData": network_data } });
    let network = |kind: &str, entry: Value| of(json!({ "networks": { kind: entry } }));
    vec![
        of(json!({ "links": links, "services": { "dns": ["192.0.2.1"] } })),
        of(json!({ "services": { "dnsFromIPPool": "s" } })),
        network("ipv4", networks("10.0.0.0", "10.0.0.1")),
        network("ipv4DHCP", dynamic("10.0.0.0", "10.0.0.1")),
        network("ipv6", networks("fd00::", "fd00::1")),
        network("ipv6DHCP", dynamic("fd00::", "fd00::1")),
        network("ipv6SLAAC", dynamic("fd00::", "fd00::1")),
    ]
}

#[test]
fn each_member_of_a_template_changes_what_is_rendered_or_its_pools() {
    let outcome = |document: &Value| {
        serde_json::from_value::<Metal3DataTemplate>(document.clone()).ok()?;
        let fixture = fixture(document["spec"].clone());
        let pools = super::needed(fixture.spec(), &fixture.subject()).map_err(|error| error.to_string());
        let address = if document["spec"]["networkData"]["networks"]["ipv6"].is_null() {
            "10.1.2.50"
        } else {
            "fd00::50"
        };
        let grant = super::Grant {
            address: address.to_owned(),
            ..grant()
        };
        let rendered = fixture.render(&grant).map_err(|error| error.to_string());
        Some(format!("{pools:?} {rendered:?}"))
    };
    let documents = documents();
    for document in &documents {
        let outcome = outcome(document).unwrap();
        assert!(outcome.contains("Ok((\""), "{outcome}");
    }
    assert_eq!(
        without_effect(("Metal3DataTemplate", "v1beta2"), &documents, outcome),
        ["spec.clusterName"]
    );
}
