//! The BIOS settings of a machine, what Ironic's Redfish driver knows of each, and what it accepts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// How a machine reports settings that were changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BiosReports {
    /// As they were asked.
    #[default]
    Asked,
    /// With another text, after the step has ended.
    OtherText,
    /// The machine takes no setting.
    Unchanged,
}

/// One setting of the registry: name, type, factory value, allowed values, bounds.
struct Entry {
    name: &'static str,
    kind: &'static str,
    factory: &'static str,
    allowed: &'static [&'static str],
    /// Of the number, or of the length of the text.
    bounds: Option<(i64, i64)>,
    is_read_only: bool,
}

const fn entry(name: &'static str, kind: &'static str, factory: &'static str) -> Entry {
    Entry {
        name,
        kind,
        factory,
        allowed: &[],
        bounds: None,
        is_read_only: false,
    }
}

const fn choice(name: &'static str, factory: &'static str, allowed: &'static [&'static str]) -> Entry {
    Entry {
        allowed,
        ..entry(name, "Enumeration", factory)
    }
}

const fn within(entry: Entry, least: i64, most: i64) -> Entry {
    Entry {
        bounds: Some((least, most)),
        ..entry
    }
}

const REGISTRY: [Entry; 9] = [
    entry("AdminPassword", "Password", "bios-canary"),
    within(entry("AssetTag", "String", "none"), 1, 16),
    choice("BootMode", "Uefi", &["Uefi", "Bios"]),
    within(entry("NetworkBootRetryCount", "Integer", "10"), 0, 20),
    choice("NumaGroupSize", "Flat", &["Flat", "Clustered"]),
    choice("ProcTurboMode", "Enabled", &["Enabled", "Disabled"]),
    choice("ProcVirtualization", "Enabled", &["Enabled", "Disabled"]),
    entry("QuietBoot", "Boolean", "1"),
    Entry {
        is_read_only: true,
        ..entry("SystemModelName", "String", "R1")
    },
];

/// A setting that machines have only with this version of the firmware, and the version.
const ADDED: Entry = choice("PowerProfile", "Balanced", &["Balanced", "Performance"]);
const ADDED_BY: &str = "bios-2";

fn known(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().chain([&ADDED]).find(|entry| entry.name == name)
}

/// The setting that a machine gets with a new version of its firmware.
pub(crate) fn added(version: &str) -> Option<(String, Value)> {
    (version == ADDED_BY).then(|| (ADDED.name.to_owned(), json!(ADDED.factory)))
}

/// Default BIOS settings.
pub(crate) fn factory() -> BTreeMap<String, Value> {
    let pair = |entry: &Entry| (entry.name.to_owned(), json!(entry.factory));
    REGISTRY.iter().map(pair).collect()
}

/// One setting with the members of the registry. The fake driver has none.
pub(crate) fn detailed(name: &str, value: &Value, is_fake: bool) -> Value {
    let entry = known(name).filter(|_| !is_fake);
    let is_number = entry.is_some_and(|entry| entry.kind == "Integer");
    let bound = |of_number: bool, pick: fn((i64, i64)) -> i64| {
        let bounds = entry.and_then(|entry| entry.bounds).filter(|_| is_number == of_number);
        bounds.map(pick)
    };
    json!({
        "name": name, "value": value, "attribute_type": entry.map(|entry| entry.kind),
        "allowable_values": entry.map(|entry| entry.allowed).unwrap_or_default(),
        "lower_bound": bound(true, |(least, _)| least), "upper_bound": bound(true, |(_, most)| most),
        "min_length": bound(false, |(least, _)| least), "max_length": bound(false, |(_, most)| most),
        "read_only": entry.map(|entry| entry.is_read_only), "unique": entry.map(|_| false),
        "reset_required": entry.map(|_| true),
    })
}

