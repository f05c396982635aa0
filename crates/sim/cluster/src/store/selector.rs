//! Label and field selectors of lists and watches.
//!
//! Label selectors support the whole grammar of Kubernetes; field selectors support the fields of custom kinds and a
//! few fields of built-in kinds.

use serde_json::Value;

use super::kind::Kind;
use super::object;
use super::refusal::Refusal;
use super::request::Call;

/// A parsed label and field selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelTest>,
    fields: Vec<FieldTest>,
}

#[derive(Debug, Clone, PartialEq)]
struct LabelTest {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldTest {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl Selector {
    /// The selectors of a list or a watch.
    pub(crate) fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        Ok(Self {
            labels: Tokens::of(call.request.option("labelSelector")).requirements()?,
            fields: field_tests(call.request.option("fieldSelector"), &call.kind)?,
        })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels
            .iter()
            .all(|label| label.test.holds(object::label(object, &label.key)))
            && self.fields.iter().all(|field| field.holds(object))
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|other| other == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|other| other != value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Greater(limit) => number().is_some_and(|number| number > *limit),
            Self::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

impl FieldTest {
    fn holds(&self, object: &Value) -> bool {
        let mut at = Some(object);
        for name in &self.path {
            at = at.and_then(|value| value.get(name));
        }
        let found = match at {
            Some(Value::Bool(found)) => found.to_string(),
            // The only field that is not a text is one that is false by default.
            None if self.path.last().is_some_and(|name| name == "unschedulable") => "false".to_owned(),
            other => other.and_then(Value::as_str).unwrap_or_default().to_owned(),
        };
        (found == self.value) == self.equal
    }
}

/// Fields of built-in kinds besides name and namespace.
const FIELDS: [(&str, &[&str]); 5] = [
    ("Secret", &["type"]),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    ("Pod", &["spec.nodeName", "status.phase"]),
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.resourceVersion",
            "reason",
            "reportingComponent",
            "type",
        ],
    ),
];

fn field_tests(text: &str, kind: &Kind) -> Result<Vec<FieldTest>, Refusal> {
    let mut tests = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let unequal = term.split_once("!=").map(|(path, value)| (path, value, false));
        let equal = || {
            term.split_once("==")
                .or_else(|| term.split_once('='))
                .map(|(path, value)| (path, value, true))
        };
        let Some((path, value, equal)) = unequal.or_else(equal) else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Refusal::bad_request(message));
        };
        let special = FIELDS
            .iter()
            .any(|(name, paths)| *name == kind.kind && !kind.is_custom() && paths.contains(&path));
        let namespace = path == "metadata.namespace" && (kind.namespaced || kind.is_custom());
        if !(special || namespace || path == "metadata.name") {
            let message = if kind.is_custom() {
                format!("field label not supported: {path}")
            } else {
                format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            };
            return Err(Refusal::bad_request(message));
        }
        tests.push(FieldTest {
            path: path.split('.').map(str::to_owned).collect(),
            value: value.to_owned(),
            equal,
        });
    }
    Ok(tests)
}

/// The tokens of a label selector.
struct Tokens<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '=' | '!' if rest.starts_with("==") || rest.starts_with("!=") => 2,
                '=' | '!' | '(' | ')' | ',' | '<' | '>' => 1,
                _ => rest
                    .find(|c: char| c.is_whitespace() || "=!(),<>".contains(c))
                    .unwrap_or(rest.len()),
            };
            let (token, after) = rest.split_at(length);
            tokens.push(token);
            rest = after.trim_start();
        }
        Self {
            tokens: tokens.into_iter().peekable(),
        }
    }

    fn requirements(mut self) -> Result<Vec<LabelTest>, Refusal> {
        let mut tests = Vec::new();
        if self.tokens.peek().is_none() {
            return Ok(tests);
        }
        loop {
            tests.push(self.requirement()?);
            match self.tokens.next() {
                None => return Ok(tests),
                Some(",") => {}
                Some(other) => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelTest, Refusal> {
        let absent = self.tokens.next_if_eq(&"!").is_some();
        let key = match self.tokens.next() {
            Some(token) if is_name(token) => token.to_owned(),
            other => {
                let found = other.unwrap_or_default();
                let message = format!("found '{found}', expected: !, identifier, or 'end of string'");
                return Err(Refusal::bad_request(message));
            }
        };
        let test = match self.tokens.peek().copied() {
            _ if absent => Test::Absent,
            None | Some(",") => Test::Exists,
            Some(operator) => {
                self.tokens.next();
                self.test(operator)?
            }
        };
        Ok(LabelTest { key, test })
    }

    fn test(&mut self, operator: &str) -> Result<Test, Refusal> {
        Ok(match operator {
            "in" => Test::In(self.set()?),
            "notin" => Test::NotIn(self.set()?),
            "=" | "==" => Test::In(vec![self.value()]),
            "!=" => Test::NotIn(vec![self.value()]),
            ">" | "gt" => Test::Greater(self.number()?),
            "<" | "lt" => Test::Less(self.number()?),
            other => return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// A value; empty before a comma and at the end.
    fn value(&mut self) -> String {
        self.tokens
            .next_if(|token| *token != ",")
            .unwrap_or_default()
            .to_owned()
    }

    fn number(&mut self) -> Result<i64, Refusal> {
        let text = self.value();
        text.parse().map_err(|_| {
            Refusal::bad_request(format!(
                "{text:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ))
        })
    }

    fn set(&mut self) -> Result<Vec<String>, Refusal> {
        match self.tokens.next() {
            Some("(") => {}
            other => {
                let found = other.unwrap_or_default();
                let why = format!("unable to parse requirement: found '{found}' expected: '('");
                return Err(Refusal::bad_request(why));
            }
        }
        let mut values = Vec::new();
        loop {
            match self.tokens.next() {
                Some(token) if is_name(token) => values.push(token.to_owned()),
                other => return Err(unexpected(other.unwrap_or_default(), "',', ')' or identifier")),
            }
            match self.tokens.next() {
                Some(",") => {}
                Some(")") => return Ok(values),
                other => return Err(unexpected(other.unwrap_or_default(), "',' or ')'")),
            }
        }
    }
}

fn is_name(token: &str) -> bool {
    !token.is_empty() && !token.contains(|c: char| "=!(),<>".contains(c))
}

fn unexpected(found: &str, expected: &str) -> Refusal {
    Refusal::bad_request(format!(
        "unable to parse requirement: found '{found}', expected: {expected}"
    ))
}
