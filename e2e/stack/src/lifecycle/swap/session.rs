//! Commands that were typed, and what they printed.

use std::fmt::Write as _;

use anyhow::bail;
use parking_lot::Mutex;

use crate::claims::stack::Stack;

/// What a command answered.
pub(super) struct Typed {
    pub(super) succeeded: bool,
    pub(super) printed: String,
}

/// Commands that were typed, with the end of their output.
#[derive(Debug, Default)]
pub(super) struct Session(Mutex<String>);

impl Session {
    /// Runs a command; its output is recorded, also when it fails.
    pub(super) fn type_in(&self, stack: &Stack, words: &[&str]) -> anyhow::Result<Typed> {
        let [program, arguments @ ..] = words else {
            bail!("no command");
        };
        let folder = stack.places.state_file("swap").display().to_string();
        let output = stack.output(program, arguments, None)?;
        let printed = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let mut said = self.0.lock();
        let line = shown(words).replace(&format!("{folder}/"), "");
        // Writing to a String cannot fail.
        let _ = writeln!(said, "$ {line}");
        for line in shortened(&printed.concat()) {
            let _ = writeln!(said, "{line}");
        }
        if !output.status.success() {
            let _ = writeln!(said, "(exit code {})", output.status.code().unwrap_or_default());
        }
        Ok(Typed {
            succeeded: output.status.success(),
            printed: printed.concat(),
        })
    }

    /// The same for a command that must succeed.
    pub(super) fn must(&self, stack: &Stack, words: &[&str]) -> anyhow::Result<()> {
        if self.type_in(stack, words)?.succeeded {
            return Ok(());
        }
        bail!("{} failed:\n{}", words.join(" "), self.0.lock());
    }

    /// What was done without a command of a user.
    pub(super) fn note(&self, what: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0.lock(), "# {what}");
    }

    pub(super) fn take(&self) -> String {
        std::mem::take(&mut self.0.lock())
    }
}

/// The command as a user types it: this program by its name, and any file of access.
fn shown(words: &[&str]) -> String {
    let word = |(index, word): (usize, &&str)| match (index, word.rsplit_once('/')) {
        (0, Some((_, program))) => program.to_owned(),
        (_, Some(_)) if word.starts_with("--kubeconfig=") => "--kubeconfig=FILE".to_owned(),
        _ => (*word).to_owned(),
    };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// The first and the last lines; a list of objects that were applied is one line.
fn shortened(text: &str) -> Vec<String> {
    const MOST: usize = 6;
    const WIDTH: usize = 300;
    let (applied, others): (Vec<&str>, Vec<&str>) = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .partition(|line| line.contains(" serverside-applied"));
    let mut lines: Vec<String> = Vec::new();
    if !applied.is_empty() {
        lines.push(format!("({} objects serverside-applied)", applied.len()));
    }
    let cut = |line: &&str| line.chars().take(WIDTH).collect::<String>();
    if others.len() <= MOST {
        lines.extend(others.iter().map(cut));
    } else {
        let (first, last) = (MOST.saturating_sub(2), others.len().saturating_sub(2));
        lines.extend(others.iter().take(first).map(cut));
        lines.push(format!("({} lines)", others.len().saturating_sub(MOST)));
        lines.extend(others.iter().skip(last).map(cut));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_shown_as_a_user_types_it() {
        let words = ["/a/b/capm3", "hand-back", "--kubeconfig=/c/admin", "-f", "/d/e.yaml"];
        assert_eq!(shown(&words), "capm3 hand-back --kubeconfig=FILE -f /d/e.yaml");
    }

    #[test]
    fn applied_objects_are_counted_and_long_output_is_cut() {
        let applied = "crd/a serverside-applied\ncrd/b serverside-applied\n";
        assert_eq!(shortened(applied), ["(2 objects serverside-applied)"]);
        let long: String = (0..20).map(|number| format!("line {number}\n")).collect();
        let lines = shortened(&long);
        assert_eq!(lines.len(), 7, "{lines:?}");
        assert_eq!((lines[0].as_str(), lines[4].as_str()), ("line 0", "(14 lines)"));
        assert_eq!(lines[6], "line 19");
    }
}
