//! Texts that no tenant may read: all that hosts, their hardware and the Secrets of their namespace hold.

use std::collections::BTreeSet;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Members of a host and of its HardwareData that are for administrators.
const SECRET: [&str; 13] = [
    "/metadata/uid",
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/bmc",
    "/spec/bootMACAddress",
    "/spec/description",
    "/spec/rootDeviceHints",
    "/spec/preprovisioningNetworkDataName",
    "/spec/hardware",
    "/status/hardware",
    "/status/errorMessage",
    "/status/goodCredentials",
    "/status/provisioning/ID",
];
/// Shorter ones are words that occur everywhere, such as `ok`.
const SHORTEST: usize = 8;
/// Texts of hosts that say nothing of a machine: they are in claims too.
const COMMON: [&str; 2] = ["metal3.io", "baremetalhost"];

/// The texts of a list of hosts, of their HardwareData and of Secrets.
pub(crate) fn of(list: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let items = list.get("items").and_then(Value::as_array);
    for item in items.into_iter().flatten() {
        match item.get("kind").and_then(Value::as_str) {
            Some("Secret") => of_secret(item, &mut found),
            _ => {
                for place in SECRET {
                    item.pointer(place)
                        .into_iter()
                        .for_each(|value| leaves(value, &mut found));
                }
            }
        }
    }
    found.retain(|text| text.len() >= SHORTEST && !COMMON.contains(&text.as_str()));
    found
}

fn of_secret(secret: &Value, found: &mut BTreeSet<String>) {
    let name = secret.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    // A copy for a claim has what the tenant wrote.
    if name.contains(".claim-") {
        return;
    }
    found.insert(name.to_owned());
    let data = secret.get("data").and_then(Value::as_object);
    for value in data
        .into_iter()
        .flat_map(|data| data.values())
        .filter_map(Value::as_str)
    {
        found.insert(value.to_owned());
        if let Some(text) = STANDARD
            .decode(value)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        {
            found.insert(text);
        }
    }
}

fn leaves(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(all) => all.iter().for_each(|one| leaves(one, found)),
        Value::Object(all) => all.values().for_each(|one| leaves(one, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fails with each canary in a text, and with its surroundings.
pub(crate) fn require_none(canaries: &BTreeSet<String>, who: &str, text: &str) -> anyhow::Result<()> {
    let shown = |canary: &String| {
        let at = text.find(canary.as_str())?;
        let around = text.get(at.saturating_sub(120)..).unwrap_or(text);
        let around: String = around.chars().take(300).collect();
        Some(format!("{who} reads {canary:?}: ...{around}..."))
    };
    let leaks: Vec<String> = canaries.iter().filter_map(shown).collect();
    ensure!(leaks.is_empty(), "{}", leaks.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canaries_are_texts_of_hosts_and_decoded_ones_of_secrets() {
        let list = json!({ "items": [
            { "kind": "BareMetalHost", "metadata": { "name": "host-name", "labels": { "a": "canary-label" } },
              "spec": { "bmc": { "address": "redfish://10.0.0.1" }, "online": true, "image": { "url": "http://images.example" } },
              "status": { "hardware": { "nics": [{ "mac": "00:11:22:33:44:55", "name": "eth0" }] } } },
            { "kind": "Secret", "metadata": { "name": "canary-secret" }, "data": { "password": STANDARD.encode("canary-password") } },
            { "kind": "Secret", "metadata": { "name": "h.claim-user-data" }, "data": { "userData": STANDARD.encode("of the tenant") } },
        ] });
        let found = of(&list);
        for canary in [
            "canary-label",
            "redfish://10.0.0.1",
            "00:11:22:33:44:55",
            "canary-secret",
            "canary-password",
        ] {
            assert!(found.contains(canary), "{canary}: {found:?}");
        }
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn leak_is_reported_with_its_surroundings() {
        let canaries = BTreeSet::from(["canary-1".to_owned(), "canary-2".to_owned()]);
        assert!(require_none(&canaries, "tenant", "nothing").is_ok());
        let error = require_none(&canaries, "tenant", "status: canary-2 here").unwrap_err();
        assert!(error.to_string().contains("status: canary-2 here"), "{error}");
    }
}
