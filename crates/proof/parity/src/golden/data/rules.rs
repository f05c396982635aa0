//! Deliberate differences of the data of machines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::golden::group::Rule;
use crate::values::{list, text};

pub(super) const RENDER: &[Rule] = &[
    YAML_ESCAPES,
    YAML_QUOTES,
    METADATA_DNS_SERVERS,
    POOL_KIND_HONOURED,
    CLAIMS_USED_POOLS_ONLY,
    NETWORK_FAMILY,
    TEMPLATE_UNREADABLE,
    WIDER_TEMPLATES,
    EMPTY_STRINGS,
];
pub(super) const DATA_NAMES: &[Rule] = &[DATA_NAME_TAKEN, DATA_CLAIM_UNOWNED];
pub(super) const PROVIDER_ID: &[Rule] = &[NODE_STRANGERS];

/// Characters that end a line, vanish, or are rejected by a YAML parser.
const SIGNS: [(char, &str); 5] = [
    ('\u{7f}', "\\x7F"),
    ('\u{85}', "\\N"),
    ('\u{2028}', "\\L"),
    ('\u{2029}', "\\P"),
    ('\u{feff}', "\\uFEFF"),
];

/// Upstream drops the first two and writes the others so that newer parsers read another value.
const YAML_ESCAPES: Rule = Rule {
    row: "yaml-escapes",
    touches: |input| {
        strings(input)
            .values()
            .any(|value| value.contains(|c| SIGNS.iter().any(|(sign, _)| *sign == c)))
    },
    predict: |input, recorded| {
        let mut lines: BTreeMap<String, String> = text(recorded, "/metaData")
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        lines.insert("providerid".into(), provider_id(input));
        for (key, value) in strings(input) {
            let mut written = value.to_owned();
            for (sign, escape) in SIGNS {
                written = written.replace(sign, escape);
            }
            if written != value {
                lines.insert(key.to_owned(), format!("\"{written}\""));
            }
        }
        let rendered: String = lines
            .into_iter()
            .map(|(key, value)| format!("{key}: {value}\n"))
            .collect();
        set(recorded, "metaData", rendered.into());
        if take(recorded, "error") {
            set(recorded, "ready", true.into());
            let secret = format!("{}-metadata", name_of(input, "Metal3Machine"));
            set(recorded, "secrets", json!([secret]));
        }
    },
};

/// Upstream does not quote values that other parsers read as numbers or booleans.
const YAML_QUOTES: Rule = Rule {
    row: "yaml-quotes",
    touches: |_| true,
    predict: |_, recorded| {
        for part in ["metaData", "networkData"] {
            if let Some(Value::String(rendered)) = recorded.get_mut(part) {
                let lines = rendered.lines().map(|line| match line.split_once(": ") {
                    Some((key, value)) if is_nearly_a_number(value) || is_oddly_spelt(value) => {
                        format!("{key}: \"{value}\"\n")
                    }
                    _ => format!("{line}\n"),
                });
                *rendered = lines.collect();
            }
        }
    },
};

fn is_nearly_a_number(text: &str) -> bool {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = text
        .split_once('e')
        .is_some_and(|(mantissa, exponent)| all_digits(mantissa) && all_digits(exponent));
    let octal = text.strip_prefix("0o").is_some_and(all_digits);
    let groups = text.contains(':') && text.split(':').all(|group| all_digits(group) && group.len() <= 2);
    exponent || octal || groups
}

/// A YAML keyword in a spelling that YAML does not define.
fn is_oddly_spelt(text: &str) -> bool {
    const WORDS: [&str; 8] = ["yes", "no", "true", "false", "on", "off", "null", "nan"];
    let lower = text.to_ascii_lowercase();
    let is_capitalised = |text: &str| text.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    WORDS.contains(&lower.as_str()) && text != text.to_ascii_uppercase() && !is_capitalised(text)
}

/// Upstream claims an address for the entry and renders nothing.
const METADATA_DNS_SERVERS: Rule = Rule {
    row: "metadata-dns-servers",
    touches: |input| template(input).pointer("/metaData/dnsServersFromPool").is_some(),
    predict: |input, recorded| {
        let mut lines: Vec<String> = text(recorded, "/metaData").lines().map(ToOwned::to_owned).collect();
        for entry in list(template(input), "/metaData/dnsServersFromPool") {
            let pool = object(input, "IPPool", text(entry, "/name"));
            let servers: Vec<&str> = list(pool, "/spec/dnsServers").filter_map(Value::as_str).collect();
            lines.push(format!("{}: {}", text(entry, "/key"), servers.join(",")));
        }
        lines.sort();
        let rendered: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
        set(recorded, "metaData", rendered.into());
    },
};

