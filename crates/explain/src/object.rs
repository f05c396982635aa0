//! Names of objects, and the kinds that an explanation knows.

use std::fmt;

use metal3_api::cluster::{Cluster, IPAddressClaim, Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3Remediation,
};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use serde::Serialize;

/// A kind with the version that is read. The version and plural of other providers' kinds are not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
    /// Short names for `kubectl`.
    pub short: &'static [&'static str],
}

const fn known<K: Kind>(short: &'static [&'static str]) -> KnownKind {
    KnownKind {
        group: K::GROUP,
        version: K::VERSION,
        kind: K::KIND,
        plural: K::PLURAL,
        short,
    }
}

/// The kinds whose content is understood.
pub const KINDS: &[KnownKind] = &[
    known::<Cluster>(&["cl"]),
    known::<Machine>(&["ma"]),
    known::<Metal3Cluster>(&["m3c", "m3cluster"]),
    known::<Metal3Machine>(&["m3m", "m3machine"]),
    known::<Metal3Data>(&["m3d"]),
    known::<Metal3DataClaim>(&["m3dc"]),
    known::<Metal3DataTemplate>(&["m3dt"]),
    known::<Metal3Remediation>(&["m3r", "m3remediation"]),
    known::<IPPool>(&["ipp"]),
    known::<IPClaim>(&["ipc"]),
    known::<IPAddressClaim>(&[]),
    known::<BareMetalHost>(&["bmh", "bmhost", "host"]),
];

/// Kinds that are listed, and whose own waits no walk explains.
const LISTED: &[KnownKind] = &[
    known::<IPAddress>(&[]),
    known::<HardwareData>(&[]),
    known::<MachineSet>(&[]),
    known::<MachineDeployment>(&[]),
];

/// A Secret, of which only the existence matters.
pub const SECRET: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    short: &[],
};

/// The known kind that a user names by kind, plural, singular or short name, in any case, with or without its group.
#[must_use]
pub fn kind_named(word: &str) -> Option<&'static KnownKind> {
    let word = word.to_ascii_lowercase();
    let (name, group) = match word.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (word.as_str(), None),
    };
    KINDS.iter().find(|known| {
        let is_name = known.kind.to_ascii_lowercase() == name || known.plural == name || known.short.contains(&name);
        is_name && group.is_none_or(|group| group == known.group)
    })
}

/// An object of the namespace that is explained.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectId {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// An object of a kind of the API.
    #[must_use]
    pub fn of<K: Kind>(name: &str) -> Self {
        Self::foreign(K::GROUP, K::KIND, name)
    }

    /// An object of any kind.
    #[must_use]
    pub fn foreign(group: &str, kind: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A Secret.
    #[must_use]
    pub fn secret(name: &str) -> Self {
        Self::foreign(SECRET.group, SECRET.kind, name)
    }

    /// Whether it is of this kind.
    #[must_use]
    pub fn is<K: Kind>(&self) -> bool {
        self.group == K::GROUP && self.kind == K::KIND
    }

    /// Its kind, if the content is understood.
    #[must_use]
    pub fn known(&self) -> Option<&'static KnownKind> {
        KINDS
            .iter()
            .chain([&SECRET])
            .find(|known| known.group == self.group && known.kind == self.kind)
    }

    /// Its kind, if version and plural are known without discovery.
    #[must_use]
    pub fn served(&self) -> Option<&'static KnownKind> {
        let is_it = |known: &&KnownKind| known.group == self.group && known.kind == self.kind;
        self.known().or_else(|| LISTED.iter().find(is_it))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_found_by_each_of_its_names() {
        for (word, kind) in [
            ("BareMetalHost", Some("BareMetalHost")),
            ("bmh", Some("BareMetalHost")),
            ("baremetalhosts.metal3.io", Some("BareMetalHost")),
            ("metal3machines", Some("Metal3Machine")),
            ("ipclaim", Some("IPClaim")),
            ("machine.cluster.x-k8s.io", Some("Machine")),
            ("machine.metal3.io", None),
            ("pod", None),
        ] {
            assert_eq!(kind_named(word).map(|known| known.kind), kind, "{word}");
        }
    }
}
