//! The normal form of an older object after a round trip through the newer version, as a table of changes.

use serde_json::{Map, Value, json};

/// The change of a member.
#[derive(Clone, Copy)]
enum Change {
    /// The newer version does not have it.
    Lost,
    /// It is left out when it has this value.
    LeftOut(fn(&Value) -> bool),
    /// It is set even if it was absent.
    Stated(fn(Option<&Value>) -> Value),
    /// A reference keeps only name and namespace.
    Shortened,
}

use Change::{LeftOut, Lost, Shortened, Stated};

const CLUSTER: &[(&str, Change)] = &[
    ("controlPlaneEndpoint", LeftOut(no_endpoint)),
    ("failureDomains.*.controlPlane", LeftOut(is_false)),
];

const MACHINE: &[(&str, Change)] = &[
    ("providerID", LeftOut(empty_text)),
    ("image", LeftOut(no_image)),
    ("image.checksum", LeftOut(empty_text)),
    ("customDeploy", LeftOut(no_deploy)),
    ("hostSelector", LeftOut(no_selector)),
    ("dataTemplate", Shortened),
    ("failureDomain", LeftOut(empty_text)),
];

const STATUS: &[(&str, Change)] = &[
    ("failureDomains.*.controlPlane", LeftOut(is_false)),
    ("ready", Stated(true_or_false)),
    ("phase", Lost),
    ("renderedData", Shortened),
    ("v1beta2", LeftOut(no_conditions)),
];

const DATA: &[(&str, Change)] = &[
    ("spec.index", LeftOut(zero)),
    ("spec.templateReference", Lost),
    ("spec.template", Shortened),
    ("spec.claim", Shortened),
    ("status.ready", Stated(true_or_false)),
    ("status.errorMessage", LeftOut(empty_text)),
];

const DATA_CLAIM: &[(&str, Change)] = &[
    ("spec.template", Shortened),
    ("status.renderedData", Shortened),
    ("status.errorMessage", LeftOut(empty_text)),
];

const META_DATA: &[(&str, Change)] = &[
    ("indexes.*.offset", LeftOut(zero)),
    ("indexes.*.step", LeftOut(zero)),
    ("indexes.*.prefix", LeftOut(empty_text)),
    ("indexes.*.suffix", LeftOut(empty_text)),
    ("*.*.apiGroup", LeftOut(empty_text)),
    ("*.*.kind", LeftOut(empty_text)),
    ("fromHostInterfaces.*.interface", LeftOut(empty_text)),
];

const NETWORK_DATA: &[(&str, Change)] = &[
    ("links.*.*.name", LeftOut(empty_text)),
    ("links.*.*.mtu", LeftOut(zero)),
    ("links.*.*.macAddress.string", LeftOut(empty_text)),
    ("links.*.*.macAddress.fromHostInterface", LeftOut(empty_text)),
    ("networks.*.*.ipAddressFromIPPool", LeftOut(empty_text)),
    ("networks.*.*.fromPoolRef.apiGroup", LeftOut(empty_text)),
    ("networks.*.*.fromPoolRef.kind", LeftOut(empty_text)),
    ("networks.*.*.fromPoolRef", LeftOut(no_pool)),
    ("networks.*.*.routes.*.prefix", LeftOut(zero)),
    ("networks.*.*.routes.*.gateway.string", LeftOut(empty_text)),
    ("networks.*.*.routes.*.gateway.fromIPPool", LeftOut(empty_text)),
    (
        "networks.*.*.routes.*.gateway.fromPoolRef.apiGroup",
        LeftOut(empty_text),
    ),
    ("networks.*.*.routes.*.gateway.fromPoolRef.kind", LeftOut(empty_text)),
    ("networks.*.*.routes.*.gateway.fromPoolRef", LeftOut(no_pool)),
    ("networks.*.*.routes.*.services.dnsFromIPPool", LeftOut(empty_text)),
    ("networks.*.*.routes.*.services", LeftOut(nothing)),
    ("services.dnsFromIPPool", LeftOut(empty_text)),
    ("links", LeftOut(nothing)),
    ("networks", LeftOut(nothing)),
    ("services", LeftOut(nothing)),
];

const REMEDIATION: &[(&str, Change)] = &[
    ("strategy.type", LeftOut(empty_text)),
    ("strategy.timeout", LeftOut(no_time)),
    ("strategy.retryLimit", LeftOut(no_try)),
];

const REMEDIATION_STATUS: &[(&str, Change)] = &[("phase", LeftOut(empty_text)), ("retryCount", LeftOut(zero))];

