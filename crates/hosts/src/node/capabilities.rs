//! The boot mode as capabilities of a node.
//!
//! Capabilities are a list in one string, `boot_mode:uefi,cpu_vt:true`. Two of them describe the boot mode and are
//! managed; the others are kept.

use metal3_api::metal3::v1alpha1::BootMode;
use serde_json::{Map, Value, json};

const OWNED: [&str; 2] = ["boot_mode:", "secure_boot:"];

const fn wanted(mode: BootMode) -> &'static [&'static str] {
    match mode {
        BootMode::Uefi => &["boot_mode:uefi"],
        BootMode::UefiSecureBoot => &["boot_mode:uefi", "secure_boot:true"],
        BootMode::Legacy => &["boot_mode:bios"],
    }
}

/// `properties.capabilities` with this boot mode. `None`: no change is needed.
#[must_use]
pub fn with_boot_mode(found: Option<&str>, mode: BootMode) -> Option<String> {
    let is_owned = |item: &&str| OWNED.iter().any(|prefix| item.starts_with(prefix));
    let items = || found.unwrap_or_default().split(',').filter(|item| !item.is_empty());
    let mut current: Vec<_> = items().filter(is_owned).collect();
    current.sort_unstable();
    if current == wanted(mode) {
        return None;
    }
    let others = items().filter(|item| !is_owned(item));
    Some(others.chain(wanted(mode).iter().copied()).collect::<Vec<_>>().join(","))
}

/// `instance_info.capabilities`: the capabilities that the instance requires.
#[must_use]
pub fn of_instance(mode: BootMode) -> Value {
    match mode {
        BootMode::UefiSecureBoot => json!({"secure_boot": "true"}),
        BootMode::Uefi | BootMode::Legacy => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MODES: [BootMode; 3] = [BootMode::Uefi, BootMode::UefiSecureBoot, BootMode::Legacy];

    #[test]
    fn boot_mode_replaces_managed_capabilities_and_keeps_the_rest() {
        let rows = [
            (None, BootMode::Uefi, Some("boot_mode:uefi")),
            (Some(""), BootMode::Legacy, Some("boot_mode:bios")),
            (None, BootMode::UefiSecureBoot, Some("boot_mode:uefi,secure_boot:true")),
            (Some("boot_mode:uefi"), BootMode::Uefi, None),
            (Some("boot_mode:uefi,cpu_vt:true"), BootMode::Uefi, None),
            (Some("secure_boot:true,boot_mode:uefi"), BootMode::UefiSecureBoot, None),
            (
                Some("boot_mode:uefi,cpu_vt:true,secure_boot:true"),
                BootMode::Legacy,
                Some("cpu_vt:true,boot_mode:bios"),
            ),
            (
                Some("boot_mode:bios,boot_mode:uefi"),
                BootMode::Uefi,
                Some("boot_mode:uefi"),
            ),
            (Some("a:1,,b:2"), BootMode::Uefi, Some("a:1,b:2,boot_mode:uefi")),
        ];
        for (found, mode, expected) in rows {
            assert_eq!(with_boot_mode(found, mode).as_deref(), expected, "{found:?} {mode:?}");
        }
    }

    #[test]
    fn only_secure_boot_is_an_instance_capability() {
        assert_eq!(of_instance(BootMode::Uefi), json!({}));
        assert_eq!(of_instance(BootMode::Legacy), json!({}));
        assert_eq!(of_instance(BootMode::UefiSecureBoot), json!({"secure_boot": "true"}));
    }

    proptest! {
        #[test]
        fn set_capabilities_need_no_change(found in "((boot_mode:(uefi|bios)|secure_boot:true|[a-c]:[0-9]|),){0,5}", mode in 0..3_usize) {
            let mode = MODES[mode];
            let now = with_boot_mode(Some(&found), mode).unwrap_or_else(|| found.clone());
            prop_assert_eq!(with_boot_mode(Some(&now), mode), None);
            for item in found.split(',').filter(|item| !item.is_empty() && !item.contains("boot")) {
                prop_assert!(now.split(',').any(|kept| kept == item));
            }
        }
    }
}