/// Upstream treats every pool in metadata as an IPPool.
const POOL_KIND_HONOURED: Rule = Rule {
    row: "pool-kind-honoured",
    touches: |input| foreign_entry(input).is_some(),
    predict: |input, recorded| {
        let claim = recorded.pointer("/claims/0/name").cloned();
        if let (Some(entry), Some(members)) = (foreign_entry(input), recorded.as_object_mut()) {
            let pool = json!({
                "apiGroup": text(entry, "/apiGroup"),
                "kind": text(entry, "/kind"),
                "name": text(entry, "/name"),
            });
            members.retain(|name, _| name == "ready");
            members.insert("ready".into(), false.into());
            members.insert("waits".into(), true.into());
            members.insert(
                "claims".into(),
                json!([{ "name": claim, "kind": "IPAddressClaim", "poolRef": pool }]),
            );
        }
    },
};

fn foreign_entry(input: &Value) -> Option<&Value> {
    let mut entries = list(template(input), "/metaData/ipAddressesFromPool");
    entries.find(|entry| !["", "ipam.metal3.io"].contains(&text(entry, "/apiGroup")))
}

/// Upstream claims from both pools of a network and uses that of the annotation.
const CLAIMS_USED_POOLS_ONLY: Rule = Rule {
    row: "claims-used-pools-only",
    touches: |input| doubly_fed(input).next().is_some(),
    predict: |input, recorded| {
        if let Some(Value::Array(claims)) = recorded.get_mut("claims") {
            claims.retain(|claim| doubly_fed(input).all(|pool| text(claim, "/pool") != pool));
        }
    },
};

/// Pools of networks that also have an annotation.
fn doubly_fed(input: &Value) -> impl Iterator<Item = &str> {
    list(template(input), "/networkData/networks/ipv4")
        .filter(|network| network.get("fromPoolAnnotation").is_some())
        .map(|network| text(network, "/ipAddressFromIPPool"))
        .filter(|pool| !pool.is_empty())
}

/// Upstream writes an invalid mask.
const NETWORK_FAMILY: Rule = Rule {
    row: "network-family",
    touches: |input| {
        list(template(input), "/networkData/networks/ipv4").any(|network| {
            let pool = object(input, "IPPool", text(network, "/ipAddressFromIPPool"));
            text(pool, "/spec/pools/0/start").contains(':')
        })
    },
    predict: |_, recorded| {
        if let Some(members) = recorded.as_object_mut() {
            members.retain(|name, _| name == "claims");
            members.insert("ready".into(), false.into());
            members.insert("error".into(), true.into());
        }
    },
};

/// Upstream renders templates that its schema rejects.
const TEMPLATE_UNREADABLE: Rule = Rule {
    row: "template-unreadable",
    touches: |input| {
        let template = template(input);
        let objects = ["machine", "metal3machine", "baremetalhost"];
        list(template, "/networkData/links/vlans").any(|vlan| vlan.get("vlanLink").is_none())
            || list(template, "/metaData/objectNames").any(|entry| !objects.contains(&text(entry, "/object")))
    },
    predict: |_, recorded| {
        if let Some(members) = recorded.as_object_mut() {
            members.retain(|name, _| name == "notAdmissible");
            members.insert("ready".into(), false.into());
            members.insert("error".into(), true.into());
        }
    },
};

/// Bonds without parameters, or with plain values, are admitted.
const WIDER_TEMPLATES: Rule = Rule {
    row: "data-template-wider-links",
    touches: |input| {
        let is_wider = |bond: &Value| {
            let mut parameters = list(bond, "/parameters").peekable();
            parameters.peek().is_none()
                || parameters.any(|parameter| !parameter.get("value").is_some_and(Value::is_object))
        };
        list(template(input), "/networkData/links/bonds").any(is_wider)
    },
    predict: |_, recorded| {
        admit(recorded, |field| {
            field.contains(".bonds[") && field.contains("].parameters")
        })
    },
};

