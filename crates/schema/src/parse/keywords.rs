//! Typed access to the keywords of a schema.

use serde_json::{Map, Value};

use super::error::{Parsed, SchemaError, malformed, place};
use crate::model::{Bound, Type};
use crate::number::{Num, to_float};
use crate::value_path::ValuePath;

const KNOWN: [&str; 39] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-group-version-kind",
    "$comment",
];

pub(super) fn refuse_unknown(map: &Map<String, Value>, at: &ValuePath<'_>) -> Parsed<()> {
    let Some(keyword) = map.keys().find(|keyword| !KNOWN.contains(&keyword.as_str())) else {
        return Ok(());
    };
    let cure = match keyword.as_str() {
        "$ref" | "definitions" => "write the schema out where it is used",
        "patternProperties" => "use `additionalProperties` with a rule on its keys",
        "dependencies" => "use a rule in `x-kubernetes-validations`",
        "additionalItems" => "use one schema in `items`",
        _ => "remove it",
    };
    Err(SchemaError::Unsupported {
        at: place(at),
        keyword: keyword.clone(),
        cure: cure.into(),
    })
}

/// The keywords of one schema object, with its path. A null keyword counts as absent.
pub(super) struct Keywords<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) at: &'a ValuePath<'a>,
    pub(super) depth: usize,
}

impl<'a> Keywords<'a> {
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.map.get(keyword).filter(|value| !value.is_null())
    }

    pub(super) fn wrong<T>(&self, keyword: &str, expected: &str) -> Parsed<T> {
        Err(malformed(&self.at.field(keyword), expected))
    }

    /// The keywords with an effective value: not an empty text, a false flag or an empty list.
    pub(super) fn present(&self) -> Vec<&'static str> {
        let effective = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::Bool(true) | Value::Number(_) => true,
        };
        // An empty schema and a default of false are effective.
        let counts = |keyword: &str| matches!(keyword, "additionalProperties" | "default" | "items" | "not");
        KNOWN
            .into_iter()
            .filter(|keyword| {
                self.get(keyword)
                    .is_some_and(|value| counts(keyword) || effective(value))
            })
            .collect()
    }

    pub(super) fn flag(&self, keyword: &str) -> Parsed<bool> {
        match self.get(keyword) {
            None => Ok(false),
            Some(Value::Bool(yes)) => Ok(*yes),
            Some(_) => self.wrong(keyword, "true or false"),
        }
    }

    pub(super) fn text(&self, keyword: &str) -> Parsed<&'a str> {
        match self.get(keyword) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => self.wrong(keyword, "a string"),
        }
    }

    pub(super) fn texts(&self, keyword: &str) -> Parsed<Vec<String>> {
        let Some(value) = self.get(keyword) else {
            return Ok(Vec::new());
        };
        let texts = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(String::from)).collect());
        texts.map_or_else(|| self.wrong(keyword, "a list of strings"), Ok)
    }

    pub(super) fn number(&self, keyword: &str) -> Parsed<Option<f64>> {
        match self.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(match Num::of(number) {
                Num::Int(int) => to_float(int),
                Num::Float(value) => value,
            })),
            Some(_) => self.wrong(keyword, "a number"),
        }
    }

    pub(super) fn bound(&self, keyword: &str, exclusive: &str) -> Parsed<Option<Bound>> {
        let exclusive = self.flag(exclusive)?;
        Ok(self.number(keyword)?.map(|at| Bound { at, exclusive }))
    }

    pub(super) fn count(&self, keyword: &str) -> Parsed<Option<u64>> {
        match self.get(keyword).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(count)) => Ok(Some(count)),
            Some(None) => self.wrong(keyword, "a whole number, not negative"),
        }
    }

    pub(super) fn choice<T: Copy>(&self, keyword: &str, choices: &[(&str, T)]) -> Parsed<Option<T>> {
        let Some(value) = self.get(keyword) else {
            return Ok(None);
        };
        let found = value
            .as_str()
            .and_then(|text| choices.iter().find(|(name, _)| *name == text));
        match found {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                self.wrong(keyword, &format!("one of {}", names.join(", ")))
            }
        }
    }

    /// As in Go, the empty string is no type.
    pub(super) fn ty(&self) -> Parsed<Option<Type>> {
        if self.get("type") == Some(&Value::String(String::new())) {
            return Ok(None);
        }
        let found = self.get("type").and_then(Value::as_str).map(str::to_owned);
        let chosen = self.choice("type", &Type::ALL.map(|ty| (ty.name(), ty)));
        chosen.map_err(|error| match error {
            SchemaError::Malformed { at, expected, .. } => SchemaError::Malformed { at, expected, found },
            other => other,
        })
    }

    pub(super) fn preserve_unknown(&self) -> Parsed<bool> {
        let keyword = "x-kubernetes-preserve-unknown-fields";
        match self.get(keyword) {
            None => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(_) => self.wrong(keyword, "true or undefined"),
        }
    }
}
