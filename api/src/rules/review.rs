//! The rules over JSON documents, for webhooks of any kind.

use std::fmt;

use serde_json::Value;

use super::{AdmissionRules, Change, Finding, Level, On, Unserved, beginning, review, set_defaults};

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A stored object is replaced.
    Update,
    /// A stored object is deleted.
    Delete,
}

/// A row of a table, for the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// When it applies: `create, update`, or `default` for a defaulting row.
    pub when: &'static str,
    /// The rule as a sentence.
    pub description: &'static str,
    /// Row of `docs/parity.md` when the Go managers decide otherwise.
    pub differs: Option<&'static str>,
}

/// The result of a review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The first findings, in the order of the table: at most [`KEPT`](super::KEPT) of each level.
    pub findings: Vec<Finding>,
    /// Number of refusals that are not kept.
    pub more_refusals: usize,
    /// Number of warnings that are not kept.
    pub more_warnings: usize,
}

impl Decision {
    /// True when no finding rejects the request.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// The findings that reject the request.
    pub fn refusals(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Refuse)
    }

    /// The warnings for the user.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let kept = self.findings.iter().filter(|finding| finding.level == Level::Warn);
        let more = (self.more_warnings > 0).then(|| format!("and {} more warnings", self.more_warnings));
        kept.map(Finding::detail).chain(more).collect()
    }
}

/// Longest path and longest problem of a document that does not decode. Both quote the document.
const LONGEST_PATH: usize = 1024;
const LONGEST_PROBLEM: usize = 4096;

/// A document that does not decode as its kind.
#[derive(Debug)]
pub struct ReviewError(String);

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReviewError {}

/// Operation, stored document, document to store.
type Review = fn(Operation, Option<&Value>, Option<&Value>) -> Result<Decision, ReviewError>;

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
    /// Whether no row can reject a request or change the object.
    pub only_warns: bool,
    /// Every row.
    pub rows: fn() -> Vec<Row>,
    /// Reviews a request: operation, old document, new document.
    pub review: Review,
    /// Checks that a document decodes as the kind.
    pub decode: fn(&Value) -> Result<(), ReviewError>,
    /// Returns the document with defaults set.
    pub set_defaults: fn(&Value) -> Result<Value, ReviewError>,
}

impl Reviewer {
    /// The rules of kind `K`.
    #[must_use]
    pub fn of<K: AdmissionRules>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
            only_warns: K::ONLY_WARNS,
            rows: rows::<K>,
            review: review_documents::<K>,
            decode: |document| decode::<K>(document).map(drop),
            set_defaults: default_document::<K>,
        }
    }
}

fn rows<K: AdmissionRules>() -> Vec<Row> {
    let defaults = K::DEFAULTS.iter().map(|row| Row {
        name: row.name,
        when: "default",
        description: row.description,
        differs: None,
    });
    let rules = K::RULES.iter().map(|row| Row {
        name: row.name,
        when: row.on.when(),
        description: row.description,
        differs: row.differs,
    });
    let unserved = K::UNSERVED.map(|_| Row {
        name: Unserved::ROW,
        when: On::<K>::SPEC,
        description: Unserved::DESCRIPTION,
        differs: Some(Unserved::DIFFERS),
    });
    defaults.chain(rules).chain(unserved).collect()
}

fn review_documents<K: AdmissionRules>(
    operation: Operation,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Decision, ReviewError> {
    let missing = |which: &str| ReviewError(format!("the request carries no {which} object"));
    let old = || decode::<K>(old.ok_or_else(|| missing("old"))?);
    let new = || decode::<K>(new.ok_or_else(|| missing("new"))?);
    Ok(match operation {
        Operation::Create => review(&Change::Create(&new()?)),
        Operation::Update => review(&Change::Update {
            old: &old()?,
            new: &new()?,
        }),
        Operation::Delete => review(&Change::Delete(&old()?)),
    })
}

/// Sets the defaults and keeps all other members, including those unknown to the type.
fn default_document<K: AdmissionRules>(document: &Value) -> Result<Value, ReviewError> {
    let written = |object: &K| serde_json::to_value(object).map_err(|error| ReviewError(error.to_string()));
    let mut object: K = decode(document)?;
    let before = written(&object)?;
    set_defaults(&mut object);
    let mut defaulted = document.clone();
    overlay(&mut defaulted, &before, &written(&object)?);
    Ok(defaulted)
}

/// Copies the members that differ between `before` and `after` into `document`.
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

fn decode<K: AdmissionRules>(document: &Value) -> Result<K, ReviewError> {
    K::from_document(document).map_err(|error| {
        let path = beginning(error.path(), LONGEST_PATH);
        let problem = beginning(error.inner(), LONGEST_PROBLEM);
        ReviewError(format!("{path}: {problem}; write it as the schema of {} says", K::KIND))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Defaulting, Findings, On, Rule};
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
    fn a_decision_separates_refusals_from_warnings() {
        let decision = |by: fn(&mut Findings)| {
            let mut findings = Findings::of("row");
            by(&mut findings);
            findings.into_decision()
        };
        let warned = decision(|it| it.warn("spec.a", "is odd", "write 8"));
        assert!(warned.allowed() && warned.refusals().next().is_none());
        assert_eq!(warned.warnings(), ["is odd; write 8"]);
        let refused = decision(|it| it.forbidden("spec.a", "may not be set", "remove it"));
        assert!(!refused.allowed() && refused.warnings().is_empty());
        assert_eq!(refused.refusals().count(), 1);
    }

    #[test]
    fn a_request_without_an_object_is_an_error_that_names_it() {
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
        let error = (reviewer().set_defaults)(&pool(&json!({ "namePrefix": "p", "pools": [7] })))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("spec.pools[0]:") && error.contains("IPPool"),
            "{error}"
        );
    }

    #[test]
    fn rows_are_listed_with_their_operations() {
        let rows = (reviewer().rows)();
        assert_eq!(rows.len(), IPPool::RULES.len() + IPPool::DEFAULTS.len());
        let when = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.when);
        assert_eq!(when("range-means-something"), Some("create, update of the spec"));
        assert_eq!(when("name-prefix-kept"), Some("update"));
    }

    #[test]
    fn defaulting_changes_no_other_member() {
        let before = json!({ "spec": { "a": 1 }, "kind": "K" });
        let after = json!({ "spec": { "a": 1, "b": { "c": 2 } }, "kind": "K" });
        let mut document = json!({ "spec": { "a": 1, "unknown": true }, "kind": "K", "more": [] });
        overlay(&mut document, &before, &after);
        let expected = json!({ "spec": { "a": 1, "b": { "c": 2 }, "unknown": true }, "kind": "K", "more": [] });
        assert_eq!(document, expected);
    }

    #[test]
    fn every_trigger_has_a_distinct_label() {
        let defaulting = Defaulting::<IPPool> {
            name: "f",
            description: "s",
            apply: |_| {},
        };
        assert!(format!("{defaulting:?}").contains("\"f\""));
        let rule = |on| Rule::<IPPool> {
            name: "r",
            description: "s",
            on,
            differs: None,
        };
        let labels = [
            rule(On::Write(|_, _| {})),
            rule(On::Spec(|_, _| {})),
            rule(On::Create(|_, _| {})),
            rule(On::Update(|_, _, _| {})),
            rule(On::Delete(|_, _| {})),
        ]
        .map(|rule| format!("{:?}", rule.on));
        let distinct: BTreeSet<_> = labels.iter().filter(|label| !label.is_empty()).collect();
        assert_eq!(distinct.len(), labels.len(), "{labels:?}");
        assert_eq!(labels[4], "delete");
    }
}
