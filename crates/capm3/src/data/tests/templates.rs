//! Random templates, nearly all valid for the schema, for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// A random value of a member.
fn value(of: &str) -> BoxedStrategy<Value> {
    let one = |values: &[&'static str]| select(values.to_vec()).prop_map(Value::from).boxed();
    match of {
        "text" => prop_oneof![
            one(&["on", "0123", "a: b", "52:54:00", "x\u{85}y", "", "é\nx"]),
            "\\PC{0,20}".prop_map(Value::from)
        ]
        .boxed(),
        "texts" => vec(value("text"), 0..3).prop_map(Value::from).boxed(),
        "number" => any::<i32>().prop_map(Value::from).boxed(),
        "prefix" => prop_oneof![9 => 0..=32i32, 1 => any::<i32>()]
            .prop_map(Value::from)
            .boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "object" => one(&["machine", "metal3machine", "baremetalhost"]),
        "interface" => prop_oneof![9 => one(&["eno1"]), 1 => one(&["eno9"])].boxed(),
        "link" => one(&["phy", "hw_veb", "vif"]),
        "mode" => one(&["802.3ad", "balance-rr"]),
        "parameter" => prop_oneof![9 => one(&["miimon", "x"]), 1 => one(&["mode"])].boxed(),
        "setting" => select(vec![
            json!(100),
            json!("fast"),
            json!(null),
            json!({ "a": [1, null, "yes"] }),
        ])
        .boxed(),
        "kind" => prop_oneof![9 => one(&["IPPool"]), 1 => one(&["Other"])].boxed(),
        "pool" => prop_oneof![30 => one(&["p", "q", "a.b"]), 1 => one(&["Not A Name", ""])].boxed(),
        "reference" => reference(),
        "annotation" => {
            let good = Just(json!({ "object": "machine", "annotation": "pool" }));
            let any = (value("object"), one(&["pool", "missing"]))
                .prop_map(|(object, annotation)| json!({ "object": object, "annotation": annotation }));
            prop_oneof![9 => good, 1 => any].boxed()
        }
        "mac" => {
            let good = select(vec![
                json!({ "string": "52:54:00:11:22:33" }),
                json!({ "fromHostInterface": "eno1" }),
                json!({ "fromAnnotation": { "object": "machine", "annotation": "mac" } }),
            ]);
            prop_oneof![30 => good, 1 => select(vec![json!({ "string": "zz" }), json!({})])].boxed()
        }
        "gateway" => some(members(&format!("fromIPPool:pool {SOURCES} string:text"))),
        "services" => some(members("dns:texts dnsFromIPPool:pool")),
        "routes" => list("network:text gateway:gateway", "prefix:prefix services:services"),
        "parameters" => list("name:parameter", "value:setting"),
        other => panic!("{other}"),
    }
}

/// The members that may name a pool and take precedence over its plain name.
const SOURCES: &str = "fromPoolRef:reference fromPoolAnnotation:annotation";

fn reference() -> BoxedStrategy<Value> {
    let kinds = select(vec![
        json!({}),
        json!({ "kind": "NetboxPool", "apiGroup": "ipam.example.com" }),
        json!({ "kind": "InClusterIPPool", "apiGroup": "ipam.cluster.x-k8s.io" }),
    ]);
    let kinds = prop_oneof![9 => kinds, 1 => Just(json!({ "kind": "InClusterIPPool" }))];
    let named = (value("pool"), kinds).prop_map(|(pool, mut reference)| {
        reference["name"] = pool;
        reference
    });
    named.boxed()
}

type Members = Vec<(String, BoxedStrategy<Value>)>;

/// Members as `name:value`, separated by spaces.
fn members(text: &str) -> Members {
    let pairs = text.split_whitespace().map(|pair| pair.split_once(':').unwrap());
    pairs.map(|(name, of)| (name.to_owned(), value(of))).collect()
}

/// An object with a random subset of these members.
fn some(members: Members) -> BoxedStrategy<Value> {
    let members = members
        .into_iter()
        .map(|(name, value)| option::of(value).prop_map(move |value| value.map(|value| (name.clone(), value))));
    let members: Vec<_> = members.collect();
    let object = members.prop_map(|members| Value::Object(members.into_iter().flatten().collect()));
    object.boxed()
}

/// A list of objects with required and optional members.
fn list(required: &str, optional: &str) -> BoxedStrategy<Value> {
    let (names, values): (Vec<String>, Vec<_>) = members(required).into_iter().unzip();
    let item = (values, some(members(optional))).prop_map(move |(values, mut item)| {
        let required: Map<String, Value> = names.iter().cloned().zip(values).collect();
        item.as_object_mut().unwrap().extend(required);
        item
    });
    vec(item, 0..3).prop_map(Value::from).boxed()
}

/// An object with a random subset of these lists: name, required and optional members.
fn lists(lists: &[(&str, &str, &str)]) -> BoxedStrategy<Value> {
    let lists = lists.iter();
    some(
        lists
            .map(|(name, required, optional)| ((*name).to_owned(), list(required, optional)))
            .collect(),
    )
}

fn meta_data() -> BoxedStrategy<Value> {
    lists(&[
        ("strings", "key:text value:text", ""),
        ("objectNames", "key:text object:object", ""),
        (
            "indexes",
            "key:text",
            "offset:number step:number prefix:text suffix:text",
        ),
        ("namespaces", "key:text", ""),
        ("ipAddressesFromPool", "key:text name:pool", "kind:kind"),
        ("prefixesFromPool", "key:text name:pool", "kind:kind"),
        ("gatewaysFromPool", "key:text name:pool", "kind:kind"),
        ("dnsServersFromPool", "key:text name:pool", "kind:kind"),
        (
            "fromHostInterfaces",
            "key:text",
            "interface:interface fromBootMAC:boolean",
        ),
        ("fromLabels", "key:text object:object label:text", ""),
        ("fromAnnotations", "key:text object:object annotation:text", ""),
    ])
}

fn links() -> BoxedStrategy<Value> {
    let bond = "name:text mtu:number bondLinks:texts parameters:parameters";
    lists(&[
        ("ethernets", "id:text type:link macAddress:mac", "name:text mtu:number"),
        ("bonds", "id:text bondMode:mode macAddress:mac", bond),
        (
            "vlans",
            "id:text vlanID:number vlanLink:text macAddress:mac",
            "name:text mtu:number",
        ),
    ])
}

fn networks() -> BoxedStrategy<Value> {
    let optional = format!("unread:pool {SOURCES} routes:routes");
    let all = |family: &'static str| {
        lists(&[
            (family, "id:text link:text ipAddressFromIPPool:pool", &optional),
            ("ipv4DHCP", "id:text link:text", "routes:routes"),
            ("ipv6DHCP", "id:text link:text", "routes:routes"),
            ("ipv6SLAAC", "id:text link:text", "routes:routes"),
        ])
    };
    prop_oneof![all("ipv4"), all("ipv6")].boxed()
}

/// Specs of templates. Many of them can be rendered.
pub(super) fn specs() -> BoxedStrategy<Value> {
    let part = |name: &str, part: BoxedStrategy<Value>| (name.to_owned(), part);
    let services = some(members("dnsFromIPPool:pool"));
    let network_data = some(vec![
        part("links", links()),
        part("networks", networks()),
        part("services", services),
    ]);
    prop_oneof![
        some(vec![part("metaData", meta_data())]),
        some(vec![part("networkData", some(vec![part("links", links())]))]),
        some(vec![part("networkData", some(vec![part("networks", networks())]))]),
        some(vec![part("metaData", meta_data()), part("networkData", network_data)]),
    ]
    .boxed()
}