/// Empty texts of metadata are admitted.
const EMPTY_STRINGS: Rule = Rule {
    row: "conversion-writable-as-read",
    touches: |input| strings(input).values().any(|value| value.is_empty()),
    predict: |_, recorded| {
        admit(recorded, |field| {
            field.starts_with("spec.metaData.strings[") && field.ends_with(".value")
        });
    },
};

/// Removes fields from the refused ones.
fn admit(recorded: &mut Value, is_admitted: impl Fn(&str) -> bool) {
    let Some(Value::Array(fields)) = recorded.get_mut("notAdmissible") else {
        return;
    };
    fields.retain(|field| !field.as_str().is_some_and(&is_admitted));
    if fields.is_empty() {
        take(recorded, "notAdmissible");
    }
}

/// Upstream adds a finalizer to a claim that it cannot fulfil.
const DATA_CLAIM_UNOWNED: Rule = Rule {
    row: "data-claim-unowned",
    touches: |input| {
        let applied = list(input, "/steps").flat_map(|step| list(step, "/apply"));
        let mut claims = applied.filter(|object| text(object, "/kind") == "Metal3DataClaim");
        claims.any(|claim| claim.pointer("/metadata/ownerReferences").is_none())
    },
    predict: |_, recorded| {
        let claims = recorded.get_mut("claims").and_then(Value::as_array_mut);
        let unanswered = |claim: &&mut Value| claim.pointer("/status/renderedData").is_none();
        for claim in claims.into_iter().flatten().filter(unanswered) {
            set(claim, "finalizers", Value::Null);
        }
    },
};

/// Upstream waits forever for the name.
const DATA_NAME_TAKEN: Rule = Rule {
    row: "data-name-taken",
    touches: |input| list(input, "/objects").any(|object| text(object, "/metadata/name") == "tpl-0"),
    predict: |input, recorded| {
        if !take(recorded, "waits") {
            return;
        }
        let claim = text(recorded, "/claims/0/name").to_owned();
        let (group, version) = ("infrastructure.cluster.x-k8s.io", "v1beta2");
        let owner = |kind: &str| {
            let uid = format!("uid:{group}:{kind}:{claim}");
            json!({ "apiVersion": format!("{group}/{version}"), "kind": kind, "name": claim, "uid": uid })
        };
        let mut controller = owner("Metal3DataClaim");
        set(&mut controller, "controller", true.into());
        let template = name_of(input, "Metal3DataTemplate");
        let name = format!("{template}-1");
        if let Some(answered) = recorded.pointer_mut("/claims/0") {
            let status = json!({ "renderedData": { "name": name, "namespace": "metal" } });
            set(answered, "status", status);
        }
        set(recorded, "templateIndexes", json!([{ "name": claim, "index": 1 }]));
        let made = json!({
            "apiVersion": format!("{group}/{version}"),
            "kind": "Metal3Data",
            "metadata": {
                "name": name,
                "namespace": "metal",
                "finalizers": [format!("metal3dataclaim.{group}")],
                "ownerReferences": [controller, owner("Metal3Machine")],
            },
            "spec": {
                "claim": { "name": claim, "namespace": "metal" },
                "index": 1,
                "template": { "name": template, "namespace": "metal" },
            },
            "status": {},
        });
        if let Some(Value::Array(objects)) = recorded.get_mut("metal3Datas") {
            objects.push(made);
        }
    },
};

/// Upstream ignores all Nodes while two of other machines share an ID.
const NODE_STRANGERS: Rule = Rule {
    row: "node-strangers",
    touches: |input| {
        let id = format!("metal3://{}", provider_id(input));
        let ids = || list(input, "/workloadClusterNodes").map(|node| text(node, "/spec/providerID"));
        let count = |wanted: &str| ids().filter(|id| *id == wanted).count();
        let is_shared = |other: &str| !other.is_empty() && other != id && count(other) > 1;
        count(&id) == 1 && ids().any(is_shared)
    },
    predict: |input, recorded| {
        let stated = objects_of(input, "Metal3Machine")
            .next()
            .map(|machine| text(machine, "/spec/providerID"));
        let has_id = stated.is_some_and(|stated| !stated.is_empty());
        let Some(members) = recorded.as_object_mut() else {
            return;
        };
        match text(input, "/operation") {
            "cloudProvider" if members.remove("waits").is_some() && !has_id => {
                let id = format!("metal3://{}", provider_id(input));
                members.insert("machineProviderID".into(), id.into());
                members.insert("provisioned".into(), true.into());
            }
            "exists" if has_id => drop(members.insert("done".into(), true.into())),
            _ => {}
        }
    },
};

