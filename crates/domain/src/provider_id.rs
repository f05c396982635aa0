//! Provider IDs, which link a Node of a workload cluster to its machine.
//!
//! | Text | Meaning |
//! |---|---|
//! | `metal3://<namespace>/<host>/<machine>` | the form that is written |
//! | `metal3://<uid>` | the UID of a host, written by old templates |
//! | anything else | a Node of another provider |
//!
//! For a machine on a claimed host, the claim's name replaces the host's. A move changes the UID of a host, so the form
//! with the UID is used only for the first match.
//!
//! A provider ID is written once and then compared as text, so a parsed ID prints as the same text.

use std::fmt;

use thiserror::Error;

use crate::ids::Uid;
use crate::names::{HostKey, MachineKey, NameError, Namespace, ObjectName};

/// Scheme of this provider's IDs.
const SCHEME: &str = "metal3://";
/// Longest text the API accepts.
const LONGEST: usize = 512;

/// A provider ID of this provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderId {
    /// A machine on a host.
    Machine(MachineProviderId),
    /// A host, by its UID.
    HostUid(Uid),
}

/// The form that is written: namespace, host and machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineProviderId {
    namespace: Namespace,
    host: ObjectName,
    machine: ObjectName,
}

/// Why text is no provider ID of this provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProviderIdError {
    /// Empty: the Node or machine has no ID yet.
    #[error("the provider ID is empty; it is set once the machine has a host")]
    Empty,
    /// Longer than the API accepts.
    #[error("the provider ID is {length} characters long; at most 512 are allowed")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// Another scheme.
    #[error("the provider ID belongs to another provider; expected metal3://")]
    Foreign,
    /// This provider's scheme with neither one nor three parts.
    #[error("the provider ID has the wrong number of parts; expected metal3://<namespace>/<host>/<machine>")]
    Shape,
    /// A part that is no name.
    #[error("the {part} in the provider ID is no name: {error}")]
    Name {
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        error: NameError,
    },
    /// The only part is no UID.
    #[error("the provider ID names a host by something that is no UID; expected metal3://<namespace>/<host>/<machine>")]
    Uid,
}

impl ProviderId {
    /// Parses a provider ID of this provider.
    ///
    /// # Errors
    /// When the text is empty, too long, another provider's, or malformed.
    pub fn parse(text: &str) -> Result<Self, ProviderIdError> {
        match text.len() {
            0 => return Err(ProviderIdError::Empty),
            length if length > LONGEST => return Err(ProviderIdError::TooLong { length }),
            _ => {}
        }
        let rest = text.strip_prefix(SCHEME).ok_or(ProviderIdError::Foreign)?;
        let mut parts = rest.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(uid), None, None, None) => Uid::parse(uid).map(Self::HostUid).map_err(|_| ProviderIdError::Uid),
            (Some(namespace), Some(host), Some(machine), None) => {
                let named = |part| move |error| ProviderIdError::Name { part, error };
                Ok(Self::Machine(MachineProviderId {
                    namespace: Namespace::parse(namespace).map_err(named("namespace"))?,
                    host: ObjectName::parse(host).map_err(named("host"))?,
                    machine: ObjectName::parse(machine).map_err(named("machine"))?,
                }))
            }
            _ => Err(ProviderIdError::Shape),
        }
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(id) => id.fmt(f),
            Self::HostUid(uid) => write!(f, "{SCHEME}{uid}"),
        }
    }
}

impl MachineProviderId {
    /// The ID of a machine on a host. `None` when the host is in another namespace: such a machine has no ID.
    #[must_use]
    pub fn of(machine: &MachineKey, host: &HostKey) -> Option<Self> {
        (machine.namespace() == host.namespace())
            .then(|| Self::new(machine.namespace().clone(), host.name().clone(), machine.name().clone()))
    }

    /// The ID of a machine on a host, or on a claimed host, in the same namespace.
    #[must_use]
    pub const fn new(namespace: Namespace, host: ObjectName, machine: ObjectName) -> Self {
        Self {
            namespace,
            host,
            machine,
        }
    }

    /// The namespace of host and machine.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The host's name, or its claim's.
    #[must_use]
    pub const fn host(&self) -> &ObjectName {
        &self.host
    }

    /// The machine's name.
    #[must_use]
    pub const fn machine(&self) -> &ObjectName {
        &self.machine
    }

