//! The grammars of names, label keys and label values, with the texts that the API server gives for each breach.

use std::sync::LazyLock;

use regex::Regex;

const LABEL_1123: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_1123: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// A pattern with the words for what it means.
struct Grammar {
    pattern: &'static str,
    meaning: &'static str,
    examples: &'static [&'static str],
    regex: LazyLock<Regex>,
}

impl Grammar {
    fn breach(&self, text: &str) -> Option<String> {
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

fn whole(pattern: &str) -> Regex {
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
    regex: LazyLock::new(|| whole(LABEL_1123)),
};
static SUBDOMAIN: Grammar = Grammar {
    pattern: SUBDOMAIN_1123,
    meaning: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character",
    examples: &["example.com"],
    regex: LazyLock::new(|| whole(SUBDOMAIN_1123)),
};
static KIND: Grammar = Grammar {
    pattern: LABEL_1035,
    meaning: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
              character, and end with an alphanumeric character",
    examples: &["my-name", "abc-123"],
    regex: LazyLock::new(|| whole(LABEL_1035)),
};
static KEY: Grammar = Grammar {
    pattern: LABEL_KEY,
    meaning: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
              character",
    examples: &["MyName", "my.name", "123-abc"],
    regex: LazyLock::new(|| whole(LABEL_KEY)),
};
static VALUE: Grammar = Grammar {
    pattern: LABEL_VALUE,
    meaning: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character",
    examples: &["MyValue", "my_value", "12345"],
    regex: LazyLock::new(|| whole(LABEL_VALUE)),
};

/// Bytes are counted everywhere; of names the API server says characters.
fn too_long(text: &str, limit: usize, unit: &str) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} {unit}"))
}

/// A namespace's name.
pub(crate) fn label_breaches(text: &str) -> Vec<String> {
    let shape = NAME_LABEL.breach(text).map(|breach| {
        let only_dots = SUBDOMAIN.regex.is_match(text);
        if only_dots {
            String::from("must not contain dots")
        } else {
            breach
        }
    });
    [too_long(text, 63, "characters"), shape]
        .into_iter()
        .flatten()
        .collect()
}

/// An object's name.
pub(crate) fn subdomain_breaches(text: &str) -> Vec<String> {
    [too_long(text, 253, "characters"), SUBDOMAIN.breach(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// The start of a name that is still to be completed: a dash at the end is fine.
pub(crate) fn subdomain_prefix_breaches(text: &str) -> Vec<String> {
    match text.strip_suffix('-').filter(|head| !head.is_empty()) {
        // The API server puts an `a` where the last two characters were, whatever the first of them was.
        Some(head) => {
            let mut masked: String = head.chars().take(head.chars().count() - 1).collect();
            masked.push('a');
            subdomain_breaches(&masked)
        }
        None => subdomain_breaches(text),
    }
}

/// A kind, in lower case.
pub(crate) fn kind_breaches(text: &str) -> Vec<String> {
    [too_long(text, 63, "characters"), KIND.breach(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// The key of a label, an annotation or a finalizer: an optional domain, a slash, a name.
pub(crate) fn key_breaches(text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                breaches.push(String::from("prefix part must be non-empty"));
            } else {
                breaches.extend(
                    subdomain_breaches(prefix)
                        .into_iter()
                        .map(|breach| format!("prefix part {breach}")),
                );
            }
            name
        }
        _ => {
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            let shape = KEY.breach("/").unwrap_or_default();
            return vec![format!("a valid label key {shape} {tail}")];
        }
    };
    if name.is_empty() {
        breaches.push(String::from("name part must be non-empty"));
    }
    breaches.extend(too_long(name, 63, "bytes").map(|breach| format!("name part {breach}")));
    breaches.extend(KEY.breach(name).map(|breach| format!("name part {breach}")));
    breaches
}

/// The value of a label.
pub(crate) fn value_breaches(text: &str) -> Vec<String> {
    [too_long(text, 63, "bytes"), VALUE.breach(text)]
        .into_iter()
        .flatten()
        .collect()
}

/// A name that only has to fit between two slashes of a path, as in embedded resources.
pub(crate) fn path_segment_breaches(text: &str, prefix: bool) -> Vec<String> {
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
        key_breaches, kind_breaches, label_breaches, path_segment_breaches, subdomain_breaches,
        subdomain_prefix_breaches, value_breaches,
    };

    #[test]
    fn names_are_taken_or_refused_with_a_reason() {
        let none: [&str; 0] = [];
        assert_eq!(subdomain_breaches("a.b-c"), none);
        assert_eq!(label_breaches("a.b"), ["must not contain dots"]);
        assert_eq!(
            label_breaches("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
              and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            subdomain_breaches(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
        assert_eq!(subdomain_breaches(&"a".repeat(253)), none);
        assert_eq!(subdomain_prefix_breaches("abc-"), none);
        assert_eq!(subdomain_prefix_breaches("a_-"), none);
        assert_eq!(subdomain_prefix_breaches("a_b-").len(), 1);
        assert_eq!(kind_breaches("1a").len(), 1);
        assert_eq!(value_breaches(""), none);
        assert_eq!(value_breaches("-").len(), 1);
        assert_eq!(path_segment_breaches("..", false), ["may not be '..'"]);
        assert_eq!(path_segment_breaches(".", false), ["may not be '.'"]);
        assert_eq!(path_segment_breaches("..", true), none);
        assert_eq!(
            path_segment_breaches("a/%", true),
            ["may not contain '/'", "may not contain '%'"]
        );
    }

    #[test]
    fn a_label_key_has_an_optional_domain_and_a_name() {
        assert_eq!(key_breaches("example.org/My_name"), Vec::<String>::new());
        assert_eq!(key_breaches("/a"), ["prefix part must be non-empty"]);
        assert_eq!(key_breaches("a/").len(), 2);
        assert!(key_breaches("a/b/c").concat().ends_with("(e.g. 'example.com/MyName')"));
    }
}
