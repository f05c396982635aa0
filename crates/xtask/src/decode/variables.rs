//! Variables of cluster templates, as clusterctl fills them in.
//!
//! `${NAME}`, and with a default `${NAME:-text}`, `${NAME:=text}`, `${NAME-text}`, `${NAME=text}`. Values are put in as
//! they are, so a value may hold several lines of YAML. `$(command)` and `$NAME` are left alone: they belong to scripts
//! inside the manifests.

use std::collections::BTreeMap;

/// Names and values.
pub(super) type Variables = BTreeMap<String, String>;

/// What clusterctl takes from its command line, and what every user sets: the example file leaves these out.
pub(super) fn stand_ins() -> Variables {
    let pairs = [
        ("CLUSTER_NAME", "demo"),
        ("NAMESPACE", "metal3"),
        ("KUBERNETES_VERSION", "v1.35.0"),
        ("CONTROL_PLANE_MACHINE_COUNT", "3"),
        ("WORKER_MACHINE_COUNT", "2"),
        ("CLUSTER_APIENDPOINT_HOST", "192.0.2.10"),
        ("CLUSTER_APIENDPOINT_PORT", "6443"),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Fills in a text. The error names the variables that have neither value nor default.
pub(super) fn substitute(text: &str, variables: &Variables) -> Result<String, Vec<String>> {
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

/// The name, and the default behind the first operator.
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

/// Reads `export NAME=value` lines of a shell script; quoted values may run over lines. Commands are not run.
pub(super) fn read(script: &str) -> Variables {
    let mut found = Variables::new();
    let mut rest = script;
    while let Some(after) = next_export(rest) {
        let Some((name, after)) = after.split_once('=') else {
            break;
        };
        let (value, after) = value(after);
        found.insert(name.trim().to_owned(), value);
        rest = after;
    }
    found
}

/// What follows the next `export` at the start of a line.
fn next_export(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix("export ") {
            return Some(after);
        }
        rest = rest.split_once('\n')?.1;
    }
}

/// A value up to its closing quote, or up to the end of the line, and what follows.
fn value(text: &str) -> (String, &str) {
    let mut characters = text.chars();
    let quote = characters.next().filter(|first| ['"', '\''].contains(first));
    let Some(quote) = quote else {
        let (value, rest) = text.split_once('\n').unwrap_or((text, ""));
        return (value.trim().to_owned(), rest);
    };
    let mut value = String::new();
    while let Some(character) = characters.next() {
        match character {
            end if end == quote => break,
            '\\' if quote == '"' => match characters.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => value.push(escaped),
                Some('\n') | None => {}
                Some(other) => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    (value, characters.as_str())
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
    fn shell_inside_a_manifest_is_left_alone() {
        let script = "url=$1; file=$(basename $url)";
        assert_eq!(substitute(script, &Variables::new()).unwrap(), script);
    }

    #[test]
    fn variables_without_value_are_named() {
        let missing = substitute("${A} ${B:-x} ${C}", &Variables::new()).unwrap_err();
        assert_eq!(missing, ["A", "C"]);
    }

    #[test]
    fn quoted_values_keep_their_lines_and_unescape_in_double_quotes_alone() {
        let script = "# a word\nexport A='\"x\" \\$y'\nexport B=\"\n  - echo \\\"hi\\\" $(uname -r)\n  - b\n\"\nexport C=plain\n";
        let expected = variables(&[
            ("A", "\"x\" \\$y"),
            ("B", "\n  - echo \"hi\" $(uname -r)\n  - b\n"),
            ("C", "plain"),
        ]);
        assert_eq!(read(script), expected);
    }
}
