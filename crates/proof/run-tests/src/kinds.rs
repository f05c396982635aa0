//! Kinds of tests in the summary: sweeps of faults, properties of generated inputs, and all others.

use std::collections::BTreeSet;
use std::path::Path;

/// Parts of the names of tests that inject faults at each of many places.
const SWEEPS: [&str; 5] = ["sweep", "fault_of_any", "fault_during", "crash", "faults::"];
/// Parts of the names of tests that generate their inputs themselves.
const GENERATED: [&str; 4] = ["generated", "random", "no_target_has_a_finding", "histories"];
/// Folders with sources.
const FOLDERS: [&str; 3] = ["api", "crates", "e2e"];

/// What a test is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Sweep,
    Property,
    Other,
}

/// Names of the tests whose inputs the macro `proptest!` generates.
#[derive(Debug, Default)]
pub(super) struct Generated(BTreeSet<String>);

impl Generated {
    /// Those in the sources of a workspace. Without the sources there are none.
    pub(super) fn of(root: &Path) -> Self {
        let mut generated = Self::default();
        for folder in FOLDERS {
            generated.read(&root.join(folder));
        }
        generated
    }

    fn read(&mut self, folder: &Path) {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                self.read(&path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                self.0.extend(names(&text));
            }
        }
    }

    /// The kind of a test.
    pub(super) fn kind(&self, test: &str) -> Kind {
        let has = |words: &[&str]| words.iter().any(|word| test.contains(word));
        let name = test.rsplit("::").next().unwrap_or(test);
        if has(&SWEEPS) {
            Kind::Sweep
        } else if self.0.contains(name) || has(&GENERATED) {
            Kind::Property
        } else {
            Kind::Other
        }
    }
}

/// Names of the functions in `proptest!` blocks. A block ends at the brace with its indent.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut end: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("proptest! {") {
            let indent = line.strip_suffix(trimmed).unwrap_or_default();
            end = Some(format!("{indent}}}"));
        } else if end.as_deref() == Some(line) {
            end = None;
        } else if let Some(rest) = trimmed.strip_prefix("fn ").filter(|_| end.is_some()) {
            names.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_in_blocks_of_generated_inputs_are_properties() {
        let text = "fn a() {}\nmod x {\n    proptest! {\n        #[test]\n        fn b(x in y()) {\n        }\n    }\n    fn c() {}\n}\n";
        assert_eq!(names(text), ["b"]);
        let generated = Generated(names(text).into_iter().collect());
        assert_eq!(generated.kind("x::b"), Kind::Property);
        assert_eq!(generated.kind("x::c"), Kind::Other);
        assert_eq!(generated.kind("stories::generated_stories_hold"), Kind::Property);
        assert_eq!(generated.kind("discs::sweep::b"), Kind::Sweep);
    }

    #[test]
    fn sources_of_this_workspace_have_properties() {
        // Tests run in the folder of their package. That of the compilation may be another checkout, which is gone.
        let root = Path::new("../../..");
        assert!(Generated::of(root).0.len() > 20);
    }
}
