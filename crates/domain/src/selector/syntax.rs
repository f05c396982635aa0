//! The syntax of label keys and values.

use thiserror::Error;

use crate::names::{NameError, check_subdomain};

/// Longest name of a key, and longest value.
const LONGEST: usize = 63;

/// The broken rule of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LabelError {
    /// The name is empty.
    #[error("its name is empty; write a name, after the '/' if there is a prefix")]
    Empty,
    /// More than 63 characters.
    #[error("it is {length} characters long; shorten it to at most 63")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// A character that is not allowed.
    #[error("it contains {character:?}; use letters, digits, '-', '_' and '.'")]
    Character {
        /// The first such character.
        character: char,
    },
    /// The first or last character is no letter or digit.
    #[error("it must start and end with a letter or digit")]
    Edge,
    /// The part before the slash is no DNS name.
    #[error("the part before '/' is no DNS name: {0}")]
    Prefix(NameError),
    /// More than one slash.
    #[error("it has more than one '/'")]
    Slashes,
}

/// Checks a label key: a name, or a DNS name, `/` and a name.
///
/// # Errors
/// Names the first rule that is broken.
pub fn check_key(key: &str) -> Result<(), LabelError> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => return Err(LabelError::Slashes),
        Some((prefix, name)) => {
            check_subdomain(prefix).map_err(LabelError::Prefix)?;
            name
        }
    };
    if name.is_empty() {
        Err(LabelError::Empty)
    } else {
        check_name(name)
    }
}

/// Checks a label value: empty, or a name.
///
/// # Errors
/// Names the first rule that is broken.
pub fn check_value(value: &str) -> Result<(), LabelError> {
    if value.is_empty() { Ok(()) } else { check_name(value) }
}

fn check_name(name: &str) -> Result<(), LabelError> {
    if name.len() > LONGEST {
        return Err(LabelError::TooLong { length: name.len() });
    }
    if let Some(character) = name
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
    {
        return Err(LabelError::Character { character });
    }
    let edge = |character: Option<char>| character.is_some_and(|c| c.is_ascii_alphanumeric());
    if edge(name.chars().next()) && edge(name.chars().next_back()) {
        Ok(())
    } else {
        Err(LabelError::Edge)
    }
}
