//! Scripts: files of `e2e/kubectl`, each with calls that depend on each other in a namespace of their own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// The programs that a script may run, and [requests](crate::request).
pub(crate) const PROGRAMS: [&str; 4] = ["kubectl", "clusterctl", "helm", REQUEST];
/// A request of this program.
pub(crate) const REQUEST: &str = "request";

/// A script.
#[derive(Debug, PartialEq)]
pub(crate) struct Script {
    /// The name of its file, and of its namespace.
    pub(crate) name: String,
    /// Its calls.
    pub(crate) calls: Vec<Call>,
}

/// A call of a program.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// The command line; words with spaces are in single quotes.
    pub(crate) run: String,
    /// The standard input.
    #[serde(default)]
    pub(crate) input: String,
    /// The expression of `sed` that stands for the user's editor.
    #[serde(default)]
    pub(crate) edit: String,
    /// Ends the program after this many lines of output, which a watch does not do by itself.
    #[serde(default)]
    pub(crate) lines: usize,
    /// A command line that runs after the first line of output.
    #[serde(default)]
    pub(crate) meanwhile: String,
    /// Of these lists in the answer to a request, only the elements with these names are printed.
    #[serde(default)]
    pub(crate) only: BTreeMap<String, Vec<String>>,
    /// These members of it are not printed.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Whether a request sends its patch as a strategic one.
    #[serde(default)]
    pub(crate) strategic: bool,
}

impl Script {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        Self::parse(&name.unwrap_or_default(), &text).with_context(|| path.display().to_string())
    }

    /// The script of a text, for tests.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self::parse("a", text).unwrap()
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let calls: Vec<Call> = serde_saphyr::from_str(text)?;
        for call in &calls {
            let lines = [&call.run, &call.meanwhile];
            for line in lines.into_iter().filter(|line| !line.is_empty()) {
                let words = words(line)?;
                let program = words.first().map(String::as_str).unwrap_or_default();
                ensure!(
                    PROGRAMS.contains(&program),
                    "{line}: begins with none of {}",
                    PROGRAMS.join(", ")
                );
            }
        }
        Ok(Self {
            name: name.to_owned(),
            calls,
        })
    }
}

/// The words of a command line.
pub(crate) fn words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    if quoted {
        bail!("{line}: a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_spaces_and_empty_words() {
        let found = words("kubectl patch cm a -p '{\"a\": 1}' --x='a b' ''").unwrap();
        assert_eq!(
            found,
            ["kubectl", "patch", "cm", "a", "-p", "{\"a\": 1}", "--x=a b", ""]
        );
        assert!(words("kubectl 'get").is_err());
    }

    #[test]
    fn a_call_names_its_program() {
        let script = Script::parse("a", "- run: kubectl get cm\n- run: helm list\n").unwrap();
        assert_eq!((script.calls.len(), script.calls[1].run.as_str()), (2, "helm list"));
        for text in [
            "- run: rm -r /",
            "- run: kubectl get\n  meanwhile: rm",
            "- runs: kubectl",
        ] {
            assert!(Script::parse("a", text).is_err(), "{text}");
        }
    }
}
