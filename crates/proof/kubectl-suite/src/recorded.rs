//! Recorded outputs: text files that a person reads as a session in a terminal, one for each script.

use std::collections::BTreeMap;

/// Starts the command line of a call.
const PROMPT: &str = "$ ";
/// Starts each line of the standard error.
const ERROR: &str = "! ";
/// Starts the exit code of a failed call.
const EXIT: &str = "exit ";

/// What a call printed, as text of a recorded file.
pub(crate) fn session(code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let mut text = String::new();
    for line in stdout.lines() {
        // Such a line of the output must not end it.
        let quoted = [PROMPT, ERROR, EXIT, "\\"].iter().any(|start| line.starts_with(start));
        text += if quoted { "\\" } else { "" };
        text += line;
        text.push('\n');
    }
    for line in stderr.lines() {
        text += &format!("{ERROR}{line}\n");
    }
    match code {
        Some(0) => {}
        Some(code) => text += &format!("{EXIT}{code}\n"),
        None => text += &format!("{EXIT}by a signal\n"),
    }
    text
}

/// The text of a recorded file.
pub(crate) fn written(calls: &[(String, String)]) -> String {
    calls
        .iter()
        .map(|(line, output)| format!("{PROMPT}{line}\n{output}"))
        .collect()
}

/// The calls of a recorded file.
pub(crate) fn parsed(text: &str) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix(PROMPT) {
            calls.push((command.to_owned(), String::new()));
        } else if let Some((_, output)) = calls.last_mut() {
            output.push_str(line);
            output.push('\n');
        }
    }
    calls
}

/// A difference that is expected: the output of the sandbox, and the reason.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// The script.
    pub(crate) script: String,
    /// The command line.
    pub(crate) run: String,
    /// Why the sandbox differs.
    pub(crate) reason: String,
    /// What it prints instead.
    pub(crate) sandbox: String,
}

/// The unlisted differences of a script, each with the outputs of both sides, and the listed ones that do not exist.
pub(crate) fn differences(
    script: &str,
    real: &[(String, String)],
    sandbox: &[(String, String)],
    listed: &[Listed],
) -> Vec<String> {
    let mut found = Vec::new();
    if real
        .iter()
        .map(|(line, _)| line)
        .ne(sandbox.iter().map(|(line, _)| line))
    {
        found.push(format!(
            "{script}: its calls are not those that were recorded; record them by `make kubectl-suite RECORD=1`"
        ));
        return found;
    }
    let mut rows: BTreeMap<&str, Vec<&Listed>> = BTreeMap::new();
    for row in listed.iter().filter(|row| row.script == script) {
        rows.entry(&row.run).or_default().push(row);
    }
    let both = real.iter().zip(sandbox);
    for ((line, real), (_, sandbox)) in both.filter(|((_, real), (_, sandbox))| real != sandbox) {
        // The n-th row of a command line is that of the n-th such call that differs.
        let row = rows.get_mut(line.as_str()).filter(|rows| !rows.is_empty());
        let row = row.map(|rows| rows.remove(0));
        if row.is_none_or(|row| row.sandbox != *sandbox) {
            found.push(difference(script, line, real, sandbox));
        }
    }
    for row in rows.into_values().flatten() {
        found.push(format!(
            "{script}: $ {}\n  differs no longer; remove its row: {}\n",
            row.run, row.reason
        ));
    }
    found
}

fn difference(script: &str, line: &str, real: &str, sandbox: &str) -> String {
    let (mut ours, mut text) = (sandbox.lines().peekable(), format!("{script}: $ {line}\n"));
    for line in real.lines() {
        if ours.peek() == Some(&line) {
            ours.next();
            text += &format!("    {line}\n");
        } else if let Some(skipped) = ours.clone().position(|other| other == line) {
            for _ in 0..skipped {
                text += &format!("  + {}\n", ours.next().unwrap_or_default());
            }
            ours.next();
            text += &format!("    {line}\n");
        } else {
            text += &format!("  - {line}\n");
        }
    }
    for line in ours {
        text += &format!("  + {line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(outputs: &[&str]) -> Vec<(String, String)> {
        outputs
            .iter()
            .enumerate()
            .map(|(number, output)| (format!("kubectl {number}"), (*output).to_owned()))
            .collect()
    }

    fn row(run: &str, sandbox: &str) -> Listed {
        Listed {
            script: "s".to_owned(),
            run: run.to_owned(),
            reason: "why".to_owned(),
            sandbox: sandbox.to_owned(),
        }
    }

    #[test]
    fn a_recorded_file_is_read_as_it_was_written() {
        let calls = vec![
            ("kubectl a".to_owned(), session(Some(0), "$ x\n! y\nz\n", "")),
            ("kubectl b".to_owned(), session(Some(1), "", "error: no\n")),
            ("kubectl c".to_owned(), session(None, "", "")),
        ];
        assert_eq!(parsed(&written(&calls)), calls);
        assert_eq!(calls[1].1, "! error: no\nexit 1\n");
    }

    #[test]
    fn only_unlisted_and_stale_differences_are_reported() {
        let real = calls(&["a\n", "b\n"]);
        let compare = |sandbox: &[&str], listed: &[Listed]| differences("s", &real, &calls(sandbox), listed).len();
        assert_eq!(compare(&["a\n", "b\n"], &[]), 0);
        assert_eq!(compare(&["a\n", "c\n"], &[]), 1);
        assert_eq!(compare(&["a\n", "c\n"], &[row("kubectl 1", "c\n")]), 0);
        // Another output than the listed one, a difference that is gone, and a call that is gone.
        assert_eq!(compare(&["a\n", "d\n"], &[row("kubectl 1", "c\n")]), 1);
        assert_eq!(compare(&["a\n", "b\n"], &[row("kubectl 1", "c\n")]), 1);
        assert_eq!(compare(&["a\n", "b\n"], &[row("kubectl 2", "c\n")]), 1);
        assert_eq!(compare(&["a\n"], &[]), 1);
    }

    #[test]
    fn a_difference_shows_both_sides() {
        let text = difference("s", "kubectl x", "a\nb\nc\n", "a\nd\nc\n");
        assert_eq!(text, "s: $ kubectl x\n    a\n  - b\n  + d\n    c\n");
    }
}
