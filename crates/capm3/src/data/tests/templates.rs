//! Random templates, nearly all valid for the schema, for property tests.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["on", "0123", "a: b", "52:54:00", "x\u{85}y", "", "é\nx"]).prop_map(ToOwned::to_owned),
        "\\PC{0,20}"
    ]
}

fn object() -> impl Strategy<Value = Value> {
    select(vec!["machine", "metal3machine", "baremetalhost"]).prop_map(Value::from)
}

fn pool() -> impl Strategy<Value = Value> {
    let named = select(vec!["p", "q", "a.b"]);
    prop_oneof![30 => named, 1 => select(vec!["Not A Name", ""])].prop_map(Value::from)
}

fn annotation() -> impl Strategy<Value = Value> {
    let good = Just(json!({ "object": "machine", "annotation": "pool" }));
    prop_oneof![9 => good, 1 => any_annotation()]
}

fn any_annotation() -> impl Strategy<Value = Value> {
    (object(), select(vec!["pool", "missing"]))
        .prop_map(|(object, annotation)| json!({ "object": object, "annotation": annotation }))
}

fn reference() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        json!({}),
        json!({ "kind": "NetboxPool", "apiGroup": "ipam.example.com" }),
        json!({ "kind": "InClusterIPPool", "apiGroup": "ipam.cluster.x-k8s.io" }),
    ]);
    let kinds = prop_oneof![9 => kinds, 1 => Just(json!({ "kind": "InClusterIPPool" }))];
    (pool(), kinds).prop_map(|(pool, mut reference)| {
        reference["name"] = pool;
        reference
    })
}

/// An object with a random subset of these members.
fn some(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| {
            proptest::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
        })
        .collect();
    members
        .prop_map(|members| Value::Object(members.into_iter().flatten().collect()))
        .boxed()
}