/// The object after the round trip, in the encoding of its type: empty lists and maps are left out.
pub(crate) fn normal(kind: &str, mut object: Value) -> Value {
    let template = "spec.template.spec";
    match kind {
        "Metal3Cluster" | "Metal3Machine" | "Metal3Data" => ensure(&mut object, "status", json!({})),
        "Metal3MachineTemplate" => ensure(&mut object, "spec", json!({ "template": { "spec": {} } })),
        _ => {}
    }
    match kind {
        "Metal3Cluster" | "Metal3ClusterTemplate" => {
            let spec = if kind == "Metal3Cluster" { "spec" } else { template };
            apply_all(&mut object, spec, CLUSTER);
            apply(&mut object, &path(spec, ""), &mut cloud_provider);
        }
        "Metal3Machine" => apply_all(&mut object, "spec", MACHINE),
        "Metal3MachineTemplate" => {
            apply_all(&mut object, template, MACHINE);
            apply_all(&mut object, "spec", &[("nodeReuse", Stated(true_or_false))]);
        }
        "Metal3Data" => apply_all(&mut object, "", DATA),
        "Metal3DataClaim" => apply_all(&mut object, "", DATA_CLAIM),
        "Metal3DataTemplate" => {
            apply_all(&mut object, "spec", &[("templateReference", Lost)]);
            apply_all(&mut object, "spec.metaData", META_DATA);
            apply_all(&mut object, "spec.networkData", NETWORK_DATA);
        }
        "Metal3Remediation" | "Metal3RemediationTemplate" => {
            let (spec, status) = match kind {
                "Metal3Remediation" => ("spec", "status"),
                _ => (template, "status.status"),
            };
            apply_all(&mut object, spec, REMEDIATION);
            apply(&mut object, &path(spec, "strategy"), &mut whole_seconds);
            apply_all(&mut object, status, REMEDIATION_STATUS);
        }
        _ => unreachable!("{kind}"),
    }
    if ["Metal3Cluster", "Metal3Machine"].contains(&kind) {
        apply_all(&mut object, "status", STATUS);
    }
    object
}

/// Adds an empty member if it is absent.
fn ensure(object: &mut Value, name: &str, empty: Value) {
    if let Value::Object(members) = object {
        members.entry(name).or_insert(empty);
    }
}

fn path<'a>(prefix: &'a str, rest: &'a str) -> Vec<&'a str> {
    prefix
        .split('.')
        .chain(rest.split('.'))
        .filter(|name| !name.is_empty())
        .collect()
}

fn apply_all(object: &mut Value, prefix: &str, table: &[(&str, Change)]) {
    for (rest, change) in table {
        let mut steps = path(prefix, rest);
        let name = steps.pop().unwrap();
        apply(object, &steps, &mut |parent| alter(parent, name, *change));
    }
}

/// Applies a change to the maps at a path; `*` matches every member or item.
fn apply(value: &mut Value, steps: &[&str], act: &mut dyn FnMut(&mut Map<String, Value>)) {
    match (steps.split_first(), value) {
        (None, Value::Object(map)) => act(map),
        (Some((&"*", rest)), Value::Array(items)) => items.iter_mut().for_each(|item| apply(item, rest, act)),
        (Some((&"*", rest)), Value::Object(map)) => map.values_mut().for_each(|item| apply(item, rest, act)),
        (Some((name, rest)), Value::Object(map)) => {
            if let Some(child) = map.get_mut(*name) {
                apply(child, rest, act);
            }
        }
        _ => {}
    }
}

fn alter(parent: &mut Map<String, Value>, name: &str, change: Change) {
    match change {
        Lost => {
            parent.remove(name);
        }
        LeftOut(when) => {
            if parent.get(name).is_some_and(when) {
                parent.remove(name);
            }
        }
        Stated(value) => {
            let value = value(parent.get(name));
            parent.insert(name.into(), value);
        }
        Shortened => {
            if let Some(Value::Object(reference)) = parent.get_mut(name) {
                reference.retain(|name, value| ["name", "namespace"].contains(&name.as_str()) && *value != "");
            }
        }
    }
}

fn empty_text(value: &Value) -> bool {
    value == ""
}

fn no_try(value: &Value) -> bool {
    value.as_i64().is_some_and(|tries| tries < 1)
}

fn zero(value: &Value) -> bool {
    *value == 0
}

fn is_false(value: &Value) -> bool {
    *value == false
}

fn nothing(value: &Value) -> bool {
    *value == json!({})
}

fn no_endpoint(value: &Value) -> bool {
    *value == json!({ "host": "", "port": 0 })
}

fn no_image(value: &Value) -> bool {
    value["url"] == "" && value.get("checksum").is_none_or(|checksum| checksum == "")
}

fn no_deploy(value: &Value) -> bool {
    value["method"] == ""
}

fn no_selector(value: &Value) -> bool {
    *value == json!({})
}

fn no_conditions(value: &Value) -> bool {
    *value == json!({})
}

fn no_pool(value: &Value) -> bool {
    *value == json!({ "name": "" })
}

fn no_time(value: &Value) -> bool {
    value == "0s"
}

fn true_or_false(value: Option<&Value>) -> Value {
    (value == Some(&json!(true))).into()
}

/// Both members are set when one of them is; `cloudProviderEnabled` wins.
fn cloud_provider(spec: &mut Map<String, Value>) {
    let flag = |name: &str| spec.get(name).and_then(Value::as_bool);
    if let Some(enabled) = flag("cloudProviderEnabled").or(flag("noCloudProvider").map(|without| !without)) {
        spec.insert("cloudProviderEnabled".into(), enabled.into());
        spec.insert("noCloudProvider".into(), (!enabled).into());
    }
}

/// The durations in generated documents, and their forms in whole seconds.
fn whole_seconds(strategy: &mut Map<String, Value>) {
    let forms = [
        ("300s", "5m0s"),
        ("1m40.9s", "1m40s"),
        ("90m", "1h30m0s"),
        ("876000h", "596523h14m7s"),
    ];
    if let Some(timeout) = strategy.get_mut("timeout")
        && let Some((_, form)) = forms.iter().find(|(text, _)| timeout == text)
    {
        *timeout = (*form).into();
    }
}
