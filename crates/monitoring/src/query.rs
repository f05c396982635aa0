//! The names of metrics in a query of Prometheus.

/// Words of the language that may stand without a bracket behind them.
const WORDS: [&str; 9] = ["and", "avg", "bool", "count", "max", "min", "or", "sum", "unless"];
/// Words with labels in the brackets behind them.
const BEFORE_LABELS: [&str; 6] = ["by", "group_left", "group_right", "ignoring", "on", "without"];

/// The metrics that a query names, in order and once each: every word that is no function, no label and no word of the
/// language. A query with other parts than those of this crate (an offset, a number with an exponent) has more of them.
#[must_use]
pub fn metrics(query: &str) -> Vec<String> {
    // Every second part is in quotes; no text in this crate has a quote in it.
    let code: String = query.split('"').step_by(2).collect();
    let code = without(&without(&code, ('{', '}')), ('[', ']'));
    let mut found: Vec<String> = Vec::new();
    let mut rest = code.as_str();
    while let Some((word, behind)) = next(rest) {
        let is_before_bracket = behind.trim_start().starts_with('(');
        rest = match is_before_bracket && BEFORE_LABELS.contains(&word) {
            true => behind.split_once(')').map_or("", |(_, behind)| behind),
            false => behind,
        };
        if !is_before_bracket && !WORDS.contains(&word) && found.iter().all(|known| known != word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The next word, and what is behind it.
fn next(text: &str) -> Option<(&str, &str)> {
    let start = text.find(|c: char| c.is_ascii_alphabetic() || c == '_')?;
    let (_, text) = text.split_at_checked(start)?;
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    text.split_at_checked(end.unwrap_or(text.len()))
}

/// The text without what is between these signs.
fn without(text: &str, (open, close): (char, char)) -> String {
    let mut parts = text.split(open);
    let first = parts.next().unwrap_or_default().to_owned();
    let behind = parts.filter_map(|part| Some(part.split_once(close)?.1));
    behind.fold(first, |all, part| all + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_outside_of_texts_functions_and_labels() {
        let rows: [(&str, &[&str]); 5] = [
            (
                r#"histogram_quantile(0.9, sum by (le) (rate(metal3_a_bucket{x="metal3_b"}[5m]))) > metal3_c or metal3_a_bucket"#,
                &["metal3_a_bucket", "metal3_c"],
            ),
            ("absent(up)", &["up"]),
            ("max by (state, le) (a) and on (state) go_threads", &["a", "go_threads"]),
            (
                r#"sum(a{x="1",y=~"2|3"}) / sum(b{x="}"}[$__rate_interval])"#,
                &["a", "b"],
            ),
            ("1 > 0.5", &[]),
        ];
        for (query, names) in rows {
            assert_eq!(metrics(query), names, "{query}");
        }
    }
}
