//! Field selectors: the fields that a CRD lists, and those that built-in kinds have.

use serde_json::Value;

use crate::store::kind::{Kind, Version};

/// One term of a selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldTest {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl FieldTest {
    pub(super) fn holds(&self, object: &Value) -> bool {
        let mut at = Some(object);
        for name in &self.path {
            at = at.and_then(|value| value.get(name));
        }
        let found = match at {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            // An Event names its source in one of two places.
            Some(Value::Object(source)) => {
                let component = source.get("component").or_else(|| object.get("reportingComponent"));
                component.and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            None if self.path.last().is_some_and(|name| FALSE.contains(&name.as_str())) => "false".to_owned(),
            _ => String::new(),
        };
        (found == self.value) == self.equal
    }
}

/// Fields that are false when they are absent.
const FALSE: [&str; 2] = ["hostNetwork", "unschedulable"];

/// Fields of built-in kinds besides name and namespace. Only these kinds say that a field is not supported.
const FIELDS: [(&str, &[&str]); 8] = [
    ("Job", &["status.successful"]),
    ("ReplicationController", &["status.replicas"]),
    ("Secret", &["type"]),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    ("Service", &["spec.clusterIP", "spec.type"]),
    (
        "Pod",
        &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        ],
    ),
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
            "source",
            "type",
        ],
    ),
];

/// The terms of a selector, or what is wrong with it.
pub(super) fn parsed(text: &str, kind: &Kind, version: Option<&Version>) -> Result<Vec<FieldTest>, String> {
    let mut parsed = Vec::new();
    for term in terms(text) {
        let Some((path, value, equal)) = operator(term) else {
            return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
        };
        parsed.push((path, unescaped(value)?, equal));
    }
    let mut tests = Vec::new();
    for (path, value, equal) in parsed {
        check(path, kind, version)?;
        tests.push(FieldTest {
            path: path.split('.').map(str::to_owned).collect(),
            value,
            equal,
        });
    }
    Ok(tests)
}

fn check(path: &str, kind: &Kind, version: Option<&Version>) -> Result<(), String> {
    let own = FIELDS.iter().find(|(name, _)| *name == kind.kind && !kind.is_custom());
    let listed = version.is_some_and(|version| version.selectable.iter().any(|listed| listed == path));
    let is_namespace = path == "metadata.namespace" && (kind.namespaced || kind.is_custom());
    let known = listed || is_namespace || path == "metadata.name";
    if known || own.is_some_and(|(_, paths)| paths.contains(&path)) {
        return Ok(());
    }
    Err(if kind.kind == "Job" && !kind.is_custom() {
        format!("field label {path:?} not supported for Job")
    } else if kind.is_custom() || own.is_some() {
        format!("field label not supported: {path}")
    } else {
        format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    })
}

/// The terms between the commas that no backslash precedes.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (place, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.extend(text.get(start..place));
                start = place.saturating_add(1);
            }
            _ => {}
        }
    }
    terms.extend(text.get(start..));
    terms.retain(|term| !term.is_empty());
    terms
}

/// Path, value and whether they must be equal, by the first operator.
fn operator(term: &str) -> Option<(&str, &str, bool)> {
    let place = term.find(['=', '!'])?;
    let (path, rest) = term.split_at(place);
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some(value) = rest.strip_prefix(operator) {
            return Some((path, value, equal));
        }
    }
    None
}

fn unescaped(value: &str) -> Result<String, String> {
    let (mut plain, mut characters) = (String::new(), value.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped) if "\\,=".contains(escaped) => plain.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(character);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_signs_in_values_are_escaped() {
        assert_eq!(terms(r"a=b\,c,d=e,"), [r"a=b\,c", "d=e"]);
        assert_eq!(unescaped(r"b\,c\=\\").unwrap(), r"b,c=\");
        assert!(
            unescaped("a=b")
                .unwrap_err()
                .ends_with("unescaped character in value: 61")
        );
        assert!(unescaped(r"a\q").unwrap_err().ends_with(r"invalid escape sequence: \q"));
    }

    #[test]
    fn first_operator_separates_path_and_value() {
        assert_eq!(operator("a!=b"), Some(("a", "b", false)));
        assert_eq!(operator("a==b"), Some(("a", "b", true)));
        assert_eq!(operator("a=!=b"), Some(("a", "!=b", true)));
        assert_eq!(operator("a"), None);
    }
}
