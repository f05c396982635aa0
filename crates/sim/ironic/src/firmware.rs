//! The firmware of a machine, what Ironic records of it, and which updates its Redfish driver accepts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metal3_sim_bmc::profile::Profile;
use serde_json::{Value, json};

/// How a machine performs an update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirmwareUpdates {
    /// It ends, and the machine has the new version.
    #[default]
    Succeed,
    /// The BMC reports that it failed.
    Fail,
    /// The same, of the updates of the BMC alone.
    FailBmc,
    /// The BMC does not report its end, until Ironic's timeout of a cleaning.
    NeverEnd,
}

impl FirmwareUpdates {
    /// Whether the BMC reports that this update failed.
    pub(crate) fn fails(self, update: &Value) -> bool {
        self == Self::Fail || (self == Self::FailBmc && member(update, "component") == "bmc")
    }
}

/// What Ironic records of one component.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    initial: String,
    current: String,
    flashed: Option<String>,
    created: DateTime<Utc>,
    updated: Option<DateTime<Utc>>,
}

/// The versions of a new machine.
pub(crate) fn factory(profile: &Profile) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("bios".to_owned(), profile.vendor.firmware.version.clone()),
        ("bmc".to_owned(), profile.bmc_version.clone()),
    ])
}

/// The record of one component, with its times in the form of Ironic.
pub(crate) fn shown(name: &str, component: &Component, stamp: fn(DateTime<Utc>) -> Value) -> Value {
    json!({
        "component": name,
        "initial_version": component.initial,
        "current_version": component.current,
        "last_version_flashed": component.flashed,
        "created_at": stamp(component.created),
        "updated_at": component.updated.map(stamp),
    })
}

/// Records the versions of a machine, as Ironic does when it verifies or inspects a node, and after an update.
pub(crate) fn record(known: &mut BTreeMap<String, Component>, versions: &BTreeMap<String, String>, now: DateTime<Utc>) {
    known.retain(|name, _| versions.contains_key(name));
    for (name, version) in versions {
        match known.get_mut(name) {
            Some(component) if component.current == *version => {}
            Some(component) => {
                component.current.clone_from(version);
                (component.flashed, component.updated) = (Some(version.clone()), Some(now));
            }
            None => {
                let component = Component {
                    initial: version.clone(),
                    current: version.clone(),
                    flashed: None,
                    created: now,
                    updated: None,
                };
                known.insert(name.clone(), component);
            }
        }
    }
}

/// A member of an update, empty when missing.
pub(crate) fn member<'a>(update: &'a Value, name: &str) -> &'a str {
    update.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Why the step rejects its argument.
pub(crate) fn invalid(settings: &Value) -> Option<String> {
    let updates = settings.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_valid = |update: &Value| {
        let component = member(update, "component");
        let is_known = matches!(component, "bios" | "bmc") || component.starts_with("nic:");
        let has_others = update.as_object().is_none_or(|members| {
            members
                .keys()
                .any(|key| !["component", "url", "wait"].contains(&key.as_str()))
        });
        is_known && !member(update, "url").is_empty() && !has_others
    };
    if updates.is_empty() || !updates.iter().all(is_valid) {
        return Some(format!(
            "Invalid firmware update {settings}. Errors: a component or a URL is missing or not valid"
        ));
    }
    let is_supported =
        |url: &str| ["http", "https", "swift", "file"].contains(&url.split("://").next().unwrap_or_default());
    let unsupported = updates
        .iter()
        .map(|update| member(update, "url"))
        .find(|url| !is_supported(url))?;
    let scheme = unsupported.split(':').next().unwrap_or_default();
    Some(format!("{scheme} is not supported for {unsupported}."))
}

/// The version that a machine has after an update from this URL: the name of the file.
pub(crate) fn version(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_with_another_component_or_url_is_rejected_as_by_ironic() {
        let one = |component: &str, url: &str| json!([{ "component": component, "url": url }]);
        for (settings, part) in [
            (json!([]), Some("Invalid firmware update")),
            (json!("bios"), Some("Invalid firmware update")),
            (one("psu", "http://firmware.example/a"), Some("Invalid firmware update")),
            (one("bios", ""), Some("Invalid firmware update")),
            (
                json!([{ "component": "bios", "url": "http://firmware.example/a", "checksum": "0" }]),
                Some("Invalid firmware update"),
            ),
            (one("bios", "ftp://firmware.example/a"), Some("ftp is not supported")),
            (one("bios", "https://firmware.example/a"), None),
            (one("nic:NIC.1", "http://firmware.example/a"), None),
        ] {
            let found = invalid(&settings);
            assert_eq!(found.is_some(), part.is_some(), "{settings} {found:?}");
            assert!(
                found.is_none_or(|found| found.contains(part.unwrap_or_default())),
                "{settings}"
            );
        }
    }

    #[test]
    fn version_is_the_name_of_the_file() {
        assert_eq!(version("http://firmware.example/bios/2.1?signature=a/b"), "2.1");
    }

    #[test]
    fn record_keeps_the_first_version_and_shows_the_last_flashed_one() {
        let versions = |version: &str| BTreeMap::from([("bios".to_owned(), version.to_owned())]);
        let (mut known, at) = (BTreeMap::new(), |second| DateTime::from_timestamp(second, 0).unwrap());
        record(&mut known, &versions("1"), at(0));
        record(&mut known, &versions("1"), at(1));
        assert_eq!(
            shown("bios", &known["bios"], |at| json!(at.to_rfc3339()))["updated_at"],
            Value::Null
        );
        record(&mut known, &versions("2"), at(2));
        let found = shown("bios", &known["bios"], |at| json!(at.to_rfc3339()));
        assert_eq!(
            (found["initial_version"].as_str(), found["current_version"].as_str()),
            (Some("1"), Some("2"))
        );
        assert_eq!(found["last_version_flashed"], "2");
        assert!(found["updated_at"].is_string());
    }
}
