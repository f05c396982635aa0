//! Variables of cluster templates, substituted as clusterctl does.
//!
//! `${NAME}`, and with a default `${NAME:-text}`, `${NAME:=text}`, `${NAME-text}`, `${NAME=text}`. Values are inserted
//! unchanged, so a value may contain several lines of YAML. `$(command)` and `$NAME` belong to scripts
//! inside the manifests and are not substituted.

use std::collections::BTreeMap;

/// Names and values.
pub type Variables = BTreeMap<String, String>;

/// Substitutes the variables of a text.
///
/// # Errors
/// The names of the variables that have neither value nor default.
pub fn substitute(text: &str, variables: &Variables) -> Result<String, Vec<String>> {
    let mut out = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let (expression, after) = after.split_once('}').unwrap_or((after, ""));
        let (name, default) = split(expression);
        match variables.get(name).map(String::as_str).or(default) {
            Some(value) => out.push_str(value),
            None => missing.push(name.to_owned()),
        }
        rest = after;
    }
    out.push_str(rest);
    if missing.is_empty() { Ok(out) } else { Err(missing) }
}

/// The name, and the default after the first operator, if there is one.
fn split(expression: &str) -> (&str, Option<&str>) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = expression.trim_start_matches(is_name);
    let name = expression.strip_suffix(rest).unwrap_or(expression);
    let default = [":-", ":=", "-", "="]
        .into_iter()
        .find_map(|operator| rest.strip_prefix(operator));
    match default {
        Some(default) => (name, Some(default)),
        None => (expression, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn every_form_of_a_default_is_used_only_when_there_is_no_value() {
        let set = variables(&[("A", "1")]);
        for operator in [":-", ":=", "-", "="] {
            let text = format!("${{A{operator}x:-y}} ${{B{operator}x:-y}}");
            assert_eq!(substitute(&text, &set).unwrap(), "1 x:-y", "{operator}");
        }
    }

    #[test]
    fn a_default_may_be_empty_or_a_list() {
        let text = r#"a: ${A:=["10.0.0.0/8"]}${B:-}"#;
        assert_eq!(substitute(text, &Variables::new()).unwrap(), r#"a: ["10.0.0.0/8"]"#);
    }

    #[test]
    fn shell_inside_a_manifest_is_unchanged() {
        let script = "url=$1; file=$(basename $url)";
        assert_eq!(substitute(script, &Variables::new()).unwrap(), script);
    }

    #[test]
    fn variables_without_value_are_named() {
        let missing = substitute("${A} ${B:-x} ${C}", &Variables::new()).unwrap_err();
        assert_eq!(missing, ["A", "C"]);
    }
}
