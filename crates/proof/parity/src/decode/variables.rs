//! Values for variables of cluster templates: defaults, and those of a file next to a template.

pub(super) use metal3_sandbox::variables::{Variables, substitute};

/// Values that clusterctl takes from its command line and that the example file lacks.
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

/// Parses `export NAME=value` lines of a shell script; quoted values may span lines. Commands are not run.
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

/// Text after the next `export` at the start of a line.
fn next_export(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix("export ") {
            return Some(after);
        }
        rest = rest.split_once('\n')?.1;
    }
}

/// Splits a value at its closing quote or at the end of the line.
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
    fn quoted_values_keep_lines_and_unescape_only_in_double_quotes() {
        let script = "# a word\nexport A='\"x\" \\$y'\nexport B=\"\n  - echo \\\"hi\\\" $(uname -r)\n  - b\n\"\nexport C=plain\n";
        let expected = variables(&[
            ("A", "\"x\" \\$y"),
            ("B", "\n  - echo \"hi\" $(uname -r)\n  - b\n"),
            ("C", "plain"),
        ]);
        assert_eq!(read(script), expected);
    }
}
