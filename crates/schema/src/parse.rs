//! Parsing of `openAPIV3Schema`.
//!
//! Total: any JSON value gives a schema or an error with its path and the cure. Keywords that the API server accepts in
//! no CRD (`$ref`, `definitions`, lists of item schemas) are rejected; context-dependent errors are left to
//! [`Schema::violations`](crate::Schema::violations). Unknown keywords are rejected too: the API server drops them,
//! which would silently disable a check.

mod error;
mod keywords;

use serde_json::Value;

use crate::format::Format;
use crate::golang;
use crate::model::{Additional, Limits, ListType, MapType, Pattern, Rule, Schema};
use crate::pattern;
use crate::program::Program;
use crate::value_path::ValuePath;

pub use self::error::SchemaError;
use self::error::{MAX_DEPTH, Parsed, malformed, place};
use self::keywords::{Keywords, refuse_unknown};

impl Schema {
    /// Parses and compiles a schema.
    ///
    /// # Errors
    /// The first problem, with its path.
    pub fn parse(schema: &Value) -> Result<Schema, SchemaError> {
        read(schema, &ValuePath::Root, 0)
    }
}

fn read(value: &Value, at: &ValuePath<'_>, depth: usize) -> Parsed<Schema> {
    if depth > MAX_DEPTH {
        return Err(SchemaError::TooDeep { at: place(at) });
    }
    let map = value.as_object().ok_or_else(|| malformed(at, "an object"))?;
    refuse_unknown(map, at)?;
    let keywords = Keywords { map, at, depth };
    let mut schema = Schema {
        ty: keywords.ty()?,
        nullable: keywords.flag("nullable")?,
        default: map.get("default").filter(|value| !value.is_null()).cloned(),
        keywords: keywords.present(),
        properties: keywords.properties()?,
        additional: keywords.additional()?,
        items: keywords.child("items")?.map(Box::new),
        preserve_unknown: keywords.preserve_unknown()?,
        embedded: keywords.flag("x-kubernetes-embedded-resource")?,
        int_or_string: keywords.flag("x-kubernetes-int-or-string")?,
        list_type: keywords.choice(
            "x-kubernetes-list-type",
            &[
                ("atomic", ListType::Atomic),
                ("set", ListType::Set),
                ("map", ListType::Map),
            ],
        )?,
        list_map_keys: keywords.texts("x-kubernetes-list-map-keys")?,
        map_type: keywords.choice(
            "x-kubernetes-map-type",
            &[("atomic", MapType::Atomic), ("granular", MapType::Granular)],
        )?,
        rules: keywords.rules()?,
        limits: keywords.limits()?,
        all_of: keywords.children("allOf")?,
        any_of: keywords.children("anyOf")?,
        one_of: keywords.children("oneOf")?,
        not: keywords.child("not")?.map(Box::new),
        has_rules: false,
    };
    schema.has_rules = !schema.rules.is_empty()
        || schema.properties.values().any(|property| property.has_rules)
        || schema.items.as_ref().is_some_and(|items| items.has_rules)
        || schema.additional_schema().is_some_and(|entry| entry.has_rules);
    Ok(schema)
}

