//! Reasons of conditions, events and waits: one word for programs.
//!
//! The type admits valid reasons only: none is empty, and the API server accepts each. [`reasons!`](crate::reasons)
//! declares them and lists them in `ALL`, so that a test can require an explanation of each.

use std::fmt;

/// One word in `CamelCase`, fixed at compile time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(&'static str);

impl Reason {
    /// A reason, for a constant:
    ///
    /// ```
    /// use metal3_domain::reason::Reason;
    /// const POOL_EXHAUSTED: Reason = Reason::new("PoolExhausted");
    /// ```
    ///
    /// Anything that is not one word does not compile:
    ///
    /// ```compile_fail,E0080
    /// use metal3_domain::reason::Reason;
    /// const NOTHING: Reason = Reason::new("");
    /// ```
    ///
    /// # Panics
    /// When the word is empty, does not start with a letter, has other characters than letters, digits and `_`, or is
    /// longer than 256 bytes.
    #[must_use]
    pub const fn new(word: &'static str) -> Self {
        assert!(
            is_word(word.as_bytes()),
            "a reason is a word: a letter, then letters, digits and _"
        );
        Self(word)
    }

    /// As the API has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// Declares the reasons of a module, and lists them in its constant `ALL`.
///
/// ```
/// metal3_domain::reasons! {
///     /// No address is free.
///     pub POOL_EXHAUSTED = "PoolExhausted";
/// }
/// assert_eq!(ALL, [POOL_EXHAUSTED]);
/// ```
#[macro_export]
macro_rules! reasons {
    ($($(#[$meta:meta])* $visibility:vis $name:ident = $word:literal;)+) => {
        $($(#[$meta])* $visibility const $name: $crate::reason::Reason = $crate::reason::Reason::new($word);)+

        /// Every reason of this module.
        pub const ALL: &[$crate::reason::Reason] = &[$($name),+];
    };
}

/// What conditions of both generations and events accept.
const fn is_word(word: &[u8]) -> bool {
    let [first, rest @ ..] = word else { return false };
    let mut rest = rest;
    let mut good = first.is_ascii_alphabetic() && word.len() <= 256;
    while let [next, after @ ..] = rest {
        good = good && (next.is_ascii_alphanumeric() || *next == b'_');
        rest = after;
    }
    good
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_and_invalid_reasons_are_distinguished() {
        for word in ["A", "Ready", "PoolExhausted", "IPv4", "a_b", &"x".repeat(256)] {
            assert!(is_word(word.as_bytes()), "{word}");
        }
        for word in ["", " ", "4v", "_a", "two words", "né", "a.b", "a-b", &"x".repeat(257)] {
            assert!(!is_word(word.as_bytes()), "{word}");
        }
    }
}
