//! Deliberate differences of admission of `infrastructure.cluster.x-k8s.io`.

use serde_json::{Value, json};

use crate::golden::group::Rule;
use crate::values::{list, text};

/// Rules.
pub(super) const RULES: &[Rule] = &[TEMPLATE_REPAIR, NO_STRATEGY, WIDER_LINKS];

/// An invalid stored template can be repaired.
const TEMPLATE_REPAIR: Rule = Rule {
    row: "cluster-template-repair",
    touches: |input| {
        let port = |which: &str| input.pointer(&format!("/{which}/spec/template/spec/controlPlaneEndpoint/port"));
        let template = text(input, "/object/kind") == "Metal3ClusterTemplate";
        template && input.get("oldObject").is_some() && port("oldObject").is_none() && port("object").is_some()
    },
    predict: |input, recorded| *recorded = json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
};

/// Values of the older version are stored by the newer one too: a small MTU, a plain bond parameter.
const WIDER_LINKS: Rule = Rule {
    row: "data-template-wider-links",
    touches: |input| {
        let links = |kind: &str| list(input, &format!("/object/spec/networkData/links/{kind}"));
        let small = |link: &Value| link.get("mtu").and_then(Value::as_i64).is_some_and(|mtu| mtu < 1280);
        let plain = |bond: &Value| {
            list(bond, "/parameters").any(|parameter| parameter.get("value").is_some_and(|value| !value.is_object()))
        };
        ["ethernets", "bonds", "vlans"]
            .iter()
            .any(|kind| links(kind).any(small))
            || links("bonds").any(plain)
    },
    predict: |input, recorded| *recorded = json!({ "allowed": true, "object": defaulted_links(input), "warnings": [] }),
};

/// The object with the default MTU of links.
fn defaulted_links(input: &Value) -> Value {
    let mut object = input.get("object").cloned().unwrap_or_default();
    for kind in ["ethernets", "bonds", "vlans"] {
        let links = object
            .pointer_mut(&format!("/spec/networkData/links/{kind}"))
            .and_then(Value::as_array_mut);
        for link in links.into_iter().flatten().filter_map(Value::as_object_mut) {
            link.entry("mtu").or_insert(json!(1500));
        }
    }
    object
}

/// A remediation template without a strategy is valid.
const NO_STRATEGY: Rule = Rule {
    row: "remediation-template-without-strategy",
    touches: |input| {
        let template = text(input, "/object/kind") == "Metal3RemediationTemplate";
        template && input.pointer("/object/spec/template/spec/strategy").is_none()
    },
    predict: |input, recorded| *recorded = json!({ "allowed": true, "object": input.get("object"), "warnings": [] }),
};