fn objects_of<'a>(input: &'a Value, kind: &str) -> impl Iterator<Item = &'a Value> {
    list(input, "/objects").filter(move |object| text(object, "/kind") == kind)
}

fn object<'a>(input: &'a Value, kind: &str, name: &str) -> &'a Value {
    let named = objects_of(input, kind).find(|object| text(object, "/metadata/name") == name);
    named.unwrap_or(&Value::Null)
}

fn name_of<'a>(input: &'a Value, kind: &str) -> &'a str {
    objects_of(input, kind)
        .next()
        .map_or("", |object| text(object, "/metadata/name"))
}

/// The spec of the only template.
fn template(input: &Value) -> &Value {
    let template = objects_of(input, "Metal3DataTemplate").next();
    template
        .and_then(|template| template.get("spec"))
        .unwrap_or(&Value::Null)
}

/// Fixed values of the metadata.
fn strings(input: &Value) -> BTreeMap<&str, &str> {
    list(template(input), "/metaData/strings")
        .map(|entry| (text(entry, "/key"), text(entry, "/value")))
        .collect()
}

/// Namespace, host and machine.
fn provider_id(input: &Value) -> String {
    let machine = objects_of(input, "Metal3Machine").next().unwrap_or(&Value::Null);
    let host = text(machine, "/metadata/annotations/metal3.io~1BareMetalHost");
    format!("{host}/{}", text(machine, "/metadata/name"))
}

/// Removes a member and returns whether it was there.
fn take(value: &mut Value, member: &str) -> bool {
    let members = value.as_object_mut();
    members.is_some_and(|members| members.remove(member).is_some())
}

fn set(value: &mut Value, member: &str, new: Value) {
    if let Value::Object(members) = value {
        members.insert(member.to_owned(), new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_nodes(operation: &str, ids: &[&str]) -> Value {
        let machine = json!({
            "kind": "Metal3Machine", "metadata": { "name": "m", "annotations": { "metal3.io/BareMetalHost": "metal/h" } },
        });
        let nodes: Vec<Value> = ids.iter().map(|id| json!({ "spec": { "providerID": id } })).collect();
        json!({ "objects": [machine], "operation": operation, "workloadClusterNodes": nodes })
    }

    #[test]
    fn only_strangers_that_share_an_id_are_excused() {
        let own = "metal3://metal/h/m";
        for (operation, ids, is_touched) in [
            ("cloudProvider", vec![own, "aws:///x", "aws:///x"], true),
            ("cloudProvider", vec![own, "aws:///x"], false),
            ("cloudProvider", vec!["aws:///x", "aws:///x"], false),
            ("cloudProvider", vec![own, own, "aws:///x", "aws:///x"], false),
            ("cloudProvider", vec![own, "", ""], false),
        ] {
            assert_eq!(
                (NODE_STRANGERS.touches)(&with_nodes(operation, &ids)),
                is_touched,
                "{ids:?}"
            );
        }
        let mut labelled = json!({ "error": true });
        let input = with_nodes("nodeLabel", &[own, "aws:///x", "aws:///x"]);
        (NODE_STRANGERS.predict)(&input, &mut labelled);
        assert_eq!(labelled, json!({ "error": true }), "the label decides there");
    }

    #[test]
    fn wider_templates_excuse_parameters_only() {
        let fields = json!([
            "spec.networkData.links.bonds[0].macAddress",
            "spec.networkData.links.bonds[0].parameters[1].value"
        ]);
        let mut recorded = json!({ "notAdmissible": fields, "ready": true });
        (WIDER_TEMPLATES.predict)(&Value::Null, &mut recorded);
        assert_eq!(recorded, json!({ "notAdmissible": [fields[0]], "ready": true }));
        (WIDER_TEMPLATES.predict)(&Value::Null, &mut recorded);
        assert_eq!(recorded["notAdmissible"], json!([fields[0]]));
    }
}
