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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Filling, Findings, On, Rule};
    use super::*;
    use crate::ipam::v1alpha1::IPPool;
    use crate::kind::Kind as _;
    use serde_json::json;

    fn reviewer() -> Reviewer {
        Reviewer::of::<IPPool>()
    }

    fn pool(spec: &Value) -> Value {
        json!({ "apiVersion": IPPool::group_version(), "kind": "IPPool", "metadata": { "name": "p" }, "spec": spec })
    }

    #[test]
    fn a_verdict_tells_refusals_from_warnings() {
        let verdict = |by: fn(&mut Findings)| {
            let mut findings = Findings::of("row");
            by(&mut findings);
            Verdict {
                findings: findings.into_vec(),
            }
        };
        let warned = verdict(|it| it.warn("spec.a", "is odd", "write 8"));
        assert!(warned.allowed() && warned.refusals().next().is_none());
        assert_eq!(warned.warnings(), ["is odd; write 8"]);
        let refused = verdict(|it| it.forbidden("spec.a", "may not be set", "remove it"));
        assert!(!refused.allowed() && refused.warnings().is_empty());
        assert_eq!(refused.refusals().count(), 1);
    }

    #[test]
    fn a_request_without_its_objects_is_an_error_that_says_which() {
        let pool = pool(&json!({ "namePrefix": "p" }));
        for (operation, old, new, missing) in [
            (Operation::Create, Some(&pool), None, "new object"),
            (Operation::Update, None, Some(&pool), "old object"),
            (Operation::Delete, None, Some(&pool), "old object"),
        ] {
            let error = (reviewer().review)(operation, old, new).unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn an_object_of_the_wrong_shape_is_an_error_that_names_the_member() {
        let error = (reviewer().fill)(&pool(&json!({ "namePrefix": "p", "pools": [7] })))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("spec.pools[0]:") && error.contains("IPPool"),
            "{error}"
        );
    }

    #[test]
    fn rows_are_listed_with_the_moment_at_which_they_look() {
        let rows = (reviewer().rows)();
        assert_eq!(rows.len(), IPPool::RULES.len() + IPPool::FILLINGS.len());
        let when = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.when);
        assert_eq!(when("range-means-something"), Some("create, update of the spec"));
        assert_eq!(when("name-prefix-kept"), Some("update"));
    }

    #[test]
    fn filling_in_touches_nothing_else() {
        let before = json!({ "spec": { "a": 1 }, "kind": "K" });
        let after = json!({ "spec": { "a": 1, "b": { "c": 2 } }, "kind": "K" });
        let mut document = json!({ "spec": { "a": 1, "unknown": true }, "kind": "K", "more": [] });
        overlay(&mut document, &before, &after);
        let expected = json!({ "spec": { "a": 1, "b": { "c": 2 }, "unknown": true }, "kind": "K", "more": [] });
        assert_eq!(document, expected);
    }

    #[test]
    fn every_moment_has_a_word_of_its_own() {
        let filling = Filling::<IPPool> {
            name: "f",
            says: "s",
            fill: |_| {},
        };
        assert!(format!("{filling:?}").contains("\"f\""));
        let rule = |on| Rule::<IPPool> {
            name: "r",
            says: "s",
            on,
            differs: None,
        };
        let words = [
            rule(On::Write(|_, _| {})),
            rule(On::Spec(|_, _| {})),
            rule(On::Create(|_, _| {})),
            rule(On::Update(|_, _, _| {})),
            rule(On::Delete(|_, _| {})),
        ]
        .map(|rule| format!("{:?}", rule.on));
        let distinct: BTreeSet<_> = words.iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(distinct.len(), words.len(), "{words:?}");
        assert_eq!(words[4], "delete");
    }
}
