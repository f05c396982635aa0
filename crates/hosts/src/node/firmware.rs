//! Changes of the firmware that a Go manager was asked for. This program makes none.
//!
//! A Go manager lists an update in the status when it begins with it, so that list says nothing about its success.

use metal3_api::metal3::v1alpha1::{HostFirmwareComponents, HostFirmwareSettings};

/// What precedes the settings without a reported value, such as passwords and those that the machine does not have.
const UNREPORTED: &str = "HostFirmwareSettings without a reported value, which nothing will show as done";

/// The changes that a failed preparation may have left: settings that are not reported, and each requested update.
#[must_use]
pub fn pending(settings: Option<&HostFirmwareSettings>, components: Option<&HostFirmwareComponents>) -> Option<String> {
    let (settings, unreported) = settings.map(pending_settings).unwrap_or_default();
    let components = components.map(pending_updates).unwrap_or_default();
    let named = [
        ("HostFirmwareSettings", settings),
        (UNREPORTED, unreported),
        ("HostFirmwareComponents", components),
    ];
    let named = named.into_iter().filter(|(_, names)| !names.is_empty());
    let named: Vec<_> = named
        .map(|(kind, names)| format!("{kind}: {}", shortened(&names)))
        .collect();
    (!named.is_empty()).then(|| named.join("; "))
}

/// The settings that are reported with another value, and those that are not reported.
fn pending_settings(object: &HostFirmwareSettings) -> (Vec<&str>, Vec<&str>) {
    let (mut pending, mut unreported) = (Vec::new(), Vec::new());
    for (name, wanted) in &object.spec.settings {
        match object.status.settings.get(name) {
            Some(reported) if *reported == wanted.to_string() => {}
            Some(_) => pending.push(name.as_str()),
            None => unreported.push(name.as_str()),
        }
    }
    (pending, unreported)
}

fn pending_updates(object: &HostFirmwareComponents) -> Vec<&str> {
    let wanted = object.spec.updates.iter();
    wanted.map(|update| update.component.as_str()).collect()
}

/// The names, at most some of them: a message has a limit.
fn shortened(names: &[&str]) -> String {
    const MOST: usize = 5;
    let first = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(wanted: Value, reported: Value) -> HostFirmwareSettings {
        serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": { "settings": wanted },
            "status": { "settings": reported } }))
        .unwrap()
    }

    fn components(wanted: Value, done: Value) -> HostFirmwareComponents {
        serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": { "updates": wanted },
            "status": { "updates": done } }))
        .unwrap()
    }

    #[test]
    fn change_is_pending_until_it_is_reported() {
        let bios = || json!([{ "component": "bios", "url": "http://firmware.example/bios" }]);
        let other = json!([{ "component": "bios", "url": "http://firmware.example/older" }]);
        for (wanted, reported, pending_as) in [
            (json!({}), json!({ "Turbo": "On" }), None),
            (json!({ "Turbo": "On" }), json!({ "Turbo": "On" }), None),
            (json!({ "Cores": 4 }), json!({ "Cores": "4" }), None),
            (
                json!({ "Turbo": "Off", "Cores": 4 }),
                json!({ "Turbo": "On", "Cores": "4" }),
                Some("HostFirmwareSettings: Turbo"),
            ),
            (
                json!({ "Turbo": "Off", "Password": "x" }),
                json!({ "Turbo": "On" }),
                Some(&*format!("HostFirmwareSettings: Turbo; {UNREPORTED}: Password")),
            ),
        ] {
            let found = pending(Some(&settings(wanted, reported)), None);
            assert_eq!(found.as_deref(), pending_as);
        }
        for (wanted, done, pending_as) in [
            (json!([]), json!([]), None),
            (bios(), bios(), Some("HostFirmwareComponents: bios")),
            (bios(), json!([]), Some("HostFirmwareComponents: bios")),
            (bios(), other, Some("HostFirmwareComponents: bios")),
        ] {
            let found = pending(None, Some(&components(wanted, done)));
            assert_eq!(found.as_deref(), pending_as);
        }
        assert_eq!(pending(None, None), None);
    }

    #[test]
    fn long_list_of_changes_is_shortened() {
        let wanted: serde_json::Map<_, _> = (0..9).map(|number| (format!("s{number}"), json!(1))).collect();
        let reported = Value::Object(wanted.keys().map(|name| (name.clone(), json!("0"))).collect());
        let bios = json!([{ "component": "bios", "url": "http://firmware.example/bios" }]);
        let found = pending(
            Some(&settings(Value::Object(wanted), reported)),
            Some(&components(bios, json!([]))),
        );
        assert_eq!(
            found.unwrap(),
            "HostFirmwareSettings: s0, s1, s2, s3, s4 and 4 more; HostFirmwareComponents: bios"
        );
    }
}
