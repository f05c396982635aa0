//! Reasons of conditions, Events and waits: each is declared with `reasons!`, whose lists a test compares with the table
//! of explanations (`crates/explain`). A reason that is made elsewhere would have no explanation.

use std::path::Path;

use super::is_test;

/// The constructor, split so that this file does not contain it.
const MADE: &str = concat!("Reason::", "new(");
/// The file that declares the type and the macro.
const DECLARATION: &str = "crates/domain/src/reason.rs";

/// Complaints about the reasons that a file makes outside tests, each with its line number.
pub(super) fn complaints(name: &Path, text: &str) -> Vec<(usize, String)> {
    if name == Path::new(DECLARATION) || is_test(name) {
        return Vec::new();
    }
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    let made = lines.filter(|(_, line)| !line.trim_start().starts_with("//") && line.contains(MADE));
    made.map(|(number, _)| {
        (
            number + 1,
            "declare the reason with `reasons!`, so that it is explained".to_owned(),
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        complaints(Path::new(name), text).len()
    }

    #[test]
    fn reason_that_no_list_contains_is_complained_about() {
        let made = format!("const X: Reason = {MADE}\"X\");\n");
        assert_eq!(count("crates/ipam/src/a.rs", &made), 1);
        assert_eq!(count("crates/ipam/src/a.rs", "reasons! {\n    pub X = \"X\";\n}\n"), 0);
    }

    #[test]
    fn tests_comments_and_the_declaration_may_make_one() {
        let made = format!("const X: Reason = {MADE}\"X\");\n");
        for name in ["crates/ipam/src/tests/a.rs", "crates/ipam/src/a/tests.rs", DECLARATION] {
            assert_eq!(count(name, &made), 0, "{name}");
        }
        assert_eq!(
            count("src/a.rs", &format!("//! {made}#[cfg(test)]\nmod tests {{\n{made}}}\n")),
            0
        );
    }
}
