//! Identities from other systems: UIDs of the API server and node UUIDs of Ironic.
//!
//! A [`Uid`] is opaque: it is compared, never parsed. A [`NodeUuid`] is normalised to lower case.

use thiserror::Error;

use crate::names::checked_text;

/// Longest accepted UID.
const UID_MAX: usize = 128;
/// Lengths of the groups of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Why text is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IdError {
    /// Empty, too long, or with characters that no UID has.
    #[error("it is not a UID; expected 1 to 128 letters, digits and '-._:'")]
    Uid,
    /// Not a UUID.
    #[error("it is not a UUID; expected 32 hexadecimal digits in groups of 8-4-4-4-12")]
    Uuid,
}

checked_text! {
    /// The UID of a Kubernetes object: opaque, unique for all time.
    Uid, IdError, |text| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if (1..=UID_MAX).contains(&text.len()) && text.bytes().all(allowed) { Ok(text) } else { Err(IdError::Uid) }
    }
}

checked_text! {
    /// The UUID of an Ironic node, in lower case.
    NodeUuid, IdError, |text| if is_uuid(&text) { Ok(text.to_ascii_lowercase()) } else { Err(IdError::Uuid) }
}

/// Whether Go's usual UUID parser accepts the text, in any of its forms: plain, without hyphens, as a URN, or between
/// two other characters (meant for braces but not checked).
///
/// A host may not have such a name, because Ironic accepts a name or a UUID in the same place.
#[must_use]
pub fn reads_as_uuid(text: &str) -> bool {
    match text.len() {
        32 => is_hexadecimal(text),
        36 => is_uuid(text),
        38 => text.get(1..37).is_some_and(is_uuid),
        45 => {
            text.get(..9)
                .is_some_and(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:"))
                && text.get(9..).is_some_and(is_uuid)
        }
        _ => false,
    }
}

fn is_uuid(text: &str) -> bool {
    text.split('-').map(str::len).eq(UUID_GROUPS) && text.split('-').all(is_hexadecimal)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

    #[test]
    fn node_uuid_has_one_spelling() {
        assert_eq!(NodeUuid::parse(UUID.to_uppercase()).unwrap().as_str(), UUID);
    }

    #[test]
    fn node_uuid_refuses_other_forms() {
        for text in [
            "",
            "node-1",
            &UUID.replace('-', ""),
            &UUID.replace('a', "g"),
            &format!("{{{UUID}}}"),
        ] {
            assert_eq!(NodeUuid::parse(text), Err(IdError::Uuid), "{text:?}");
        }
    }

    #[test]
    fn uid_is_any_short_text_of_allowed_characters() {
        assert!(Uid::parse(UUID).is_ok());
        assert!(Uid::parse("not-a-uuid").is_ok());
        for text in ["", "a b", "a/b", &"x".repeat(129)] {
            assert_eq!(Uid::parse(text), Err(IdError::Uid), "{text:?}");
        }
    }

    #[test]
    fn every_form_of_a_uuid_is_recognised_in_a_host_name() {
        for text in [
            UUID.to_owned(),
            UUID.to_uppercase(),
            UUID.replace('-', ""),
            format!("urn:uuid:{UUID}"),
            format!("URN:UUID:{UUID}"),
            format!("{{{UUID}}}"),
            format!("x{UUID}y"),
        ] {
            assert!(reads_as_uuid(&text), "{text:?}");
        }
        for text in [
            "",
            "rack1-node07",
            "0b1a2c3d",
            &UUID.replace('0', "g"),
            &format!("{UUID}-"),
        ] {
            assert!(!reads_as_uuid(text), "{text:?}");
        }
    }
}
