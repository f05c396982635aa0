//! Names derived from other names.
//!
//! They are part of the API: users and tools rely on them, and existing installations have objects with them. A derived
//! name is validated like any other, because the combination of two valid names can be too long. Claim names are plain
//! concatenations and can coincide for different pairs, so the creator of a claim checks its owner.

use std::fmt;
use std::net::IpAddr;

use crate::ip::address_text;
use crate::names::{HostKey, NameError, ObjectName};

/// A part of a machine's config drive that is rendered into a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RenderedPart {
    /// Metadata.
    MetaData,
    /// Network data.
    NetworkData,
}

impl RenderedPart {
    /// End of the Secret's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::MetaData => "metadata",
            Self::NetworkData => "networkdata",
        }
    }

    /// Key within the Secret.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::MetaData => "metaData",
            Self::NetworkData => "networkData",
        }
    }
}

/// The Secret that holds a rendered part for a machine: `<machine>-metadata` or `<machine>-networkdata`.
///
/// # Errors
/// When the name becomes too long.
pub fn rendered_secret(machine: &ObjectName, part: RenderedPart) -> Result<ObjectName, NameError> {
    joined(machine, part.suffix())
}

/// The data object of an index of a template: `<template>-<index>`.
///
/// # Errors
/// When the name becomes too long.
pub fn data_object(template: &ObjectName, index: u32) -> Result<ObjectName, NameError> {
    joined(template, index)
}

/// The claim on a pool: `<owner>-<pool>`, where the owner is a data object or, for pre-allocation by host, a host.
///
/// # Errors
/// When the name becomes too long.
pub fn address_claim(owner: &ObjectName, pool: &ObjectName) -> Result<ObjectName, NameError> {
    joined(owner, pool)
}

/// The object of a granted address: the pool's prefix, `-`, and the address with `-` for every dot and colon, without
/// hyphens at its end.
///
/// # Errors
/// When the result is no valid name.
pub fn address_object(prefix: &str, address: IpAddr) -> Result<ObjectName, NameError> {
    let name = format!("{prefix}-{}", address_text(address).replace(['.', ':'], "-"));
    ObjectName::parse(name.trim_end_matches('-'))
}

/// The name of a host's node in Ironic, which knows no namespaces: `<namespace>~<name>`.
#[must_use]
pub fn ironic_node(host: &HostKey) -> String {
    format!("{}~{}", host.namespace(), host.name())
}

fn joined(first: &ObjectName, second: impl fmt::Display) -> Result<ObjectName, NameError> {
    ObjectName::parse(format!("{first}-{second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ObjectName {
        ObjectName::parse(text).unwrap()
    }

    #[test]
    fn names_are_joined_by_a_hyphen() {
        let rows = [
            (rendered_secret(&name("w-0"), RenderedPart::MetaData), "w-0-metadata"),
            (
                rendered_secret(&name("w-0"), RenderedPart::NetworkData),
                "w-0-networkdata",
            ),
            (data_object(&name("tpl"), 2), "tpl-2"),
            (address_claim(&name("tpl-2"), &name("pool.a")), "tpl-2-pool.a"),
        ];
        for (made, expected) in rows {
            assert_eq!(made, Ok(name(expected)));
        }
        assert_eq!(
            ironic_node(&HostKey::parse("metal/rack1-node07").unwrap()),
            "metal~rack1-node07"
        );
    }

    #[test]
    fn address_becomes_part_of_a_name() {
        let rows = [
            ("10.0.0.7", "p-10-0-0-7"),
            ("2001:db8::5", "p-2001-db8--5"),
            ("2001:db8::", "p-2001-db8"),
            ("::1", "p---1"),
            ("::", "p"),
        ];
        for (address, expected) in rows {
            assert_eq!(
                address_object("p", address.parse().unwrap()),
                Ok(name(expected)),
                "{address}"
            );
        }
    }

    #[test]
    fn name_that_becomes_too_long_is_refused() {
        let long = name(&"x".repeat(250));
        assert_eq!(data_object(&long, 99), Ok(name(&format!("{long}-99"))));
        assert_eq!(
            data_object(&long, 100),
            Err(NameError::TooLong { length: 254, max: 253 })
        );
    }

    #[test]
    fn prefix_that_is_no_name_is_refused() {
        assert!(address_object("Pool_A", "10.0.0.7".parse().unwrap()).is_err());
        assert!(address_object("", "10.0.0.7".parse().unwrap()).is_err());
    }

    #[test]
    fn claims_of_different_pairs_can_have_one_name() {
        let (one, other) = (
            address_claim(&name("a-1"), &name("0-p")),
            address_claim(&name("a-1-0"), &name("p")),
        );
        assert_eq!(one, other);
    }
}
