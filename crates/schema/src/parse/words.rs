//! Single words of a schema, read with their place at hand.

use serde_json::{Map, Value};

use super::{KNOWN, Parsed, malformed};
use crate::model::{Bound, Type};
use crate::number::{Num, to_float};
use crate::trail::Trail;

/// The words of one schema object, read with their place at hand. A word that is null counts as absent.
pub(super) struct Words<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) at: &'a Trail<'a>,
    pub(super) depth: usize,
}

impl<'a> Words<'a> {
    pub(super) fn get(&self, word: &str) -> Option<&'a Value> {
        self.map.get(word).filter(|value| !value.is_null())
    }

    pub(super) fn wrong<T>(&self, word: &str, expected: &str) -> Parsed<T> {
        Err(malformed(&self.at.field(word), expected))
    }

    /// The words that say something: an empty text, a false flag and an empty list say nothing.
    pub(super) fn present(&self) -> Vec<&'static str> {
        let says = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::Bool(true) | Value::Number(_) => true,
        };
        // An empty schema still is one, and a default of false is a default.
        let counts = |word: &str| matches!(word, "additionalProperties" | "default" | "items" | "not");
        KNOWN
            .into_iter()
            .filter(|word| self.get(word).is_some_and(|value| counts(word) || says(value)))
            .collect()
    }

    pub(super) fn flag(&self, word: &str) -> Parsed<bool> {
        match self.get(word) {
            None => Ok(false),
            Some(Value::Bool(yes)) => Ok(*yes),
            Some(_) => self.wrong(word, "true or false"),
        }
    }

    pub(super) fn text(&self, word: &str) -> Parsed<&'a str> {
        match self.get(word) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => self.wrong(word, "a string"),
        }
    }

    pub(super) fn texts(&self, word: &str) -> Parsed<Vec<String>> {
        let Some(value) = self.get(word) else {
            return Ok(Vec::new());
        };
        let texts = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(String::from)).collect());
        texts.map_or_else(|| self.wrong(word, "a list of strings"), Ok)
    }

    pub(super) fn number(&self, word: &str) -> Parsed<Option<f64>> {
        match self.get(word) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(match Num::of(number) {
                Num::Int(int) => to_float(int),
                Num::Float(value) => value,
            })),
            Some(_) => self.wrong(word, "a number"),
        }
    }

    pub(super) fn bound(&self, word: &str, exclusive: &str) -> Parsed<Option<Bound>> {
        let exclusive = self.flag(exclusive)?;
        Ok(self.number(word)?.map(|at| Bound { at, exclusive }))
    }

    pub(super) fn count(&self, word: &str) -> Parsed<Option<u64>> {
        match self.get(word).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(count)) => Ok(Some(count)),
            Some(None) => self.wrong(word, "a whole number, not negative"),
        }
    }

    pub(super) fn choice<T: Copy>(&self, word: &str, choices: &[(&str, T)]) -> Parsed<Option<T>> {
        let Some(value) = self.get(word) else { return Ok(None) };
        let found = value
            .as_str()
            .and_then(|text| choices.iter().find(|(name, _)| *name == text));
        match found {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                self.wrong(word, &format!("one of {}", names.join(", ")))
            }
        }
    }

    /// The empty string is no type, as in Go.
    pub(super) fn ty(&self) -> Parsed<Option<Type>> {
        if self.get("type") == Some(&Value::String(String::new())) {
            return Ok(None);
        }
        self.choice("type", &Type::ALL.map(|ty| (ty.name(), ty)))
    }

    pub(super) fn preserve_unknown(&self) -> Parsed<bool> {
        let word = "x-kubernetes-preserve-unknown-fields";
        match self.get(word) {
            None => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(_) => self.wrong(word, "true or undefined"),
        }
    }
}
