//! Paths of source files in the architecture page: each names an existing file.

use std::path::Path;

/// Complaints about the paths in backticks that do not exist below `root`.
pub(super) fn complaints(text: &str, root: &Path) -> Vec<String> {
    paths(text)
        .filter(|path| !root.join(path).exists())
        .map(|path| format!("{path} does not exist: name the file that contains the step"))
        .collect()
}

/// Paths of Rust files in backticks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| Path::new(quoted).extension().is_some_and(|ending| ending == "rs") && quoted.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_complained_about_and_other_quotes_are_not() {
        let here = Path::new(".");
        assert_eq!(complaints("see `src/main.rs`, `make check`, `lib.rs`", here), [""; 0]);
        assert_eq!(complaints("see `src/missing.rs`", here).len(), 1);
    }
}