/// The values that a machine has after `apply_configuration`, as Ironic reports them.
///
/// # Errors
/// When Ironic or the BMC rejects one of them. None is changed then.
pub(crate) fn applied(
    settings: &[Value],
    has: &BTreeMap<String, Value>,
    reports: BiosReports,
) -> Result<BTreeMap<String, Value>, String> {
    let (mut changed, mut invalid) = (BTreeMap::new(), Vec::new());
    for setting in settings {
        let name = setting.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(entry) = known(name).filter(|_| has.contains_key(name)) else {
            return Err(format!(
                "step bios.apply_configuration failed: Redfish BIOS apply configuration failed. Error: the attribute \
                 {name} is not known"
            ));
        };
        match accepted(entry, setting.get("value").unwrap_or(&Value::Null)) {
            Some(value) => drop(changed.insert(name.to_owned(), value)),
            None => invalid.push(name.to_owned()),
        }
    }
    if !invalid.is_empty() {
        return Err(format!(
            "step bios.apply_configuration failed: Redfish BIOS apply_configuration failed: invalid value for \
             setting(s): {}",
            invalid.join(", ")
        ));
    }
    match reports {
        BiosReports::Asked => Ok(as_values(changed, |value| value)),
        BiosReports::OtherText => Ok(as_values(changed, |value| format!("[{value}]"))),
        // Ironic compares them after the boot, and does not name the step.
        BiosReports::Unchanged => Err(format!(
            "Redfish BIOS apply_configuration step failed. Attributes {:?} are not updated.",
            changed.keys().collect::<Vec<_>>()
        )),
    }
}

fn as_values(changed: BTreeMap<String, String>, shown: impl Fn(String) -> String) -> BTreeMap<String, Value> {
    let pairs = changed.into_iter();
    pairs.map(|(name, value)| (name, json!(shown(value)))).collect()
}

/// The value as Ironic stores it; `None`: it is invalid.
fn accepted(entry: &Entry, value: &Value) -> Option<String> {
    let text = value.as_str();
    let is_within = |number: i64| {
        entry
            .bounds
            .is_none_or(|(least, most)| (least..=most).contains(&number))
    };
    if entry.is_read_only {
        return None;
    }
    match entry.kind {
        "Enumeration" => text.filter(|text| entry.allowed.contains(text)).map(str::to_owned),
        "Integer" => {
            let number = value.as_i64().or_else(|| text?.trim().parse().ok())?;
            is_within(number).then(|| number.to_string())
        }
        "Boolean" => {
            let is_on = value.as_bool().or_else(|| Some(text?.eq_ignore_ascii_case("true")))?;
            // The BMC has a JSON boolean, of which the database keeps a digit.
            Some(if is_on { "1" } else { "0" }.to_owned())
        }
        // Ironic measures the text, which a number does not have.
        _ => text
            .filter(|text| i64::try_from(text.chars().count()).is_ok_and(is_within))
            .map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(name: &str, value: Value) -> Result<Value, String> {
        let settings = [json!({ "name": name, "value": value })];
        let changed = applied(&settings, &factory(), BiosReports::Asked)?;
        Ok(changed.into_values().next().unwrap())
    }

    #[test]
    fn valid_value_is_stored_as_text() {
        for (name, value, stored) in [
            ("ProcTurboMode", json!("Disabled"), "Disabled"),
            ("NetworkBootRetryCount", json!(5), "5"),
            ("NetworkBootRetryCount", json!("5"), "5"),
            ("QuietBoot", json!("false"), "0"),
            ("QuietBoot", json!(true), "1"),
            ("AssetTag", json!("rack 7"), "rack 7"),
        ] {
            assert_eq!(apply(name, value), Ok(json!(stored)), "{name}");
        }
    }

    #[test]
    fn invalid_value_is_rejected_as_by_ironic() {
        for (name, value) in [
            ("ProcTurboMode", json!("disabled")),
            ("ProcTurboMode", json!(1)),
            ("NetworkBootRetryCount", json!(21)),
            ("NetworkBootRetryCount", json!("many")),
            ("AssetTag", json!(7)),
            ("AssetTag", json!("")),
            ("SystemModelName", json!("R2")),
        ] {
            let error = apply(name, value.clone()).unwrap_err();
            assert!(
                error.contains("invalid value") && error.contains(name),
                "{error} {value}"
            );
        }
        assert!(apply("Turbo", json!("On")).is_err_and(|error| error.contains("Turbo")));
    }
}
