//! Fields of a node that clients write: names, types and microversions.

use metal3_ironic::version::{DISABLE_POWER_OFF, Microversion};
use serde_json::{Map, Value, json};

use super::interfaces;
use crate::refusal::Refusal;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Map,
    Text,
    /// True, false or unset.
    Choice,
    Switch,
    Uuid,
    /// A field of Ironic that is not simulated.
    NotSimulated,
}

/// The microversion that adds `instance_name`.
pub(crate) const INSTANCE_NAME: Microversion = Microversion::minor(104);

/// All fields except the interfaces.
pub(crate) const FIELDS: &[(&str, Form)] = &[
    ("automated_clean", Form::Choice),
    ("chassis_uuid", Form::NotSimulated),
    ("conductor_group", Form::NotSimulated),
    ("description", Form::Text),
    ("disable_power_off", Form::Switch),
    ("driver", Form::Text),
    ("driver_info", Form::Map),
    ("extra", Form::Map),
    ("instance_info", Form::Map),
    ("instance_name", Form::Text),
    ("instance_uuid", Form::Uuid),
    ("lessee", Form::NotSimulated),
    ("maintenance", Form::Switch),
    ("name", Form::Text),
    ("network_data", Form::Map),
    ("owner", Form::NotSimulated),
    ("parent_node", Form::NotSimulated),
    ("properties", Form::Map),
    ("protected", Form::Switch),
    ("protected_reason", Form::NotSimulated),
    ("resource_class", Form::Text),
    ("retired", Form::NotSimulated),
    ("retired_reason", Form::NotSimulated),
    ("shard", Form::NotSimulated),
];

fn form(name: &str) -> Option<Form> {
    if interfaces::is_one(name) {
        return Some(Form::Text);
    }
    FIELDS.iter().find(|(field, _)| *field == name).map(|(_, form)| *form)
}

/// The default value of a field. Defaults of interfaces depend on the driver.
pub(crate) fn unset(name: &str) -> Value {
    match name {
        "conductor_group" => json!(""),
        "resource_class" => json!("baremetal"),
        "retired" => json!(false),
        _ => match form(name) {
            Some(Form::Map) => json!({}),
            Some(Form::Switch) => json!(false),
            _ => Value::Null,
        },
    }
}

/// Checks that a field is writable in this microversion.
pub(crate) fn known(name: &str, microversion: Microversion) -> Result<(), Refusal> {
    match form(name) {
        None => Err(Refusal::invalid(format!(
            "Cannot patch /{name}. Only the fields that clients own can be updated"
        ))),
        Some(Form::NotSimulated) => Err(Refusal::not_simulated(&format!("the field {name}"))),
        Some(_) if name == "disable_power_off" && microversion < DISABLE_POWER_OFF => Err(Refusal::newer_argument()),
        Some(_) if name == "instance_name" && microversion < INSTANCE_NAME => Err(Refusal::newer_argument()),
        Some(_) => Ok(()),
    }
}

/// Checks the value of a field.
pub(crate) fn fits(name: &str, value: &Value) -> Result<(), Refusal> {
    let fits = match form(name) {
        Some(Form::Map) => value.is_object(),
        Some(Form::Text) if name == "driver" => value.is_string(),
        Some(Form::Text) => value.is_string() || value.is_null(),
        Some(Form::Uuid) => match value.as_str() {
            Some(text) => is_uuid(text),
            None => value.is_null(),
        },
        Some(Form::Choice) => value.is_boolean() || value.is_null(),
        Some(Form::Switch) => value.is_boolean(),
        Some(Form::NotSimulated) | None => *value == unset(name),
    };
    if !fits {
        return Err(Refusal::invalid(format!("Schema error for node: {name} does not fit")));
    }
    if name == "name" && !value.as_str().is_none_or(is_name) {
        return Err(Refusal::invalid(format!("Cannot use the invalid name {value}")));
    }
    Ok(())
}

/// Whether a text is a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Whether a text is a valid node name.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
    !text.is_empty() && text.len() <= 255 && text.chars().all(plain) && !is_uuid(text)
}

/// The fields of a new node.
pub(crate) fn of_new(body: &Map<String, Value>, microversion: Microversion) -> Result<Map<String, Value>, Refusal> {
    for (name, value) in body {
        if name == "uuid" {
            continue;
        }
        if form(name).is_none() {
            return Err(Refusal::invalid(format!(
                "Schema error for node: Additional properties are not allowed ('{name}' was unexpected)"
            )));
        }
        known(name, microversion)?;
        fits(name, value)?;
    }
    let driver = body
        .get("driver")
        .and_then(Value::as_str)
        .ok_or_else(|| Refusal::invalid("Schema error for node: 'driver' is a required property"))?;
    let mut fields: Map<String, Value> = FIELDS
        .iter()
        .map(|(name, _)| ((*name).to_owned(), unset(name)))
        .collect();
    for (name, value) in body.iter().filter(|(name, _)| *name != "uuid") {
        fields.insert(name.clone(), value.clone());
    }
    interfaces::complete(driver, &mut fields)?;
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_node_has_every_field_and_the_interfaces_of_its_driver() {
        let body = json!({"name": "ns~a", "driver": "redfish", "raid_interface": "agent"});
        let fields = of_new(body.as_object().unwrap(), Microversion::minor(110)).unwrap();
        assert_eq!(fields.len(), FIELDS.len() + interfaces::KINDS.len());
        assert_eq!(fields["boot_interface"], "redfish-virtual-media");
        assert_eq!(fields["raid_interface"], "agent");
        assert_eq!(fields["instance_info"], json!({}));
    }

    #[test]
    fn invalid_fields_are_rejected_with_their_status() {
        for (body, status) in [
            (json!({"driver": "abacus"}), 400),
            (json!({"name": "n"}), 400),
            (json!({"driver": "redfish", "name": "a b"}), 400),
            (json!({"driver": "redfish", "colour": 1}), 400),
            (json!({"driver": "redfish", "extra": []}), 400),
            (json!({"driver": "redfish", "instance_uuid": "x"}), 400),
            (json!({"driver": "redfish", "boot_interface": "ipmi"}), 400),
            (json!({"driver": "redfish", "disable_power_off": true}), 406),
            (json!({"driver": "redfish", "retired": true}), 501),
        ] {
            let refused = of_new(body.as_object().unwrap(), Microversion::minor(94)).unwrap_err();
            assert_eq!(refused.status, status, "{body}");
        }
    }
}
