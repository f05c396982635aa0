//! `lints`: what no other tool checks of the source. Files stay short, nothing is promised for later, and the
//! differences that the code names are those of `docs/parity.md`.
//!
//! The length of a file is counted without its tests. A file that is nothing but tests, or a table written as code, may
//! be as long as it needs to be; so may generated files, which are no Rust. Of a difference only the name is looked at;
//! whether the code differs so is for the comparisons to say.

use std::path::Path;

use anyhow::Result;

use metal3_files::{documents, workspace};

mod differences;

use differences::Differences;

/// Longer than this, a file has more than one reason to change.
const LONGEST: usize = 400;
/// Folders with source of the project.
const FOLDERS: [&str; 3] = ["api", "crates", "e2e"];
/// Words that put work off, each in two halves so that this file does not hold them.
const PROMISES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Checks every source file and prints what is wrong.
pub(crate) fn run() -> Result<bool> {
    let root = workspace::root()?;
    let (mut files, mut wrong, mut differences) = (0, Vec::new(), Differences::default());
    for folder in FOLDERS {
        for file in documents::files(&root.join(folder), &["rs"])? {
            let name = file.strip_prefix(&root).unwrap_or(&file);
            let text = documents::text(&file)?;
            files += 1;
            differences.read(&text);
            wrong.extend(
                complaints(name, &text)
                    .into_iter()
                    .map(|complaint| format!("{}{complaint}", name.display())),
            );
        }
    }
    let complaints = differences.complaints(&documents::text(&root.join("docs/parity.md"))?);
    wrong.extend(
        complaints
            .iter()
            .map(|complaint| format!("docs/parity.md: {complaint}")),
    );
    for line in &wrong {
        println!("{line}");
    }
    println!(
        "lints: {files} files, {} differences named, {} complaints",
        differences.count(),
        wrong.len()
    );
    Ok(wrong.is_empty())
}

/// What is wrong with a file; each complaint goes on from the file's name.
fn complaints(name: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let length = length_without_tests(text);
    if length > LONGEST && !is_test(name) {
        found.push(format!(
            ": {length} lines without tests, at most {LONGEST}: split it by concept"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = PROMISES.iter().find(|word| has_word(line, word)) {
            found.push(format!(
                ":{}: {word} puts work off: do it, or write an issue",
                number + 1
            ));
        }
    }
    found
}

fn length_without_tests(text: &str) -> usize {
    let before_tests = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let before = before_tests.count();
    // `mod tests;` in the middle of a file's declarations ends nothing.
    let declaration = text.lines().nth(before + 1).is_some_and(|line| line.ends_with(';'));
    if declaration { text.lines().count() } else { before }
}

/// Whether the file holds tests alone.
fn is_test(name: &Path) -> bool {
    name.components().any(|part| part.as_os_str() == "tests") || name.file_stem().is_some_and(|stem| stem == "tests")
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complain(name: &str, text: &str) -> usize {
        complaints(Path::new(name), text).len()
    }

    #[test]
    fn a_long_file_is_complained_about_and_its_tests_do_not_count() {
        let long = "fn f() {}\n".repeat(LONGEST + 1);
        assert_eq!(complain("src/a.rs", &long), 1);
        assert_eq!(complain("src/a.rs", &"fn f() {}\n".repeat(LONGEST)), 0);
        assert_eq!(
            complain(
                "src/a.rs",
                &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n")
            ),
            0
        );
        assert_eq!(complain("src/a.rs", &format!("#[cfg(test)]\nmod tests;\n{long}")), 1);
        assert_eq!(complain("tests/a.rs", &long), 0);
        assert_eq!(complain("src/a/tests.rs", &long), 0);
    }

    #[test]
    fn promises_are_complained_about_as_words_alone() {
        for word in PROMISES {
            assert_eq!(complain("src/a.rs", &format!("// {word}: later\n")), 1);
            assert_eq!(complain("src/a.rs", &format!("// {word}_NAME, {word}S\n")), 0);
        }
    }
}
