//! Rules over documents: what a webhook calls, whatever the kind.

use std::fmt;

use serde_json::Value;

use super::{Change, Finding, Level, Ruled, fill, review};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A stored object is replaced.
    Update,
    /// A stored object goes.
    Delete,
}

/// A row of a table, for the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// When it looks: `create, update`, or `default` for a row that fills in.
    pub when: &'static str,
    /// The rule as a sentence.
    pub says: &'static str,
    /// Row of `docs/parity.md`, where the Go managers decide otherwise.
    pub differs: Option<&'static str>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Everything found, in the order of the table.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// True when nothing refuses the request.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// What refuses the request.
    pub fn refusals(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Refuse)
    }

    /// What the user is told.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.findings
            .iter()
            .filter(|finding| finding.level == Level::Warn)
            .map(Finding::detail)
            .collect()
    }
}

/// A document that the rules cannot look at, because it is not of the shape its kind has.
#[derive(Debug)]
pub struct ReviewError(String);

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReviewError {}

/// Operation, stored document, document to store.
type Review = fn(Operation, Option<&Value>, Option<&Value>) -> Result<Verdict, ReviewError>;

/// The rules of one kind, over documents.
#[derive(Clone, Copy, Debug)]
pub struct Reviewer {
    /// API group.
    pub group: &'static str,
    /// Version the rules are written for.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Resource name in URLs.
    pub plural: &'static str,
    /// Every row.
    pub rows: fn() -> Vec<Row>,
    /// Reviews a request: operation, old document, new document.
    pub review: Review,
    /// The document with what the user left out.
    pub fill: fn(&Value) -> Result<Value, ReviewError>,
}

impl Reviewer {
    /// The rules of kind `K`.
    #[must_use]
    pub fn of<K: Ruled>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
            rows: rows::<K>,
            review: review_documents::<K>,
            fill: fill_document::<K>,
        }
    }
}

fn rows<K: Ruled>() -> Vec<Row> {
    let fillings = K::FILLINGS.iter().map(|row| Row {
        name: row.name,
        when: "default",
        says: row.says,
        differs: None,
    });
    let rules = K::RULES.iter().map(|row| Row {
        name: row.name,
        when: row.on.when(),
        says: row.says,
        differs: row.differs,
    });
    fillings.chain(rules).collect()
}

fn review_documents<K: Ruled>(
    operation: Operation,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Verdict, ReviewError> {
    let missing = |which: &str| ReviewError(format!("the request carries no {which} object"));
    let old = || decode::<K>(old.ok_or_else(|| missing("old"))?);
    let new = || decode::<K>(new.ok_or_else(|| missing("new"))?);
    let findings = match operation {
        Operation::Create => review(&Change::Create(&new()?)),
        Operation::Update => review(&Change::Update {
            old: &old()?,
            new: &new()?,
        }),
        Operation::Delete => review(&Change::Delete(&old()?)),
    };
    Ok(Verdict { findings })
}

/// The document with what the rows fill in, and nothing else touched: members the type does not know stay.
fn fill_document<K: Ruled>(document: &Value) -> Result<Value, ReviewError> {
    let written = |object: &K| serde_json::to_value(object).map_err(|error| ReviewError(error.to_string()));
    let mut object: K = decode(document)?;
    let before = written(&object)?;
    fill(&mut object);
    let mut filled = document.clone();
    overlay(&mut filled, &before, &written(&object)?);
    Ok(filled)
}

/// Carries the members that differ between `before` and `after` into `document`.
fn overlay(document: &mut Value, before: &Value, after: &Value) {
    let Value::Object(members) = after else {
        document.clone_from(after);
        return;
    };
    for (name, value) in members {
        let was = before.get(name).unwrap_or(&Value::Null);
        if was == value {
            continue;
        }
        if !document.is_object() {
            *document = Value::Object(serde_json::Map::new());
        }
        if let Value::Object(map) = document {
            overlay(map.entry(name.clone()).or_insert(Value::Null), was, value);
        }
    }
}

fn decode<K: Ruled>(document: &Value) -> Result<K, ReviewError> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path().to_string();
        ReviewError(format!(
            "{path}: {}; write it as the schema of {} says",
            error.into_inner(),
            K::KIND
        ))
    })
}
