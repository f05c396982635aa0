//! Values for the variables of cluster templates: those that every user sets, and those of a file beside a template.

pub(super) use metal3_sandbox::variables::{Variables, substitute};

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
