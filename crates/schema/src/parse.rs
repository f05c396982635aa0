//! From a CRD's `openAPIV3Schema` to a [`Schema`].
//!
//! Total: any JSON value gives a schema or an error that names the place and the cure. What the API server would not
//! accept in any CRD (`$ref`, `definitions`, lists of item schemas) is refused here; what depends on its surroundings is
//! left to [`Schema::violations`](crate::Schema::violations). Unknown words are refused too: the API server would drop
//! them, and a rule that is silently not checked is worse than an error.

mod words;

use serde_json::{Map, Value};

use crate::format::Format;
use crate::model::{Additional, Limits, ListType, MapType, Pattern, Schema};
use crate::pattern;
use crate::rules::{Program, Rule};
use crate::trail::Trail;

use self::words::Words;

/// How deep a schema may nest. Far beyond any CRD; it keeps recursion off the end of the stack.
const MAX_DEPTH: usize = 96;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A keyword that the API server supports in no CRD, or that this crate does not implement.
    #[error("{at}: `{keyword}` is not supported; {cure}")]
    Unsupported {
        /// Where the keyword stands.
        at: String,
        /// The keyword.
        keyword: String,
        /// What to do instead.
        cure: String,
    },
    /// A value of the wrong shape.
    #[error("{at}: must be {expected}")]
    Malformed {
        /// Where the value stands.
        at: String,
        /// What is allowed there.
        expected: String,
    },
    /// A regular expression that does not compile.
    #[error("{at}: `{pattern}` is not a regular expression (RE2 syntax): {problem}")]
    Pattern {
        /// Where the pattern stands.
        at: String,
        /// The pattern.
        pattern: String,
        /// What the compiler says.
        problem: String,
    },
    /// A rule of `x-kubernetes-validations` that cannot be evaluated.
    #[error("{at}: `{rule}` is not a rule: {problem}")]
    Rule {
        /// Where the rule stands.
        at: String,
        /// The expression.
        rule: String,
        /// What the compiler says.
        problem: String,
    },
    /// Schemas nested without end.
    #[error("{at}: more than {MAX_DEPTH} schemas inside each other; flatten it")]
    TooDeep {
        /// Where the limit was reached.
        at: String,
    },
}

type Parsed<T> = Result<T, SchemaError>;

impl Schema {
    /// Reads and compiles a schema.
    ///
    /// # Errors
    /// [`SchemaError`] says where and why; the first problem ends the reading.
    pub fn parse(schema: &Value) -> Result<Schema, SchemaError> {
        read(schema, &Trail::Root, 0)
    }
}

fn read(value: &Value, at: &Trail<'_>, depth: usize) -> Parsed<Schema> {
    if depth > MAX_DEPTH {
        return Err(SchemaError::TooDeep { at: place(at) });
    }
    let map = value.as_object().ok_or_else(|| malformed(at, "an object"))?;
    refuse_unknown(map, at)?;
    let words = Words { map, at, depth };
    let mut schema = Schema {
        ty: words.ty()?,
        nullable: words.flag("nullable")?,
        default: map.get("default").filter(|value| !value.is_null()).cloned(),
        words: words.present(),
        properties: words.properties()?,
        additional: words.additional()?,
        items: words.child("items")?.map(Box::new),
        preserve_unknown: words.preserve_unknown()?,
        embedded: words.flag("x-kubernetes-embedded-resource")?,
        int_or_string: words.flag("x-kubernetes-int-or-string")?,
        list_type: words.choice(
            "x-kubernetes-list-type",
            &[
                ("atomic", ListType::Atomic),
                ("set", ListType::Set),
                ("map", ListType::Map),
            ],
        )?,
        list_map_keys: words.texts("x-kubernetes-list-map-keys")?,
        map_type: words.choice(
            "x-kubernetes-map-type",
            &[("atomic", MapType::Atomic), ("granular", MapType::Granular)],
        )?,
        rules: words.rules()?,
        limits: words.limits()?,
        all_of: words.children("allOf")?,
        any_of: words.children("anyOf")?,
        one_of: words.children("oneOf")?,
        not: words.child("not")?.map(Box::new),
        ruled: false,
    };
    schema.ruled = !schema.rules.is_empty()
        || schema.properties.values().any(|property| property.ruled)
        || schema.items.as_ref().is_some_and(|items| items.ruled)
        || schema.additional_schema().is_some_and(|entry| entry.ruled);
    Ok(schema)
}

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

fn refuse_unknown(map: &Map<String, Value>, at: &Trail<'_>) -> Parsed<()> {
    let Some(keyword) = map.keys().find(|word| !KNOWN.contains(&word.as_str())) else {
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

fn place(at: &Trail<'_>) -> String {
    if at.is_root() {
        String::from("openAPIV3Schema")
    } else {
        format!("openAPIV3Schema.{at}")
    }
}

fn malformed(at: &Trail<'_>, expected: &str) -> SchemaError {
    SchemaError::Malformed {
        at: place(at),
        expected: expected.into(),
    }
}

impl Words<'_> {
    fn child(&self, word: &str) -> Parsed<Option<Schema>> {
        self.get(word)
            .map(|value| read(value, &self.at.field(word), self.depth + 1))
            .transpose()
    }

    fn children(&self, word: &str) -> Parsed<Vec<Schema>> {
        let Some(value) = self.get(word) else {
            return Ok(Vec::new());
        };
        let Some(items) = value.as_array() else {
            return self.wrong(word, "a list of schemas");
        };
        let at = self.at.field(word);
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
        let word = "x-kubernetes-validations";
        let Some(value) = self.get(word) else {
            return Ok(Vec::new());
        };
        let Some(items) = value.as_array() else {
            return self.wrong(word, "a list of rules");
        };
        let at = self.at.field(word);
        items
            .iter()
            .enumerate()
            .map(|(index, item)| read_rule(item, &at.item(index), self.depth))
            .collect()
    }
}

fn read_rule(value: &Value, at: &Trail<'_>, depth: usize) -> Parsed<Rule> {
    let map = value.as_object().ok_or_else(|| malformed(at, "a rule"))?;
    let words = Words { map, at, depth };
    let known = [
        "fieldPath",
        "message",
        "messageExpression",
        "optionalOldSelf",
        "reason",
        "rule",
    ];
    if let Some(keyword) = map.keys().find(|word| !known.contains(&word.as_str())) {
        return Err(SchemaError::Unsupported {
            at: place(at),
            keyword: keyword.clone(),
            cure: "remove it".into(),
        });
    }
    let compile = |word: &str, source: &str| {
        let fault = |problem| SchemaError::Rule {
            at: place(&at.field(word)),
            rule: source.to_owned(),
            problem,
        };
        Program::compile(source).map_err(fault)
    };
    let (source, message_source) = (words.text("rule")?, words.text("messageExpression")?);
    let has_message = !message_source.trim().is_empty();
    Ok(Rule {
        program: compile("rule", source)?,
        source: source.to_owned(),
        message: words.text("message")?.to_owned(),
        message_program: has_message
            .then(|| compile("messageExpression", message_source))
            .transpose()?,
        reason: words.text("reason")?.to_owned(),
        field_path: words.text("fieldPath")?.to_owned(),
        optional_old_self: words.flag("optionalOldSelf")?,
    })
}
