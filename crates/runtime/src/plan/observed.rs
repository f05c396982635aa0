//! Present, absent or unknown: three results that a decision must not confuse.

use std::fmt;
use std::ops::Deref;

/// What a reconcile knows of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed<T> {
    /// The object.
    Present(T),
    /// The object does not exist, or nothing refers to one.
    Absent,
    /// Whether the object exists, or its content, is not known. A decision must not rely on either.
    Unknown(UnknownReason),
}

/// Why nothing is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownReason {
    /// The first list of its kind is not complete.
    NotListed,
    /// This program may not list its kind, which is optional.
    NotPermitted,
    /// This reconcile has not read it yet.
    NotRead,
    /// It exists and cannot be decoded. The message contains nothing of its content.
    Unreadable(String),
}

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotListed => "it was not listed yet",
            Self::NotPermitted => "this program may not list its kind",
            Self::NotRead => "it was not read yet",
            Self::Unreadable(why) => why,
        })
    }
}

impl<T> Observed<T> {
    /// The object, if it is present.
    #[must_use]
    pub const fn present(&self) -> Option<&T> {
        match self {
            Self::Present(object) => Some(object),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The object itself, if it is present.
    #[must_use]
    pub fn into_present(self) -> Option<T> {
        match self {
            Self::Present(object) => Some(object),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Why nothing is known, if so.
    #[must_use]
    pub const fn unknown(&self) -> Option<&UnknownReason> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Present(_) | Self::Absent => None,
        }
    }

    /// The same, with a reference to the object.
    #[must_use]
    pub fn as_ref(&self) -> Observed<&T> {
        match self {
            Self::Present(object) => Observed::Present(object),
            Self::Absent => Observed::Absent,
            Self::Unknown(why) => Observed::Unknown(why.clone()),
        }
    }

    /// The same, with a reference to what the object points to: to a `K` for an `Arc<K>`.
    #[must_use]
    pub fn as_deref(&self) -> Observed<&T::Target>
    where
        T: Deref,
    {
        self.as_ref().map(|object| &**object)
    }

    /// The same, with what `change` returns for the object.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Present(object) => Observed::Present(change(object)),
            Self::Absent => Observed::Absent,
            Self::Unknown(why) => Observed::Unknown(why),
        }
    }
}

impl<T> From<Option<T>> for Observed<T> {
    /// For a read that is complete: what it did not find is absent.
    fn from(found: Option<T>) -> Self {
        found.map_or(Self::Absent, Self::Present)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_a_present_object_can_be_used() {
        let present = Observed::Present(7);
        assert_eq!((present.present(), present.unknown()), (Some(&7), None));
        assert_eq!(Observed::<u8>::Absent.present(), None);
        let unknown = Observed::<u8>::Unknown(UnknownReason::NotListed);
        assert_eq!(
            (unknown.present(), unknown.unknown()),
            (None, Some(&UnknownReason::NotListed))
        );
        assert_eq!((present.into_present(), unknown.into_present()), (Some(7), None));
    }

    #[test]
    fn conversions_keep_absent_and_unknown_apart() {
        let unreadable = || UnknownReason::Unreadable("spec.count: expected u8".to_owned());
        for (from, to) in [
            (Observed::Present(Arc::new(7)), Observed::Present(8)),
            (Observed::Absent, Observed::Absent),
            (Observed::Unknown(unreadable()), Observed::Unknown(unreadable())),
        ] {
            assert_eq!(from.as_deref().map(|number| number + 1), to);
            assert_eq!(from.as_ref().map(|number| **number + 1), to);
        }
        assert_eq!(Observed::from(None::<u8>), Observed::Absent);
        assert_eq!(Observed::from(Some(7)), Observed::Present(7));
    }

    #[test]
    fn reasons_are_sentences_for_people() {
        assert_eq!(UnknownReason::NotListed.to_string(), "it was not listed yet");
        let forbidden = UnknownReason::NotPermitted.to_string();
        assert_eq!(forbidden, "this program may not list its kind");
        assert_eq!(UnknownReason::NotRead.to_string(), "it was not read yet");
        assert_eq!(UnknownReason::Unreadable("odd".to_owned()).to_string(), "odd");
    }
}
