//! The types of the fields of built-in kinds as a client of the real server learns them: numbers of 32 and 64 bits, and quantities.
//!
//! A value of another type is rejected with the text of the decoder that reads it on a real server; a quantity gets its canonical form.

use std::collections::BTreeMap;

use serde_json::Value;

use super::published::{SCHEMAS, built_in};
use super::quantity::{FORMAT, canonical};
use super::shape::reference;
use crate::store::object;

/// The type of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    Any,
    Text,
    /// Bytes as text in base64, which is read elsewhere.
    Bytes,
    Flag,
    Number,
    Whole32,
    Whole64,
    Quantity,
    Map(Box<Typed>),
    List(Box<Typed>),
    /// A type with its name.
    Object(String, BTreeMap<String, Typed>),
}

/// Who reads an object on a real server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Decoder {
    /// The decoder of JSON bodies.
    Json,
    /// The conversion of a patched or applied object.
    Converted,
}

/// The types of a kind; `None` if none are published.
pub(in crate::store) fn typed(group: &str, kind: &str) -> Option<Typed> {
    let (name, schema) = built_in(group, kind)?;
    Some(of_named(name, schema))
}

fn of_named(name: &str, schema: &Value) -> Typed {
    let parts: Vec<&str> = name.rsplit('.').collect();
    match parts.as_slice() {
        ["Quantity", ..] => Typed::Quantity,
        [
            "IntOrString" | "Time" | "MicroTime" | "FieldsV1" | "JSONSchemaProps" | "JSON" | "RawExtension",
            ..,
        ] => Typed::Any,
        [kind, version, ..] => match of(schema) {
            Typed::Object(_, fields) => Typed::Object(format!("{version}.{kind}"), fields),
            other => other,
        },
        _ => of(schema),
    }
}

fn of(schema: &Value) -> Typed {
    if let Some(name) = reference(schema) {
        return SCHEMAS.get(name).map_or(Typed::Any, |schema| of_named(name, schema));
    }
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("type"), text("format")) {
        ("string", "byte") => Typed::Bytes,
        ("string", _) => Typed::Text,
        ("boolean", _) => Typed::Flag,
        ("integer", "int32") => Typed::Whole32,
        ("integer", _) => Typed::Whole64,
        ("number", _) => Typed::Number,
        ("array", _) => Typed::List(Box::new(schema.get("items").map_or(Typed::Any, of))),
        ("object", _) => match (schema.get("properties"), schema.get("additionalProperties")) {
            (Some(Value::Object(fields)), _) => {
                let fields = fields.iter().map(|(name, field)| (name.clone(), of(field)));
                Typed::Object(String::new(), fields.collect())
            }
            (_, Some(inner)) => Typed::Map(Box::new(of(inner))),
            _ => Typed::Any,
        },
        _ => Typed::Any,
    }
}

impl Typed {
    /// Checks a value, and writes its quantities in their canonical form.
    ///
    /// # Errors
    /// The text for the first value of another type.
    pub(in crate::store) fn decode(&self, value: &mut Value, decoder: Decoder) -> Result<(), String> {
        let place = Place {
            decoder,
            within: "",
            path: String::new(),
        };
        self.read(value, &place)
    }

    fn read(&self, value: &mut Value, at: &Place<'_>) -> Result<(), String> {
        match (self, &mut *value) {
            (Self::Any, _) | (_, Value::Null) | (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => Ok(()),
            (Self::Number, Value::Number(_)) | (Self::Bytes, Value::String(_)) => Ok(()),
            (Self::Whole32 | Self::Whole64, Value::Number(_)) => self.whole(value, at),
            (Self::Quantity, Value::String(text)) => {
                *text = canonical(text)?;
                Ok(())
            }
            (Self::Quantity, Value::Number(number)) => {
                *value = canonical(&number.to_string())?.into();
                Ok(())
            }
            (Self::Quantity, _) => Err(FORMAT.to_owned()),
            (Self::Map(inner), Value::Object(members)) => {
                members.values_mut().try_for_each(|member| inner.read(member, at))
            }
            (Self::List(inner), Value::Array(items)) => items.iter_mut().try_for_each(|item| inner.read(item, at)),
            (Self::Object(name, fields), Value::Object(members)) => {
                let name = name.rsplit('.').next().unwrap_or_default();
                members
                    .iter_mut()
                    .try_for_each(|(member, value)| match fields.get(member) {
                        Some(field) => field.read(value, &at.member(name, member)),
                        None => Ok(()),
                    })
            }
            _ => Err(at.mismatch(self, value)),
        }
    }

    /// A whole number. The conversion keeps the lower 32 bits of one that is too large.
    fn whole(&self, value: &mut Value, at: &Place<'_>) -> Result<(), String> {
        let number = match at.decoder {
            Decoder::Json => value.as_i64(),
            Decoder::Converted => value.as_i64().or_else(|| integer(value.as_f64().unwrap_or_default())),
        };
        match (number, self) {
            (Some(number), Self::Whole32) if i32::try_from(number).is_err() => match at.decoder {
                Decoder::Json => Err(at.mismatch(self, value)),
                Decoder::Converted => {
                    *value = lower(number).into();
                    Ok(())
                }
            },
            (Some(number), _) => {
                *value = number.into();
                Ok(())
            }
            (None, _) => Err(at.mismatch(self, value)),
        }
    }

    /// The name of the type.
    fn name(&self) -> String {
        match self {
            Self::Any => "interface {}".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Flag => "bool".to_owned(),
            Self::Number => "float64".to_owned(),
            Self::Whole32 => "int32".to_owned(),
            Self::Whole64 => "int64".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::Map(inner) => format!("map[string]{}", inner.name()),
            Self::List(inner) => format!("[]{}", inner.name()),
            Self::Object(name, _) => name.clone(),
        }
    }
}

/// A number without a fraction.
fn integer(float: f64) -> Option<i64> {
    let text = format!("{float:.0}");
    (float.fract() == 0.0).then(|| text.parse().ok()).flatten()
}

/// The lower 32 bits of a number, with their sign.
fn lower(number: i64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Where a value is.
struct Place<'a> {
    decoder: Decoder,
    /// The type of the object around it.
    within: &'a str,
    path: String,
}

impl Place<'_> {
    fn member<'b>(&self, within: &'b str, name: &str) -> Place<'b> {
        let dot = if self.path.is_empty() { "" } else { "." };
        Place {
            decoder: self.decoder,
            within,
            path: format!("{}{dot}{name}", self.path),
        }
    }

    fn mismatch(&self, wanted: &Typed, found: &Value) -> String {
        match self.decoder {
            Decoder::Converted => converted(wanted, found),
            Decoder::Json => {
                let number = match (wanted, found) {
                    (Typed::Whole32 | Typed::Whole64, Value::Number(number)) => format!(" {number}"),
                    _ => String::new(),
                };
                format!(
                    "json: cannot unmarshal {}{number} into Go struct field {}.{} of type {}",
                    object::type_name(found),
                    self.within,
                    self.path,
                    wanted.name()
                )
            }
        }
    }
}

