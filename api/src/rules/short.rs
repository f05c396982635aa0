//! Texts of limited length. An object of a user may hold texts of many MiB, and a message quotes them.

use std::fmt::{self, Write as _};

/// The beginning of what is displayed, in bytes. The rest is not written anywhere.
#[must_use]
pub fn beginning(of: &impl fmt::Display, longest: usize) -> String {
    let mut short = Short {
        text: String::new(),
        longest,
    };
    if write!(short, "{of}").is_err() {
        short.text.push_str("...");
    }
    short.text
}

struct Short {
    text: String,
    longest: usize,
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.longest.saturating_sub(self.text.len());
        if text.len() <= left {
            self.text.push_str(text);
            return Ok(());
        }
        let end = (0..=left).rev().find(|end| text.is_char_boundary(*end));
        self.text
            .push_str(text.get(..end.unwrap_or_default()).unwrap_or_default());
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, longest, expected) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab..."),
            ("aé", 2, "a..."),
            ("", 0, ""),
            ("a", 0, "..."),
        ] {
            assert_eq!(beginning(&text, longest), expected);
        }
    }

    #[test]
    fn what_is_not_shown_is_not_written() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("text")?;
                }
            }
        }
        assert_eq!(beginning(&Endless, 6), "textte...");
    }
}
