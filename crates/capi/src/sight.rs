//! What is known of one object.

use metal3_runtime::cache::Found;

/// What is known of one object. Nothing is concluded from what is unknown.
#[derive(Debug, PartialEq, Eq)]
pub enum Sight<'a, T> {
    /// It is there.
    Seen(&'a T),
    /// It is known not to be there, or nothing names it.
    Absent,
    /// It exists and cannot be read, or nobody has looked yet.
    Unknown(&'a str),
}

impl<T> Clone for Sight<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Sight<'_, T> {}

impl<'a, T> Sight<'a, T> {
    /// The object, if it is there.
    #[must_use]
    pub const fn seen(&self) -> Option<&'a T> {
        match self {
            Self::Seen(object) => Some(object),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Why nobody can say, if so.
    #[must_use]
    pub const fn unknown(&self) -> Option<&'a str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Seen(_) | Self::Absent => None,
        }
    }
}

impl<'a, T> From<Option<&'a T>> for Sight<'a, T> {
    fn from(object: Option<&'a T>) -> Self {
        object.map_or(Self::Absent, Self::Seen)
    }
}

impl<'a, T> From<&'a Found<T>> for Sight<'a, T> {
    fn from(found: &'a Found<T>) -> Self {
        match found {
            Found::Live(object) => Self::Seen(object),
            Found::Absent => Self::Absent,
            Found::Unreadable { why } => Self::Unknown(why),
            Found::Unknown => Self::Unknown("it was not listed yet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_absent() {
        let unreadable: Found<u8> = Found::Unreadable { why: "odd".to_owned() };
        assert_eq!(Sight::from(&unreadable), Sight::Unknown("odd"));
        assert!(Sight::from(&Found::<u8>::Unknown).unknown().is_some());
        assert_eq!(Sight::from(&Found::<u8>::Absent), Sight::Absent);
        assert_eq!(Sight::from(&Found::Live(Arc::new(7))).seen(), Some(&7));
    }
}
