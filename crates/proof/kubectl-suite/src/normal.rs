//! Removes from outputs what differs between two runs: times, ages, versions, uids, addresses and temporary files.

use std::sync::LazyLock;

use regex::Regex;

/// Expressions and their replacements, in this order.
const RULES: &[(&str, &str)] = &[
    // The log of the client library, about connections.
    (r"(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n?", ""),
    (r"\x1b\[[0-9;]*m", ""),
    (r"https?://[^/\s]*:\d+\b", "SERVER"),
    // The console makes one for each start.
    (r"\btoken=\S+", "token=TOKEN"),
    (r"\b(10\.244\.\d+\.\d+|127\.0\.0\.1):\d+\b", "SERVER"),
    (
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "UID",
    ),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} [A-Z]+( m=\S+)?",
        "TIME",
    ),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
    (
        r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
        "TIME",
    ),
    (r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", "TIME"),
    (r#"("?[rR]esource ?[vV]ersion"?: *)"?\d+"?"#, "${1}VERSION"),
    (r"\bfor \d+s\b", "for AGE"),
    (r"(?m)(^|[ \t(])(\d+[smhd]){1,2}( ago)?\b", "${1}AGE${3}"),
    // A cell of a table.
    (r#"(?m)^( +)"(\d+[smhd]){1,2}"(,?)$"#, "${1}\"AGE\"${3}"),
    (r"/\S*/(LIVE|MERGED)-\d+", "/$1"),
    (r"/\S*/kubectl-edit-\d+\.yaml", "/EDITED.yaml"),
    (r"\b10\.96\.\d+\.\d+\b", "SERVICE-ADDRESS"),
    // Columns are as wide as their longest cell, which may be an age.
    (r"(\S)[ \t]{3,}", "${1}   "),
    (r"(?m)[ \t]+$", ""),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compiled = |(pattern, by): &(&str, &'static str)| Regex::new(pattern).ok().map(|pattern| (pattern, *by));
    RULES.iter().filter_map(compiled).collect()
});

/// The text without what differs between two runs.
pub(crate) fn normal(text: &str) -> String {
    let replace = |text: String, (pattern, by): &(Regex, &str)| pattern.replace_all(&text, *by).into_owned();
    with_sorted_causes(&COMPILED.iter().fold(text.to_owned(), replace))
}

/// The text with the causes of an error in their alphabetical order: a real server has none.
fn with_sorted_causes(text: &str) -> String {
    let is_cause = |line: &&str| line.starts_with("* ");
    let (mut lines, mut sorted) = (text.split_inclusive('\n').peekable(), String::new());
    while let Some(line) = lines.next() {
        let mut causes = vec![line];
        while is_cause(&line) && lines.peek().is_some_and(is_cause) {
            causes.extend(lines.next());
        }
        causes.sort_unstable();
        sorted.extend(causes);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        assert_eq!(COMPILED.len(), RULES.len());
    }

    #[test]
    fn what_differs_between_runs_is_replaced() {
        for (text, expected) in [
            (
                "NAME   DATA   AGE\na      1      5m3s\n",
                "NAME   DATA   AGE\na   1   AGE\n",
            ),
            ("a   1   2d   v1", "a   1   AGE   v1"),
            ("uid: 0b2c9a5e-1111-4222-a333-0123456789ab", "uid: UID"),
            (
                "creationTimestamp: \"2026-01-01T00:00:07Z\"",
                "creationTimestamp: \"TIME\"",
            ),
            (
                "CreationTimestamp:  Thu, 01 Jan 2026 00:00:07 +0000",
                "CreationTimestamp:  TIME",
            ),
            ("resourceVersion: \"17\"", "resourceVersion: VERSION"),
            ("Resource Version:  17", "Resource Version:  VERSION"),
            ("\"resourceVersion\": \"17\",", "\"resourceVersion\": VERSION,"),
            ("dial https://10.244.0.1:6443/api", "dial SERVER/api"),
            (
                "--- /tmp/LIVE-12/v1.ConfigMap.a\t2026-01-01 00:00:07.123456789 +0000",
                "--- /LIVE/v1.ConfigMap.a\tTIME",
            ),
            ("waiting for 3s", "waiting for AGE"),
            ("[\n  \"5m3s\",\n  1\n]", "[\n  \"AGE\",\n  1\n]"),
            ("{\"cpu\":\"200m\"}", "{\"cpu\":\"200m\"}"),
            (
                "console http://127.0.0.1:9/login?token=0af3",
                "console SERVER/login?token=TOKEN",
            ),
            ("replicas: 5", "replicas: 5"),
            ("is invalid:\n* c\n* b\nend\n* a\n", "is invalid:\n* b\n* c\nend\n* a\n"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }
}
