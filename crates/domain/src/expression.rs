//! Regular expressions that users write.
//!
//! One matches a text as a whole, and its size is limited: a few nested repetitions would take gigabytes.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The longest expression that is read.
pub const LONGEST: usize = 512;
/// The most memory of a compiled expression, in bytes.
const MOST_MEMORY: usize = 1 << 18;

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unusable {
    /// It is longer than [`LONGEST`].
    #[error("it has {0} characters")]
    TooLong(usize),
    /// It takes too much memory when it is compiled.
    #[error("it repeats too much")]
    TooLarge,
    /// It is no expression; with the last line of the explanation.
    #[error("it is no regular expression: {0}")]
    Malformed(String),
}

/// Compiles an expression that matches a text as a whole.
///
/// # Errors
/// If it is no expression, or exceeds a limit.
pub fn whole(expression: &str) -> Result<Regex, Unusable> {
    if expression.len() > LONGEST {
        return Err(Unusable::TooLong(expression.chars().count()));
    }
    // Alone first: `a)|(b` would end the group that anchors it.
    compile(expression)?;
    compile(&format!(r"\A(?:{expression})\z"))
}

fn compile(text: &str) -> Result<Regex, Unusable> {
    let mut builder = RegexBuilder::new(text);
    let compiled = builder.size_limit(MOST_MEMORY).dfa_size_limit(MOST_MEMORY).build();
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Unusable::TooLarge,
        other => Unusable::Malformed(last_line(&other.to_string())),
    })
}

/// The lines before show the expression.
fn last_line(text: &str) -> String {
    let line = text.lines().next_back().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_matches_a_text_as_a_whole() {
        let expression = whole("team-(a|b)").unwrap();
        for (text, matches) in [
            ("team-a", true),
            ("my-team-a", false),
            ("team-ab", false),
            ("team-b", true),
        ] {
            assert_eq!(expression.is_match(text), matches, "{text}");
        }
    }

    #[test]
    fn expression_that_cannot_be_used_says_why() {
        for (text, expected) in [
            ("team-[", "it is no regular expression: unclosed character class"),
            ("a)|(b", "it is no regular expression: unopened group"),
            (r"\Qteam\E", "it is no regular expression: unrecognized escape sequence"),
            ("((a{1000}){1000}){1000}", "it repeats too much"),
            (&"x".repeat(513), "it has 513 characters"),
        ] {
            assert_eq!(whole(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(whole(&"x".repeat(LONGEST)).is_ok());
    }
}
