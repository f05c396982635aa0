//! The threat model in `SECURITY.md`: each sentence about what a user cannot do names a test that exists.

use std::collections::BTreeSet;

/// Heading of the section.
const SECTION: &str = "\n## Threat model\n";
/// Beginnings of items that say what a user can do. No test fails without them.
const PERMISSIONS: [&str; 2] = ["can ", "may "];

/// Names of the tests in the text of a source file.
pub(crate) fn tests(text: &str) -> impl Iterator<Item = String> {
    let (mut is_test, mut lines) = (false, text.lines().map(str::trim));
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
                is_test = false;
                return rest.split('(').next().map(str::to_owned);
            }
        }
        None
    })
}

/// Complaints about the page.
pub(super) fn complaints(page: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let Some((_, section)) = page.split_once(SECTION) else {
        return vec!["has no section \"Threat model\"".to_owned()];
    };
    let section = section.split("\n## ").next().unwrap_or_default();
    let missing = names(section).filter(|name| !tests.contains(*name));
    let missing =
        missing.map(|name| format!("the test {name} does not exist: name the test that fails without the sentence"));
    let items = section.split("\n- ").skip(1);
    let items = items.map(|item| item.split("\n\n").next().unwrap_or_default());
    let unproven = items.filter(|item| {
        let is_permission = PERMISSIONS.iter().any(|beginning| item.starts_with(beginning));
        !is_permission && names(item).next().is_none()
    });
    let unproven = unproven.map(|item| {
        let first = item.lines().next().unwrap_or_default();
        format!("names no test for {first:?}")
    });
    missing.chain(unproven).collect()
}

/// Names of tests in backticks: at least three words with underscores.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|quoted| {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        quoted.bytes().all(is_name) && quoted.matches('_').count() >= 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn helper_of_the_tests() {}\n#[test]\nfn a_b_c() {}\n    #[tokio::test(start_paused = true)]\n    async fn d_e_f() {}\n";

    fn found(section: &str) -> Vec<String> {
        let tests = tests(SOURCE).collect();
        complaints(
            &format!("# Security\n\n## Threat model\n\n{section}\n\n## Other\n\n`g_h_i`\n"),
            &tests,
        )
    }

    #[test]
    fn test_that_does_not_exist_is_complained_about() {
        assert_eq!(
            found("A user\n\n- does not x (`a_b_c`,\n  `d_e_f` in `src/a.rs`)\n- can `y`"),
            [""; 0]
        );
        assert!(found("- does not x (`helper_of_the_tests`)")[0].contains("helper_of_the_tests"));
    }

    #[test]
    fn sentence_without_a_test_is_complained_about() {
        assert!(found("\n- does not x\n- does not y (`a_b_c`)\n\nText.")[0].contains("does not x"));
        assert!(complaints("# Security\n", &BTreeSet::new())[0].contains("Threat model"));
    }
}
