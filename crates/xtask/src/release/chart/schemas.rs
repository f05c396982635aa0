//! Schemas of values: what the API server or the program would refuse later is refused by Helm.

use metal3_flags::{Flag, Handling, TABLE, VARIABLES};
use serde_json::{Value, json};

/// A name of an object.
pub(super) const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The same, or nothing.
pub(super) const OPTIONAL_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";
/// A namespace, or nothing.
pub(super) const OPTIONAL_NAMESPACE: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$";

/// Flags with which the process would contradict its roles, ports, probes, monitors, webhooks or replicas.
const DECIDED: [&str; 10] = [
    "controllers",
    "namespace",
    "leader-elect",
    "webhook-port",
    "diagnostics-address",
    "insecure-diagnostics",
    "health-addr",
    "webhook-certificates",
    "webhook-cert-dir",
    "observe-only",
];

/// A pattern of these flags, and of their aliases.
pub(super) fn decided() -> String {
    let alias_of = |flag: &Flag| match flag.handling {
        Handling::Alias(other) if DECIDED.contains(&other) => Some(flag.name),
        _ => None,
    };
    let names: Vec<&str> = DECIDED.into_iter().chain(TABLE.iter().filter_map(alias_of)).collect();
    format!(r"^--({})([=\s]|$)", names.join("|"))
}

/// The variables of the program that other values set.
const VALUED: [&str; 5] = [
    "IRONIC_ENDPOINT",
    "IRONIC_ENDPOINTS",
    "IRONIC_NAME",
    "IRONIC_NAMESPACE",
    "WATCH_NAMESPACE",
];

/// The variables of the program that no other value sets.
pub(super) fn settings() -> Vec<&'static str> {
    let names = VARIABLES.iter().map(|variable| variable.name);
    names.filter(|name| !VALUED.contains(name)).collect()
}

pub(super) fn toleration() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "key": { "type": "string" }, "value": { "type": "string" },
            "operator": { "enum": ["Exists", "Equal", "Lt", "Gt"] },
            "effect": { "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute", ""] },
            "tolerationSeconds": { "type": "integer" },
        },
    })
}

/// Requests and limits, each by the name of a resource.
pub(super) fn resources() -> Value {
    let quantity = json!({
        "type": ["string", "number"], "pattern": "^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+|[EPTGMK]i|[EPTGMkmun])?$", "minimum": 0,
    });
    let quantities = json!({ "type": "object", "additionalProperties": quantity });
    json!({
        "type": "object", "additionalProperties": false,
        "properties": { "limits": quantities, "requests": quantities, "claims": { "type": "array" } },
    })
}

/// Peers of a NetworkPolicy. A block of addresses has no selector next to it.
pub(super) fn peers() -> Value {
    let cidr = json!({ "type": "string", "pattern": r"^([0-9]{1,3}(\.[0-9]{1,3}){3}/([0-9]|[12][0-9]|3[0-2])|[0-9a-fA-F]*:[0-9a-fA-F:.]*/([0-9]{1,2}|1[01][0-9]|12[0-8]))$" });
    let block = json!({
        "type": "object", "required": ["cidr"], "additionalProperties": false,
        "properties": { "cidr": cidr, "except": { "type": "array", "items": cidr } },
    });
    json!({ "type": "array", "items": {
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "properties": { "ipBlock": block, "namespaceSelector": { "type": "object" }, "podSelector": { "type": "object" } },
        "if": { "required": ["ipBlock"] }, "then": { "maxProperties": 1 },
    } })
}

/// The schema of further Ironics. The Ironic of `ironic.endpoint` has the name `ironic`.
pub(super) fn further() -> Value {
    let secret = json!({ "type": "string", "pattern": NAME });
    json!({ "type": "array", "items": {
        "type": "object",
        "required": ["name", "endpoint"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 50,
                "not": { "const": "ironic" },
            },
            "endpoint": { "type": "string", "pattern": r"^https?://[^\s,]+$" },
            "credentialsSecret": secret, "caSecret": secret, "clientCertificateSecret": secret,
        },
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decided_flag_is_one_of_the_program_and_its_aliases_are_decided_too() {
        for name in DECIDED {
            assert!(TABLE.iter().any(|flag| flag.name == name), "{name}");
        }
        let aliases = ["enable-leader-election", "metrics-addr"];
        for alias in aliases {
            assert!(decided().contains(&format!("|{alias}")), "{}", decided());
        }
        assert!(!decided().contains("bmh"), "{}", decided());
    }
}
