//! Members of an object that a switch must not change. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::Versions;

/// What must not change: members that are set once.
pub(super) fn identity(object: &Value) -> BTreeMap<&'static str, Value> {
    const MEMBERS: [(&str, &str); 10] = [
        ("UID", "/metadata/uid"),
        ("address", "/spec/address"),
        ("consumer", "/spec/consumerRef/name"),
        ("provider id", "/spec/providerID"),
        ("index", "/spec/index"),
        ("node", "/status/provisioning/ID"),
        ("subscription", "/status/subscriptionID"),
        ("image in the drive", "/status/attachedImage/url"),
        ("address of a claim", "/status/address/name"),
        ("address of a claim of Cluster API", "/status/addressRef/name"),
    ];
    let member = |(name, path): (&'static str, &str)| {
        let value = object.pointer(path).filter(|value| !value.is_null() && **value != "");
        value.map(|value| (name, value.clone()))
    };
    MEMBERS.into_iter().filter_map(member).collect()
}

/// Members that had a value and have another one. A consumer that is deleted gives its host back.
pub(super) fn changed(
    before: &BTreeMap<&'static str, Value>,
    now: &BTreeMap<&'static str, Value>,
    versions: &Versions,
    until: u64,
) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    for (name, value) in before {
        if now.get(name) == Some(value) {
            continue;
        }
        let machine = (
            "Metal3Machine".to_owned(),
            value.as_str().unwrap_or_default().to_owned(),
        );
        let ended = versions.get(&machine).and_then(|versions| {
            let last = versions.iter().rfind(|version| version.revision <= until)?;
            Some(last.is_deleted || !last.object["metadata"]["deletionTimestamp"].is_null())
        });
        if *name != "consumer" || ended != Some(true) {
            all.push(format!(
                "{name} was {value}, is {}",
                now.get(name).unwrap_or(&Value::Null)
            ));
        }
    }
    all.into_iter()
}
