//! Names of Kubernetes objects, validated once at parsing.
//!
//! A value of these types is valid, so it is never checked again. The object of that name need not exist.

use std::fmt;

use thiserror::Error;

/// Longest DNS-1123 label: a namespace, or one part of a name.
const LABEL_MAX: usize = 63;
/// Longest DNS-1123 subdomain: a name of an object.
const SUBDOMAIN_MAX: usize = 253;

/// The broken rule of a name. The text is not repeated: the caller adds the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text is empty.
    #[error("it is empty; give it a name")]
    Empty,
    /// Longer than the rule allows.
    #[error("it is {length} characters long; shorten it to at most {max}")]
    TooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A character that is not allowed.
    #[error("it contains {character:?}; use lower-case letters, digits and '-'{}", if *.dots { ", and '.' between parts" } else { "" })]
    Character {
        /// The first such character.
        character: char,
        /// Whether dots are allowed.
        dots: bool,
    },
    /// A part that starts or ends with something other than a letter or digit.
    #[error("a part of it starts or ends with '-' or is empty; start and end each part with a letter or digit")]
    Edge,
    /// `namespace/name` was expected.
    #[error("it is not of the form namespace/name; write both with one '/' between them")]
    Shape,
}

/// Checks a DNS-1123 label: lower-case letters, digits and inner hyphens.
///
/// # Errors
/// Names the first rule that is broken.
fn check_label(text: &str) -> Result<(), NameError> {
    check_length(text, LABEL_MAX)?;
    check_characters(text, false)?;
    check_part(text)
}

/// Checks a DNS-1123 subdomain: labels of any length, joined by dots.
///
/// # Errors
/// Names the first rule that is broken.
pub fn check_subdomain(text: &str) -> Result<(), NameError> {
    check_length(text, SUBDOMAIN_MAX)?;
    check_characters(text, true)?;
    text.split('.').try_for_each(check_part)
}

const fn check_length(text: &str, max: usize) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty),
        length if length > max => Err(NameError::TooLong { length, max }),
        _ => Ok(()),
    }
}

fn check_characters(text: &str, dots: bool) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (dots && c == '.');
    match text.chars().find(|c| !allowed(*c)) {
        Some(character) => Err(NameError::Character { character, dots }),
        None => Ok(()),
    }
}

fn check_part(part: &str) -> Result<(), NameError> {
    if part.is_empty() || part.starts_with('-') || part.ends_with('-') {
        Err(NameError::Edge)
    } else {
        Ok(())
    }
}

/// Defines a type for validated text.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $error:ty, $parse:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads the text.
            ///
            /// # Errors
            /// Names the rule that is broken.
            pub fn parse(text: impl Into<String>) -> Result<Self, $error> {
                let parse: fn(String) -> Result<String, $error> = $parse;
                parse(text.into()).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::parse(text)
            }
        }
    };
}
pub(crate) use checked_text;

checked_text! {
    /// The name of an object: a DNS-1123 subdomain.
    ObjectName, NameError, |text| check_subdomain(&text).map(|()| text)
}

checked_text! {
    /// The name of a namespace: a DNS-1123 label.
    Namespace, NameError, |text| check_label(&text).map(|()| text)
}

/// Defines namespace and name of one kind of object, written `namespace/name`, so that kinds cannot be confused.
macro_rules! key_of_kind {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            namespace: Namespace,
            name: ObjectName,
        }

        impl $name {
            /// Creates a key.
            #[must_use]
            pub const fn new(namespace: Namespace, name: ObjectName) -> Self {
                Self { namespace, name }
            }

            /// Reads `namespace/name`.
            ///
            /// # Errors
            /// When there is not exactly one slash, or a part is invalid.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let (namespace, name) = text.split_once('/').ok_or(NameError::Shape)?;
                if name.contains('/') {
                    return Err(NameError::Shape);
                }
                Ok(Self::new(Namespace::parse(namespace)?, ObjectName::parse(name)?))
            }

            /// The namespace.
            #[must_use]
            pub const fn namespace(&self) -> &Namespace {
                &self.namespace
            }

            /// The name.
            #[must_use]
            pub const fn name(&self) -> &ObjectName {
                &self.name
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.namespace, self.name)
            }
        }
    };
}

key_of_kind! {
    /// A BareMetalHost.
    HostKey
}

key_of_kind! {
    /// A Metal3Machine.
    MachineKey
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_name_accepts_subdomains() {
        for text in [
            "a",
            "0",
            "rack1-node07",
            "h.example.com",
            "a--b",
            &"x".repeat(253),
            "1.2.3.4",
        ] {
            assert_eq!(
                ObjectName::parse(text).map(|name| name.to_string()),
                Ok(text.to_owned()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn object_name_error_names_the_broken_rule() {
        let long = "x".repeat(254);
        let rows: [(&str, NameError); 9] = [
            ("", NameError::Empty),
            (&long, NameError::TooLong { length: 254, max: 253 }),
            (
                "Node",
                NameError::Character {
                    character: 'N',
                    dots: true,
                },
            ),
            (
                "a_b",
                NameError::Character {
                    character: '_',
                    dots: true,
                },
            ),
            (
                "a/b",
                NameError::Character {
                    character: '/',
                    dots: true,
                },
            ),
            ("-a", NameError::Edge),
            ("a-", NameError::Edge),
            ("a..b", NameError::Edge),
            ("a.-b", NameError::Edge),
        ];
        for (text, error) in rows {
            assert_eq!(ObjectName::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn message_lists_the_allowed_characters() {
        let shown = |dots| NameError::Character { character: '_', dots }.to_string();
        assert_eq!(shown(false), "it contains '_'; use lower-case letters, digits and '-'");
        assert_eq!(
            shown(true),
            "it contains '_'; use lower-case letters, digits and '-', and '.' between parts"
        );
    }

    #[test]
    fn namespace_is_one_label() {
        assert!(Namespace::parse("x".repeat(63)).is_ok());
        assert_eq!(
            Namespace::parse("x".repeat(64)),
            Err(NameError::TooLong { length: 64, max: 63 })
        );
        assert_eq!(
            Namespace::parse("a.b"),
            Err(NameError::Character {
                character: '.',
                dots: false
            })
        );
    }

    #[test]
    fn key_parses_and_prints_as_namespace_slash_name() {
        let key = HostKey::parse("metal/h.example.com").unwrap();
        assert_eq!(
            (key.namespace().as_str(), key.name().as_str()),
            ("metal", "h.example.com")
        );
        assert_eq!(key.to_string(), "metal/h.example.com");
    }

    #[test]
    fn key_needs_exactly_one_slash() {
        for text in ["", "metal", "a/b/c"] {
            assert_eq!(HostKey::parse(text), Err(NameError::Shape), "{text:?}");
        }
        assert_eq!(MachineKey::parse("/name"), Err(NameError::Empty));
        assert_eq!(MachineKey::parse("metal/"), Err(NameError::Empty));
    }

    #[test]
    fn decoding_validates() {
        assert!(serde_json::from_str::<ObjectName>("\"Not A Name\"").is_err());
    }
}