impl Keywords<'_> {
    fn child(&self, keyword: &str) -> Parsed<Option<Schema>> {
        self.get(keyword)
            .map(|value| read(value, &self.at.field(keyword), self.depth + 1))
            .transpose()
    }

    fn children(&self, keyword: &str) -> Parsed<Vec<Schema>> {
        let Some(value) = self.get(keyword) else {
            return Ok(Vec::new());
        };
        let Some(items) = value.as_array() else {
            return self.wrong(keyword, "a list of schemas");
        };
        let at = self.at.field(keyword);
        items
            .iter()
            .enumerate()
            .map(|(index, item)| read(item, &at.item(index), self.depth + 1))
            .collect()
    }

    fn properties(&self) -> Parsed<std::collections::BTreeMap<String, Schema>> {
        let Some(value) = self.get("properties") else {
            return Ok(Default::default());
        };
        let Some(map) = value.as_object() else {
            return self.wrong("properties", "a map of schemas");
        };
        let at = self.at.field("properties");
        let entry = |(name, value): (&String, &Value)| Ok((name.clone(), read(value, &at.key(name), self.depth + 1)?));
        map.iter().map(entry).collect()
    }

    fn additional(&self) -> Parsed<Option<Additional>> {
        match self.get("additionalProperties") {
            Some(Value::Bool(allowed)) => Ok(Some(Additional::Allowed(*allowed))),
            _ => Ok(self
                .child("additionalProperties")?
                .map(|schema| Additional::Schema(Box::new(schema)))),
        }
    }

    fn limits(&self) -> Parsed<Limits> {
        Ok(Limits {
            format: self.format()?,
            allowed: self.allowed()?,
            pattern: self.pattern()?,
            maximum: self.bound("maximum", "exclusiveMaximum")?,
            minimum: self.bound("minimum", "exclusiveMinimum")?,
            multiple_of: self.number("multipleOf")?,
            max_length: self.count("maxLength")?,
            min_length: self.count("minLength")?,
            max_items: self.count("maxItems")?,
            min_items: self.count("minItems")?,
            unique_items: self.flag("uniqueItems")?,
            max_properties: self.count("maxProperties")?,
            min_properties: self.count("minProperties")?,
            required: self.texts("required")?,
        })
    }

    fn format(&self) -> Parsed<Option<(String, Format)>> {
        let name = self.text("format")?;
        match Format::by_name(name) {
            Ok(format) => Ok(format.map(|format| (name.to_owned(), format))),
            Err(cure) => Err(SchemaError::Unsupported {
                at: place(self.at),
                keyword: format!("format: {name}"),
                cure: cure.to_owned(),
            }),
        }
    }

    fn allowed(&self) -> Parsed<Vec<Value>> {
        match self.get("enum") {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values.clone()),
            Some(_) => self.wrong("enum", "a list of values"),
        }
    }

    fn pattern(&self) -> Parsed<Option<Pattern>> {
        let source = self.text("pattern")?;
        if source.is_empty() {
            return Ok(None);
        }
        let regex = pattern::compile(source).map_err(|problem| SchemaError::Pattern {
            at: place(&self.at.field("pattern")),
            pattern: source.to_owned(),
            problem,
        })?;
        Ok(Some(Pattern {
            source: source.to_owned(),
            regex,
        }))
    }

    fn rules(&self) -> Parsed<Vec<Rule>> {
        let keyword = "x-kubernetes-validations";
        let Some(value) = self.get(keyword) else {
            return Ok(Vec::new());
        };
        let Some(items) = value.as_array() else {
            return self.wrong(keyword, "a list of rules");
        };
        let at = self.at.field(keyword);
        items
            .iter()
            .enumerate()
            .map(|(index, item)| read_rule(item, &at.item(index), self.depth))
            .collect()
    }
}

/// A rule as the API server prints it.
fn shown(rule: &serde_json::Map<String, Value>) -> String {
    let text = |name: &str| golang::quote(rule.get(name).and_then(Value::as_str).unwrap_or_default());
    let or_null = |name: &str| rule.get(name).map_or_else(|| "null".to_owned(), Value::to_string);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        or_null("reason"),
        text("fieldPath"),
        or_null("optionalOldSelf")
    )
}

fn read_rule(value: &Value, at: &ValuePath<'_>, depth: usize) -> Parsed<Rule> {
    let map = value.as_object().ok_or_else(|| malformed(at, "a rule"))?;
    let keywords = Keywords { map, at, depth };
    let known = [
        "fieldPath",
        "message",
        "messageExpression",
        "optionalOldSelf",
        "reason",
        "rule",
    ];
    if let Some(keyword) = map.keys().find(|keyword| !known.contains(&keyword.as_str())) {
        return Err(SchemaError::Unsupported {
            at: place(at),
            keyword: keyword.clone(),
            cure: "remove it".into(),
        });
    }
    let compile = |keyword: &str, source: &str| {
        let fault = |problem| SchemaError::Rule {
            at: place(&at.field(keyword)),
            rule: source.to_owned(),
            shown: shown(map),
            problem,
        };
        Program::compile(source).map_err(fault)
    };
    let (source, message_source) = (keywords.text("rule")?, keywords.text("messageExpression")?);
    let has_message = !message_source.trim().is_empty();
    Ok(Rule {
        program: compile("rule", source)?,
        source: source.to_owned(),
        message: keywords.text("message")?.to_owned(),
        message_program: has_message
            .then(|| compile("messageExpression", message_source))
            .transpose()?,
        reason: keywords.text("reason")?.to_owned(),
        field_path: keywords.text("fieldPath")?.to_owned(),
        optional_old_self: keywords.flag("optionalOldSelf")?,
    })
}
