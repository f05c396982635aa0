//! Root device hints in the API and in Ironic.
//!
//! Ironic compares text with operators: `s==` for equal text, `<in>` for a substring, `>=` for a number.

use metal3_api::metal3::v1alpha1::RootDeviceHints;
use serde_json::{Map, Value};

use super::invalid_host::InvalidHost;

const EQUAL: &str = "s== ";
const WITHIN: &str = "<in> ";
const AT_LEAST: &str = ">= ";
/// Prefix of paths with a hint of their own in Ironic.
const BY_PATH: &str = "/dev/disk/by-path/";

/// A text hint: Ironic's key, its operator, and the API field.
struct Hint {
    key: &'static str,
    operator: &'static str,
    member: &'static str,
    of: fn(&RootDeviceHints) -> &Option<String>,
    within: fn(&mut RootDeviceHints) -> &mut Option<String>,
}

macro_rules! hint {
    ($key:literal, $operator:expr, $member:literal, $field:ident) => {
        Hint {
            key: $key,
            operator: $operator,
            member: $member,
            of: |hints| &hints.$field,
            within: |hints| &mut hints.$field,
        }
    };
}

/// All text hints except the device name, which has two keys.
const TEXTS: [Hint; 7] = [
    hint!("hctl", EQUAL, "hctl", hctl),
    hint!("model", WITHIN, "model", model),
    hint!("vendor", WITHIN, "vendor", vendor),
    hint!("serial", EQUAL, "serialNumber", serial_number),
    hint!("wwn", EQUAL, "wwn", wwn),
    hint!("wwn_with_extension", EQUAL, "wwnWithExtension", wwn_with_extension),
    hint!(
        "wwn_vendor_extension",
        EQUAL,
        "wwnVendorExtension",
        wwn_vendor_extension
    ),
];

/// `instance_info.root_device`. Empty fields are omitted.
///
/// # Errors
/// When a field has a control character.
pub fn to_ironic(hints: &RootDeviceHints) -> Result<Map<String, Value>, InvalidHost> {
    let mut map = Map::new();
    let mut set = |key: &str, operator: &str, member: &str, text: Option<&String>| match text {
        Some(text) if text.chars().any(char::is_control) => Err(InvalidHost::ControlCharacter {
            field: format!("spec.rootDeviceHints.{member}"),
        }),
        Some(text) if !text.is_empty() => {
            map.insert(key.to_owned(), format!("{operator}{text}").into());
            Ok(())
        }
        Some(_) | None => Ok(()),
    };
    let name = hints.device_name.as_ref();
    let by_path = name.is_some_and(|name| name.starts_with(BY_PATH));
    set(if by_path { "by_path" } else { "name" }, EQUAL, "deviceName", name)?;
    for hint in &TEXTS {
        set(hint.key, hint.operator, hint.member, (hint.of)(hints).as_ref())?;
    }
    if let Some(size) = hints.min_size_gigabytes.filter(|size| *size != 0) {
        map.insert("size".to_owned(), format!("{AT_LEAST}{size}").into());
    }
    if let Some(rotational) = hints.rotational {
        map.insert("rotational".to_owned(), rotational.to_string().into());
    }
    Ok(map)
}

/// The hints in `instance_info.root_device`, as far as [`to_ironic`] could have written them. Other operators are
/// ignored.
#[must_use]
pub fn from_ironic(map: &Map<String, Value>) -> RootDeviceHints {
    let text = |key: &str, operator: &str| {
        let text = map.get(key)?.as_str()?.strip_prefix(operator)?;
        Some(text.to_owned())
    };
    let mut hints = RootDeviceHints {
        device_name: text("by_path", EQUAL).or_else(|| text("name", EQUAL)),
        min_size_gigabytes: text("size", AT_LEAST).and_then(|size| size.parse().ok()),
        rotational: text("rotational", "").and_then(|text| text.parse().ok()),
        ..RootDeviceHints::default()
    };
    for hint in &TEXTS {
        *(hint.within)(&mut hints) = text(hint.key, hint.operator);
    }
    hints
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hints(value: Value) -> RootDeviceHints {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_hint_has_its_key_and_operator() {
        let rows = [
            (json!({}), json!({})),
            (json!({"deviceName": "/dev/sda"}), json!({"name": "s== /dev/sda"})),
            (
                json!({"deviceName": "/dev/disk/by-path/pci-1"}),
                json!({"by_path": "s== /dev/disk/by-path/pci-1"}),
            ),
            (
                json!({"deviceName": "/dev/disk/by-id/wwn-1"}),
                json!({"name": "s== /dev/disk/by-id/wwn-1"}),
            ),
            (json!({"hctl": "0:0:0:0"}), json!({"hctl": "s== 0:0:0:0"})),
            (json!({"model": "PERC H755"}), json!({"model": "<in> PERC H755"})),
            (json!({"vendor": "DELL"}), json!({"vendor": "<in> DELL"})),
            (json!({"serialNumber": "S1"}), json!({"serial": "s== S1"})),
            (json!({"minSizeGigabytes": 100}), json!({"size": ">= 100"})),
            (json!({"minSizeGigabytes": 0, "model": ""}), json!({})),
            (
                json!({"wwn": "0x1", "wwnWithExtension": "0x12", "wwnVendorExtension": "0x2"}),
                json!({"wwn": "s== 0x1", "wwn_with_extension": "s== 0x12", "wwn_vendor_extension": "s== 0x2"}),
            ),
            (json!({"rotational": false}), json!({"rotational": "false"})),
            (json!({"rotational": true}), json!({"rotational": "true"})),
        ];
        for (host, ironic) in rows {
            assert_eq!(
                Value::Object(to_ironic(&hints(host.clone())).unwrap()),
                ironic,
                "{host}"
            );
        }
    }

    #[test]
    fn hint_with_control_character_is_rejected_by_field() {
        let invalid = to_ironic(&hints(json!({"serialNumber": "S1\nx"}))).unwrap_err();
        assert_eq!(invalid.field(), "spec.rootDeviceHints.serialNumber");
        assert!(invalid.to_string().contains("remove it") && !invalid.to_string().contains("S1"));
    }

    #[test]
    fn hints_with_other_operators_are_ignored() {
        let map = json!({"size": "== 100", "model": "s== x", "rotational": true, "name": 3, "hctl": "s== 0:0:0:0"});
        assert_eq!(from_ironic(map.as_object().unwrap()), hints(json!({"hctl": "0:0:0:0"})));
    }

    proptest! {
        #[test]
        fn hints_survive_a_round_trip(
            texts in proptest::collection::vec(proptest::option::of("[ -~äß]{1,12}"), 8),
            by_path in any::<bool>(), size in proptest::option::of(1_i64..), rotational in any::<Option<bool>>(),
        ) {
            let mut texts = texts.into_iter();
            let mut next = || texts.next().unwrap();
            let hints = RootDeviceHints {
                device_name: next().map(|name| if by_path { format!("{BY_PATH}{name}") } else { name }),
                hctl: next(), model: next(), vendor: next(), serial_number: next(), wwn: next(),
                wwn_with_extension: next(), wwn_vendor_extension: next(),
                min_size_gigabytes: size, rotational,
            };
            prop_assert_eq!(from_ironic(&to_ironic(&hints).unwrap()), hints);
        }
    }
}
