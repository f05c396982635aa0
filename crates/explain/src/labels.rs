//! Label selectors as `kubectl -l` takes them: `rack=a,gpu!=none,zone in (north,south),!spare`.

use std::collections::BTreeMap;

use metal3_domain::selector::{Expression, Selector};
use serde_json::Value;

/// A selector from its text. An empty one matches everything.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Selector, String> {
    let terms: Vec<(String, &'static str, Vec<String>)> = terms(text).into_iter().map(term).collect();
    let expressions = terms
        .iter()
        .map(|(key, operator, values)| Expression { key, operator, values });
    Selector::parse(&BTreeMap::new(), expressions).map_err(|error| error.to_string())
}

/// Whether a selector matches an object. A wrong one matches none.
#[must_use]
pub(crate) fn selects(selector: &str, object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").cloned();
    let labels: BTreeMap<String, String> = labels
        .and_then(|labels| serde_json::from_value(labels).ok())
        .unwrap_or_default();
    parse(selector).is_ok_and(|selector| selector.matches(&labels))
}

/// The parts between commas that are not in parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let parts = text.split(|one| {
        is_inside = (is_inside || one == '(') && one != ')';
        one == ',' && !is_inside
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn term(text: &str) -> (String, &'static str, Vec<String>) {
    if let Some((head, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut words = head.split_whitespace();
        let key = words.next().unwrap_or_default().to_owned();
        let operator = match words.next() {
            Some("notin") => "notin",
            _ => "in",
        };
        return (
            key,
            operator,
            values.split(',').map(|value| value.trim().to_owned()).collect(),
        );
    }
    for operator in ["!=", "==", "="] {
        if let Some((key, value)) = text.split_once(operator) {
            return (key.trim().to_owned(), operator, vec![value.trim().to_owned()]);
        }
    }
    match text.strip_prefix('!') {
        Some(key) => (key.trim().to_owned(), "!", Vec::new()),
        None => (text.to_owned(), "exists", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_as_those_of_kubectl() {
        let labels: BTreeMap<String, String> = [("rack", "a"), ("zone", "north")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (text, expected) in [
            ("", true),
            ("rack=a", true),
            ("rack==a,zone=north", true),
            ("rack=b", false),
            ("rack!=b", true),
            ("gpu!=none", true),
            ("rack", true),
            ("!rack", false),
            ("!gpu", true),
            ("zone in (south, north)", true),
            ("zone notin (south,north),rack=a", false),
        ] {
            assert_eq!(
                parse(text).map(|selector| selector.matches(&labels)),
                Ok(expected),
                "{text}"
            );
        }
        for wrong in ["ra ck", "rack=a b", "=a", "rack in ("] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
