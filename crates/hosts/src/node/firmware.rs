//! Changes of the firmware that a Go manager was asked for. This program makes none.
//!
//! A Go manager lists an update in the status when it begins with it, so that list says nothing about its success.

use metal3_api::metal3::v1alpha1::HostFirmwareComponents;

/// The updates that a failed preparation may have left: each requested one.
#[must_use]
pub fn pending(components: Option<&HostFirmwareComponents>) -> Option<String> {
    let updates = components.map(pending_updates).unwrap_or_default();
    (!updates.is_empty()).then(|| format!("HostFirmwareComponents: {}", shortened(&updates)))
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

    fn components(wanted: Value, done: Value) -> HostFirmwareComponents {
        serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": { "updates": wanted },
            "status": { "updates": done } }))
        .unwrap()
    }

    #[test]
    fn change_is_pending_until_it_is_reported() {
        let bios = || json!([{ "component": "bios", "url": "http://firmware.example/bios" }]);
        let other = json!([{ "component": "bios", "url": "http://firmware.example/older" }]);
        for (wanted, done, pending_as) in [
            (json!([]), json!([]), None),
            (bios(), bios(), Some("HostFirmwareComponents: bios")),
            (bios(), json!([]), Some("HostFirmwareComponents: bios")),
            (bios(), other, Some("HostFirmwareComponents: bios")),
        ] {
            let found = pending(Some(&components(wanted, done)));
            assert_eq!(found.as_deref(), pending_as);
        }
        assert_eq!(pending(None), None);
    }

    #[test]
    fn long_list_of_updates_is_shortened() {
        let update =
            |number: usize| json!({ "component": format!("nic:{number}"), "url": "http://firmware.example/nic" });
        let wanted: Vec<_> = (0..9).map(update).collect();
        let found = pending(Some(&components(json!(wanted), json!([]))));
        assert_eq!(
            found.unwrap(),
            "HostFirmwareComponents: nic:0, nic:1, nic:2, nic:3, nic:4 and 4 more"
        );
    }
}
