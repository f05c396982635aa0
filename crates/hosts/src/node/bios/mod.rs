//! BIOS settings: what HostFirmwareSettings change in the settings that Ironic reports, and the cleaning step for it.
//!
//! Invariants: an asked value that is in force is no change, in whatever spelling of its type; a setting that cannot be
//! changed is in no step; no text contains the value of a password.

mod report;
mod schema;
mod text;

use std::collections::BTreeMap;

use metal3_api::meta::IntOrString;
use metal3_api::metal3::v1alpha1::{AttributeType, SettingError, SettingSchema, is_password};
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::hardware::BiosSetting;
use serde_json::{Map, Value, json};

pub use super::reported::{When, is_changed_since_report, is_current};
pub use report::{Report, is_change_reported, is_reported_otherwise, lacks_failure, owned, status};
pub use schema::firmware_schema;
use text::{invalid_text, names_text};
pub use text::{is_of_settings, is_still_reported, still_reported_text, unusable_text};

const INTERFACE: &str = "bios";
const APPLY: &str = "apply_configuration";

/// What the settings of a machine lack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The settings that have another value.
    pub differing: Vec<Difference>,
    /// The settings that cannot have the asked value.
    pub invalid: Vec<Invalid>,
}

impl Change {
    /// Whether all settings are as asked.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.differing.is_empty() && self.invalid.is_empty()
    }
}

/// A setting with another value than the asked one.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The name.
    pub name: String,
    /// The reported value; `None`: the machine reports none.
    pub reported: Option<String>,
    /// The value to send, in the spelling of the machine.
    pub asked: Value,
}

/// A setting that cannot have the asked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The name.
    pub name: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

/// Compares the asked values with the settings of a machine.
#[must_use]
pub fn change(asked: &BTreeMap<String, IntOrString>, settings: &[BiosSetting]) -> Change {
    let settings: BTreeMap<_, _> = settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting))
        .collect();
    let mut change = Change::default();
    for (name, value) in asked {
        match compare(name, value, settings.get(name.as_str()).copied()) {
            Ok(difference) => change.differing.extend(difference),
            Err(problem) => change.invalid.push(Invalid {
                name: name.clone(),
                problem,
            }),
        }
    }
    change
}

/// The difference of one setting, or why it cannot have this value.
fn compare(name: &str, asked: &IntOrString, setting: Option<&BiosSetting>) -> Result<Option<Difference>, String> {
    let schema = setting.map(schema::of_setting).unwrap_or_default();
    if is_password(name) || schema.attribute_type == Some(AttributeType::Password) {
        return Err(SettingError::Password.to_string());
    }
    let Some(setting) = setting else {
        return Err(SettingError::Unknown.to_string());
    };
    let asked = spelled(&schema, asked);
    let reported = text_of(&setting.value);
    // Ironic reports an empty text as null.
    if is_equal(&schema, &asked, reported.as_deref().unwrap_or_default()) {
        return Ok(None);
    }
    if asked.to_string().chars().any(char::is_control) {
        return Err("its value has a control character; remove that".to_owned());
    }
    checkable(&schema)
        .check(name, &asked)
        .map_err(|error| error.to_string())?;
    Ok(Some(Difference {
        name: name.to_owned(),
        reported,
        asked: value_to_send(&schema, &asked),
    }))
}

/// The value in the spelling of the machine, which Ironic compares exactly.
fn spelled(schema: &SettingSchema, asked: &IntOrString) -> IntOrString {
    let text = asked.to_string();
    match schema.attribute_type {
        Some(AttributeType::Enumeration) => IntOrString::String(allowed_spelling(schema, &text)),
        Some(AttributeType::Boolean) => IntOrString::String(as_boolean(&text)),
        Some(AttributeType::String) => IntOrString::String(text),
        Some(AttributeType::Integer | AttributeType::Password) | None => asked.clone(),
    }
}

/// The allowed value that the text names without case, if it is one and no other.
fn allowed_spelling(schema: &SettingSchema, text: &str) -> String {
    let allowed = &schema.allowable_values;
    let mut named = allowed.iter().filter(|value| value.eq_ignore_ascii_case(text));
    match (named.next(), named.next()) {
        (Some(value), None) if !allowed.iter().any(|value| value == text) => value.clone(),
        _ => text.to_owned(),
    }
}

/// `true` or `false`. Ironic's database keeps a boolean of the BMC as 1 or 0.
fn as_boolean(text: &str) -> String {
    match text.trim() {
        "1" => "true".to_owned(),
        "0" => "false".to_owned(),
        other => other.to_ascii_lowercase(),
    }
}

fn is_equal(schema: &SettingSchema, asked: &IntOrString, reported: &str) -> bool {
    let asked = asked.to_string();
    match schema.attribute_type {
        Some(AttributeType::Boolean) => asked == as_boolean(reported),
        Some(AttributeType::Integer) => match (asked.trim().parse::<i64>(), reported.trim().parse::<i64>()) {
            (Ok(asked), Ok(reported)) => asked == reported,
            _ => asked == reported,
        },
        Some(AttributeType::Enumeration) => asked == allowed_spelling(schema, reported),
        Some(AttributeType::String | AttributeType::Password) | None => asked == reported,
    }
}

/// The schema by which a value is checked. An enumeration without a list allows any value, as for Ironic.
fn checkable(schema: &SettingSchema) -> SettingSchema {
    let has_no_list = schema.attribute_type == Some(AttributeType::Enumeration) && schema.allowable_values.is_empty();
    SettingSchema {
        attribute_type: schema.attribute_type.filter(|_| !has_no_list),
        ..schema.clone()
    }
}

/// The value in the JSON type that the BMC wants: not every Ironic converts texts, and each measures the length of one.
fn value_to_send(schema: &SettingSchema, asked: &IntOrString) -> Value {
    let text = asked.to_string();
    let number = || text.trim().parse::<i64>().ok();
    let typed = match (schema.attribute_type, asked) {
        (Some(AttributeType::Integer), _) => number().map(Value::from),
        (Some(AttributeType::Boolean), _) => text.parse::<bool>().ok().map(Value::from),
        (None, IntOrString::Int(number)) => Some(json!(number)),
        (Some(AttributeType::Enumeration | AttributeType::String | AttributeType::Password) | None, _) => None,
    };
    typed.unwrap_or_else(|| json!(text))
}

/// Whether an order sets all these values.
#[must_use]
pub fn covers(order: &BTreeMap<String, Value>, differing: &[Difference]) -> bool {
    differing.iter().all(|one| order.get(&one.name) == Some(&one.asked))
}

/// The text of a reported value.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The cleaning step that changes these settings.
#[must_use]
pub fn step(differing: &[Difference]) -> Step {
    let setting = |difference: &Difference| json!({ "name": difference.name, "value": difference.asked });
    let settings: Vec<_> = differing.iter().map(setting).collect();
    Step {
        interface: INTERFACE.to_owned(),
        step: APPLY.to_owned(),
        args: Map::from_iter([("settings".to_owned(), settings.into())]),
        priority: None,
    }
}

/// The values by name that these steps set. `None`: no step changes settings.
#[must_use]
pub fn settings_of(steps: &[Step]) -> Option<BTreeMap<String, Value>> {
    let is_apply = |step: &&Step| step.interface == INTERFACE && step.step == APPLY;
    let settings = steps.iter().find(is_apply)?.args.get("settings")?.as_array()?;
    let pair = |setting: &Value| Some((setting["name"].as_str()?.to_owned(), setting["value"].clone()));
    Some(settings.iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests;
