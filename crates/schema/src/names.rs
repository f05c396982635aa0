//! The grammars of names, label keys and label values, with the API server's texts for each violation.

use std::sync::LazyLock;

use regex::Regex;

const LABEL_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_1123: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// A pattern with its error text.
struct Grammar {
    pattern: &'static str,
    meaning: &'static str,
    examples: &'static [&'static str],
    regex: LazyLock<Regex>,
}

impl Grammar {
    fn violation(&self, text: &str) -> Option<String> {
        (!self.regex.is_match(text)).then(|| {
            let examples: Vec<String> = self.examples.iter().map(|example| format!("'{example}', ")).collect();
            format!(
                "{} (e.g. {}regex used for validation is '{}')",
                self.meaning,
                examples.join(" or "),
                self.pattern
            )
        })
    }
}

fn anchored(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants of this file, each used by a test"
    )]
    Regex::new(&format!("^{pattern}$")).expect("a constant pattern compiles")
}

static NAME_LABEL: Grammar = Grammar {
    pattern: LABEL_1123,
    meaning: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
              and end with an alphanumeric character",
    examples: &["my-name", "123-abc"],
    regex: LazyLock::new(|| anchored(LABEL_1123)),
};
static SUBDOMAIN: Grammar = Grammar {
    pattern: SUBDOMAIN_1123,
    meaning: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character",
    examples: &["example.com"],
    regex: LazyLock::new(|| anchored(SUBDOMAIN_1123)),
};
static KIND: Grammar = Grammar {
    pattern: LABEL_1035,
    meaning: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
              character, and end with an alphanumeric character",
    examples: &["my-name", "abc-123"],
    regex: LazyLock::new(|| anchored(LABEL_1035)),
};
static KEY: Grammar = Grammar {
    pattern: LABEL_KEY,
    meaning: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
              character",
    examples: &["MyName", "my.name", "123-abc"],
    regex: LazyLock::new(|| anchored(LABEL_KEY)),
};
static VALUE: Grammar = Grammar {
    pattern: LABEL_VALUE,
    meaning: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character",
    examples: &["MyValue", "my_value", "12345"],
    regex: LazyLock::new(|| anchored(LABEL_VALUE)),
};

/// Lengths are in bytes, although the API server's text for names mentions characters.
fn too_long(text: &str, limit: usize, unit: &str) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} {unit}"))
}

/// A namespace's name.
#[must_use]
pub fn label_violations(text: &str) -> Vec<String> {
    let shape = NAME_LABEL.violation(text).map(|violation| {
        let only_dots = SUBDOMAIN.regex.is_match(text);
        if only_dots {
            String::from("must not contain dots")
        } else {
            violation
        }
    });
    [too_long(text, 63, "characters"), shape]
        .into_iter()
        .flatten()
        .collect()
}

/// An object's name.
#[must_use]
pub fn subdomain_violations(text: &str) -> Vec<String> {
    [too_long(text, 253, "characters"), SUBDOMAIN.violation(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// The prefix of a generated name, which may end with a dash.
pub(crate) fn subdomain_prefix_violations(text: &str) -> Vec<String> {
    match text.strip_suffix('-').filter(|head| !head.is_empty()) {
        // The API server replaces the last two characters with an `a`, whatever the first of them is.
        Some(head) => {
            let mut masked: String = head.chars().take(head.chars().count() - 1).collect();
            masked.push('a');
            subdomain_violations(&masked)
        }
        None => subdomain_violations(text),
    }
}

/// A kind, in lower case.
#[must_use]
pub fn kind_violations(text: &str) -> Vec<String> {
    [too_long(text, 63, "characters"), KIND.violation(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// The key of a label, an annotation or a finalizer: an optional domain, a slash, a name.
#[must_use]
pub fn key_violations(text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                violations.push(String::from("prefix part must be non-empty"));
            } else {
                violations.extend(
                    subdomain_violations(prefix)
                        .into_iter()
                        .map(|violation| format!("prefix part {violation}")),
                );
            }
            name
        }
        _ => {
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            let shape = KEY.violation("/").unwrap_or_default();
            return vec![format!("a valid label key {shape} {tail}")];
        }
    };
    if name.is_empty() {
        violations.push(String::from("name part must be non-empty"));
    }
    violations.extend(too_long(name, 63, "bytes").map(|violation| format!("name part {violation}")));
    violations.extend(KEY.violation(name).map(|violation| format!("name part {violation}")));
    violations
}

/// The value of a label.
#[must_use]
pub fn value_violations(text: &str) -> Vec<String> {
    [too_long(text, 63, "bytes"), VALUE.violation(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// A name that only has to be a valid path segment, as in embedded resources.
pub(crate) fn path_segment_violations(text: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{
        key_violations, kind_violations, label_violations, path_segment_violations, subdomain_prefix_violations,
        subdomain_violations, value_violations,
    };

    #[test]
    fn names_are_accepted_or_rejected_with_a_reason() {
        let none: [&str; 0] = [];
        assert_eq!(subdomain_violations("a.b-c"), none);
        assert_eq!(label_violations("a.b"), ["must not contain dots"]);
        assert_eq!(
            label_violations("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
              and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            subdomain_violations(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
        assert_eq!(subdomain_violations(&"a".repeat(253)), none);
        assert_eq!(subdomain_prefix_violations("abc-"), none);
        assert_eq!(subdomain_prefix_violations("a_-"), none);
        assert_eq!(subdomain_prefix_violations("a_b-").len(), 1);
        assert_eq!(kind_violations("1a").len(), 1);
        assert_eq!(value_violations(""), none);
        assert_eq!(value_violations("-").len(), 1);
        assert_eq!(path_segment_violations("..", false), ["may not be '..'"]);
        assert_eq!(path_segment_violations(".", false), ["may not be '.'"]);
        assert_eq!(path_segment_violations("..", true), none);
        assert_eq!(
            path_segment_violations("a/%", true),
            ["may not contain '/'", "may not contain '%'"]
        );
    }

    #[test]
    fn a_label_key_has_an_optional_domain_and_a_name() {
        assert_eq!(key_violations("example.org/My_name"), Vec::<String>::new());
        assert_eq!(key_violations("/a"), ["prefix part must be non-empty"]);
        assert_eq!(key_violations("a/").len(), 2);
        assert!(
            key_violations("a/b/c")
                .concat()
                .ends_with("(e.g. 'example.com/MyName')")
        );
    }
}