fn converted(wanted: &Typed, found: &Value) -> String {
    let kind = match found {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match wanted {
        Typed::Map(_) => format!("cannot restore map from {kind}"),
        Typed::List(_) | Typed::Bytes => format!("cannot restore slice from {kind}"),
        Typed::Object(..) => format!("cannot restore struct from: {kind}"),
        _ if matches!(
            (kind, wanted),
            ("int64", Typed::Text) | ("float64", Typed::Whole32 | Typed::Whole64)
        ) =>
        {
            format!("cannot convert {kind} to {}", wanted.name())
        }
        _ => format!("unrecognized type: {}", wanted.name()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(group: &str, kind: &str, mut value: Value, decoder: Decoder) -> Result<Value, String> {
        typed(group, kind).unwrap().decode(&mut value, decoder).map(|()| value)
    }

    #[test]
    fn quantities_and_numbers_get_one_form() {
        let container = json!({ "name": "c", "resources": { "limits": { "cpu": 1, "memory": "1024Mi" } } });
        let pod = json!({ "spec": { "containers": [container], "terminationGracePeriodSeconds": 3 } });
        let pod = decoded("", "Pod", pod, Decoder::Json).unwrap();
        let limits = pod.pointer("/spec/containers/0/resources/limits").unwrap();
        assert_eq!(*limits, json!({ "cpu": "1", "memory": "1Gi" }));
        assert_eq!(pod.pointer("/spec/terminationGracePeriodSeconds"), Some(&json!(3)));
    }

    #[test]
    fn values_of_other_types_are_named_as_by_the_decoder() {
        let of = |group: &str, kind: &str, value: Value| decoded(group, kind, value, Decoder::Json).unwrap_err();
        let variable = json!({ "spec": { "containers": [{ "name": "c", "env": [{ "name": "A", "value": 1 }] }] } });
        for (group, kind, value, expected) in [
            (
                "",
                "ConfigMap",
                json!({ "data": { "on": true } }),
                "bool into Go struct field ConfigMap.data of type string",
            ),
            (
                "",
                "Pod",
                variable,
                "number into Go struct field EnvVar.spec.containers.env.value of type string",
            ),
            (
                "",
                "Pod",
                json!({ "spec": { "containers": {} } }),
                "object into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                "apps",
                "Deployment",
                json!({ "spec": { "replicas": 3.0 } }),
                "number 3.0 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "apps",
                "Deployment",
                json!({ "spec": { "replicas": "2" } }),
                "string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
        ] {
            assert_eq!(of(group, kind, value), format!("json: cannot unmarshal {expected}"));
        }
    }

    #[test]
    fn values_of_other_types_are_named_as_by_the_conversion() {
        let of = |group: &str, kind: &str, value: Value| decoded(group, kind, value, Decoder::Converted);
        for (value, expected) in [
            (json!({ "data": { "n": 1 } }), "cannot convert int64 to string"),
            (json!({ "data": { "n": true } }), "unrecognized type: string"),
            (json!({ "data": ["n"] }), "cannot restore map from slice"),
            (json!({ "data": "n" }), "cannot restore map from string"),
            (
                json!({ "metadata": { "labels": { "a": 7 } } }),
                "cannot convert int64 to string",
            ),
        ] {
            assert_eq!(of("", "ConfigMap", value).unwrap_err(), expected);
        }
        let replicas = |value: Value| of("apps", "Deployment", json!({ "spec": { "replicas": value } }));
        assert_eq!(replicas(json!(1.5)).unwrap_err(), "cannot convert float64 to int32");
        assert_eq!(
            replicas(json!(3_000_000_000_i64)).unwrap(),
            json!({ "spec": { "replicas": -1_294_967_296 } })
        );
    }
}
