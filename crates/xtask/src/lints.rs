//! `lints`: checks of the source beyond those of other tools. Files are short, contain no postponed work and no coined
//! words, the differences that the code names match `docs/parity.md`, and reasons are declared where they are listed.
//!
//! The length of a file excludes its tests. Files that contain only tests may have any length. Of a difference only the
//! name is checked; comparisons check the behaviour.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use metal3_files::{documents, workspace};

mod differences;
mod paths;
mod reasons;
mod threats;
mod words;

use differences::Differences;
pub(crate) use threats::tests;

/// Maximum number of lines without tests.
const LONGEST: usize = 400;
/// The page with the threat model.
const SECURITY: &str = "SECURITY.md";
/// Folders with source of the project.
const FOLDERS: [&str; 3] = ["api", "crates", "e2e"];
/// Files that name coined words: the list and its page.
const LISTS_OF_WORDS: [&str; 2] = ["crates/xtask/src/lints/words.rs", "docs/style.md"];
/// Markers of postponed work, split so that this file does not contain them.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Checks every source file and prints the complaints.
pub(crate) fn run() -> Result<bool> {
    let root = workspace::root()?;
    let (mut files, mut found, mut differences) = (0, Vec::new(), Differences::default());
    let mut tests = BTreeSet::new();
    for folder in FOLDERS {
        for file in documents::files(&root.join(folder), &["rs"])? {
            let name = file.strip_prefix(&root).unwrap_or(&file);
            let text = documents::text(&file)?;
            files += 1;
            differences.read(&text);
            tests.extend(threats::tests(&text));
            found.extend(
                complaints(name, &text)
                    .into_iter()
                    .map(|complaint| format!("{}{complaint}", name.display())),
            );
            found.extend(coined(name, &text));
            let undeclared = reasons::complaints(name, &text).into_iter();
            found.extend(undeclared.map(|(line, complaint)| format!("{}:{line}: {complaint}", name.display())));
        }
    }
    let complaints = differences.complaints(&documents::text(&root.join("docs/parity.md"))?);
    found.extend(
        complaints
            .iter()
            .map(|complaint| format!("docs/parity.md: {complaint}")),
    );
    for page in ["ARCHITECTURE.md", SECURITY] {
        let complaints = paths::complaints(&documents::text(&root.join(page))?, &root);
        found.extend(complaints.iter().map(|complaint| format!("{page}: {complaint}")));
    }
    let complaints = threats::complaints(&documents::text(&root.join(SECURITY))?, &tests);
    found.extend(complaints.iter().map(|complaint| format!("{SECURITY}: {complaint}")));
    for page in pages(&root)? {
        let name = page.strip_prefix(&root).unwrap_or(&page);
        found.extend(coined(name, &documents::text(&page)?));
    }
    for line in &found {
        println!("{line}");
    }
    println!(
        "lints: {files} files, {} differences named, {} complaints",
        differences.count(),
        found.len()
    );
    Ok(found.is_empty())
}

/// Pages in Markdown: those of the root, and those below `docs`.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = documents::files(&root.join("docs"), &["md"])?;
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", SECURITY].map(|page| root.join(page)));
    Ok(pages)
}

/// Complaints about coined words, except in the files that list them.
fn coined(name: &Path, text: &str) -> Vec<String> {
    if LISTS_OF_WORDS.iter().any(|list| name == Path::new(list)) {
        return Vec::new();
    }
    let complaint = |(line, complaint)| format!("{}:{line}: {complaint}", name.display());
    words::complaints(text).into_iter().map(complaint).collect()
}

/// Complaints about a file, to be appended to its name.
fn complaints(name: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let length = length_without_tests(text);
    if length > LONGEST && !is_test(name) {
        found.push(format!(
            ": {length} lines without tests, at most {LONGEST}: split it by concept"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = MARKERS.iter().find(|word| has_word(line, word)) {
            found.push(format!(
                ":{}: {word} marks postponed work: do it, or write an issue",
                number + 1
            ));
        }
    }
    found
}

fn length_without_tests(text: &str) -> usize {
    let before_tests = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let before = before_tests.count();
    // `mod tests;` among declarations does not end the file.
    let declaration = text.lines().nth(before + 1).is_some_and(|line| line.ends_with(';'));
    if declaration { text.lines().count() } else { before }
}

/// Whether the file contains only tests.
pub(crate) fn is_test(name: &Path) -> bool {
    name.components().any(|part| part.as_os_str() == "tests") || name.file_stem().is_some_and(|stem| stem == "tests")
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        complaints(Path::new(name), text).len()
    }

    #[test]
    fn long_files_are_reported_without_counting_tests() {
        let long = "fn f() {}\n".repeat(LONGEST + 1);
        assert_eq!(count("src/a.rs", &long), 1);
        assert_eq!(count("src/a.rs", &"fn f() {}\n".repeat(LONGEST)), 0);
        assert_eq!(
            count(
                "src/a.rs",
                &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n")
            ),
            0
        );
        assert_eq!(count("src/a.rs", &format!("#[cfg(test)]\nmod tests;\n{long}")), 1);
        assert_eq!(count("tests/a.rs", &long), 0);
        assert_eq!(count("src/a/tests.rs", &long), 0);
    }

    #[test]
    fn postponed_work_is_reported_for_whole_words_only() {
        for word in MARKERS {
            assert_eq!(count("src/a.rs", &format!("// {word}: later\n")), 1);
            assert_eq!(count("src/a.rs", &format!("// {word}_NAME, {word}S\n")), 0);
        }
    }
}