/// A list of objects with required and optional members.
fn list(
    required: Vec<(&'static str, BoxedStrategy<Value>)>,
    optional: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let names: Vec<&'static str> = required.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = required.into_iter().map(|(_, value)| value).collect();
    let item = (values, some(optional)).prop_map(move |(values, mut item)| {
        for (name, value) in names.iter().zip(values) {
            item[*name] = value;
        }
        item
    });
    proptest::collection::vec(item, 0..3).prop_map(Value::from).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    text().prop_map(Value::from).boxed()
}

fn numbers() -> BoxedStrategy<Value> {
    any::<i32>().prop_map(Value::from).boxed()
}

fn meta_data() -> BoxedStrategy<Value> {
    let key = || ("key", texts());
    let kind = || {
        prop_oneof![9 => Just("IPPool"), 1 => Just("Other")]
            .prop_map(Value::from)
            .boxed()
    };
    let from_pool = || list(vec![key(), ("name", pool().boxed())], vec![("kind", kind())]);
    some(vec![
        ("strings", list(vec![key(), ("value", texts())], vec![])),
        ("objectNames", list(vec![key(), ("object", object().boxed())], vec![])),
        (
            "indexes",
            list(
                vec![key()],
                vec![
                    ("offset", numbers()),
                    ("step", numbers()),
                    ("prefix", texts()),
                    ("suffix", texts()),
                ],
            ),
        ),
        ("namespaces", list(vec![key()], vec![])),
        ("ipAddressesFromPool", from_pool()),
        ("prefixesFromPool", from_pool()),
        ("gatewaysFromPool", from_pool()),
        ("dnsServersFromPool", from_pool()),
        (
            "fromHostInterfaces",
            list(
                vec![key()],
                vec![
                    (
                        "interface",
                        prop_oneof![9 => Just("eno1"), 1 => Just("eno9")]
                            .prop_map(Value::from)
                            .boxed(),
                    ),
                    ("fromBootMAC", any::<bool>().prop_map(Value::from).boxed()),
                ],
            ),
        ),
        (
            "fromLabels",
            list(vec![key(), ("object", object().boxed()), ("label", texts())], vec![]),
        ),
        (
            "fromAnnotations",
            list(
                vec![key(), ("object", object().boxed()), ("annotation", texts())],
                vec![],
            ),
        ),
    ])
}

fn links() -> BoxedStrategy<Value> {
    let mac = || {
        let good = select(vec![
            json!({ "string": "52:54:00:11:22:33" }),
            json!({ "fromHostInterface": "eno1" }),
            json!({ "fromAnnotation": { "object": "machine", "annotation": "mac" } }),
        ]);
        prop_oneof![30 => good, 1 => select(vec![json!({ "string": "zz" }), json!({})])].boxed()
    };
    let common = || vec![("name", texts()), ("mtu", numbers())];
    let kind = select(vec!["phy", "hw_veb", "vif"]).prop_map(Value::from).boxed();
    let mode = select(vec!["802.3ad", "balance-rr"]).prop_map(Value::from).boxed();
    let parameter_name = prop_oneof![9 => select(vec!["miimon", "x"]), 1 => Just("mode")];
    let parameter_name = parameter_name.prop_map(Value::from).boxed();
    let parameter = select(vec![
        json!(100),
        json!("fast"),
        json!(null),
        json!({ "a": [1, null, "yes"] }),
    ])
    .boxed();
    let mut bond = common();
    bond.push((
        "bondLinks",
        proptest::collection::vec(text(), 0..3).prop_map(Value::from).boxed(),
    ));
    bond.push((
        "parameters",
        list(vec![("name", parameter_name)], vec![("value", parameter)]),
    ));
    some(vec![
        (
            "ethernets",
            list(vec![("id", texts()), ("type", kind), ("macAddress", mac())], common()),
        ),
        (
            "bonds",
            list(vec![("id", texts()), ("bondMode", mode), ("macAddress", mac())], bond),
        ),
        (
            "vlans",
            list(
                vec![
                    ("id", texts()),
                    ("vlanID", numbers()),
                    ("vlanLink", texts()),
                    ("macAddress", mac()),
                ],
                common(),
            ),
        ),
    ])
}

fn networks() -> BoxedStrategy<Value> {
    let sources = |name: &'static str| {
        vec![
            (name, pool().boxed()),
            ("fromPoolRef", reference().boxed()),
            ("fromPoolAnnotation", annotation().boxed()),
        ]
    };
    let routes = move || {
        let mut gateway = sources("fromIPPool");
        gateway.push(("string", texts()));
        let prefix = prop_oneof![9 => 0..=32i32, 1 => any::<i32>()];
        let prefix = prefix.prop_map(Value::from).boxed();
        let services = some(vec![
            (
                "dns",
                proptest::collection::vec(text(), 0..3).prop_map(Value::from).boxed(),
            ),
            ("dnsFromIPPool", pool().boxed()),
        ]);
        list(
            vec![("network", texts()), ("gateway", some(gateway))],
            vec![("prefix", prefix), ("services", services)],
        )
    };
    let fixed = move || {
        let mut optional = sources("unread");
        optional.push(("routes", routes()));
        let required = vec![
            ("id", texts()),
            ("link", texts()),
            ("ipAddressFromIPPool", pool().boxed()),
        ];
        list(required, optional)
    };
    let supplied = move || list(vec![("id", texts()), ("link", texts())], vec![("routes", routes())]);
    let all = move |family: &'static str| {
        some(vec![
            (family, fixed()),
            ("ipv4DHCP", supplied()),
            ("ipv6DHCP", supplied()),
            ("ipv6SLAAC", supplied()),
        ])
    };
    prop_oneof![all("ipv4"), all("ipv6")].boxed()
}

/// Specs of templates. Many of them can be rendered.
pub(super) fn specs() -> BoxedStrategy<Value> {
    let services = some(vec![("dnsFromIPPool", pool().boxed())]);
    let network_data = some(vec![
        ("links", links()),
        ("networks", networks()),
        ("services", services),
    ]);
    prop_oneof![
        some(vec![("metaData", meta_data())]),
        some(vec![("networkData", some(vec![("links", links())]))]),
        some(vec![("networkData", some(vec![("networks", networks())]))]),
        some(vec![("metaData", meta_data()), ("networkData", network_data)]),
    ]
    .boxed()
}