    /// Compares a Node's provider ID with this machine. `host_uid` is the current UID of the machine's host.
    #[must_use]
    pub fn compare(&self, node_provider_id: &str, host_uid: Option<&Uid>) -> NodeRelation {
        match ProviderId::parse(node_provider_id) {
            Err(ProviderIdError::Empty) => NodeRelation::Unset,
            Err(_) => NodeRelation::Foreign,
            Ok(ProviderId::Machine(id)) if id == *self => NodeRelation::Own,
            Ok(ProviderId::Machine(id)) if id.namespace == self.namespace && id.host == self.host => {
                NodeRelation::SameHost
            }
            // differs (`provider-id-uid`): the Go manager rejects the old form, which older templates still write.
            Ok(ProviderId::HostUid(uid)) if Some(&uid) == host_uid => NodeRelation::OwnByHostUid,
            Ok(ProviderId::Machine(_) | ProviderId::HostUid(_)) => NodeRelation::OtherHost,
        }
    }
}

impl fmt::Display for MachineProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}/{}", self.namespace, self.host, self.machine)
    }
}

/// How a Node's provider ID relates to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRelation {
    /// The Node has none yet.
    Unset,
    /// It is this machine's.
    Own,
    /// It names this machine's host in the old form: valid only for adopting the Node the first time.
    OwnByHostUid,
    /// It names another machine on the same host: one of the two is out of date.
    SameHost,
    /// It names a machine on another host.
    OtherHost,
    /// It is another provider's, or malformed.
    Foreign,
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "c0ffee00-1111-4222-8333-444455556666";

    fn machine(text: &str) -> MachineProviderId {
        match ProviderId::parse(text).unwrap() {
            ProviderId::Machine(id) => id,
            other @ ProviderId::HostUid(_) => panic!("not a machine's: {other}"),
        }
    }

    #[test]
    fn machine_form_is_namespace_host_and_machine() {
        let id = machine("metal3://metal/h.example.com/m.1");
        assert_eq!(
            (id.namespace().as_str(), id.host().as_str(), id.machine().as_str()),
            ("metal", "h.example.com", "m.1")
        );
    }

    #[test]
    fn parsed_id_prints_as_the_same_text() {
        for text in [
            "metal3://metal/h.example.com/m.1",
            "metal3://c0ffee00-1111-4222-8333-444455556666",
        ] {
            assert_eq!(ProviderId::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn machine_and_host_of_one_namespace_give_an_id() {
        let of = |machine, host| {
            let machine = MachineKey::parse(machine).unwrap();
            MachineProviderId::of(&machine, &HostKey::parse(host).unwrap()).map(|id| id.to_string())
        };
        assert_eq!(
            of("metal/m-0", "metal/rack1"),
            Some("metal3://metal/rack1/m-0".to_owned())
        );
        assert_eq!(of("metal/m-0", "other/rack1"), None);
    }

    #[test]
    fn malformed_text_is_rejected_with_a_reason() {
        let name = |part, error| ProviderIdError::Name { part, error };
        let long = format!("metal3://{}", "a".repeat(504));
        let rows = [
            ("", ProviderIdError::Empty),
            (&long, ProviderIdError::TooLong { length: 513 }),
            ("aws:///eu/i-1", ProviderIdError::Foreign),
            ("METAL3://metal/h/m", ProviderIdError::Foreign),
            ("metal3:/metal/h/m", ProviderIdError::Foreign),
            ("metal3://", ProviderIdError::Uid),
            ("metal3://metal/h", ProviderIdError::Shape),
            ("metal3://metal/h/m/", ProviderIdError::Shape),
            ("metal3:///h/m", name("namespace", NameError::Empty)),
            (
                "metal3://metal/H/m",
                name(
                    "host",
                    NameError::Character {
                        character: 'H',
                        dots: true,
                    },
                ),
            ),
            ("metal3://metal/h/-m", name("machine", NameError::Edge)),
        ];
        for (text, error) in rows {
            assert_eq!(ProviderId::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn node_relation_depends_on_its_provider_id() {
        let own = machine("metal3://metal/rack1/m-0");
        let uid = Uid::parse(UID).unwrap();
        let rows = [
            ("", NodeRelation::Unset),
            ("metal3://metal/rack1/m-0", NodeRelation::Own),
            ("metal3://metal/rack1/m-1", NodeRelation::SameHost),
            ("metal3://metal/rack10/m-0", NodeRelation::OtherHost),
            ("metal3://other/rack1/m-0", NodeRelation::OtherHost),
            (
                "metal3://c0ffee00-1111-4222-8333-444455556666",
                NodeRelation::OwnByHostUid,
            ),
            ("metal3://c0ffee00-0000-0000-0000-000000000000", NodeRelation::OtherHost),
            ("byoh://host/x", NodeRelation::Foreign),
            ("metal3://a/b", NodeRelation::Foreign),
        ];
        for (text, relation) in rows {
            assert_eq!(own.compare(text, Some(&uid)), relation, "{text:?}");
        }
    }

    #[test]
    fn host_uid_form_matches_nothing_when_the_uid_is_unknown() {
        let own = machine("metal3://metal/rack1/m-0");
        assert_eq!(own.compare(&format!("metal3://{UID}"), None), NodeRelation::OtherHost);
    }
}
