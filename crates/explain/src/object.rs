//! Names of objects, and the kinds that an explanation knows.

use std::fmt;

use metal3_api::cluster::names::{CONTROL_PLANE_GROUP, GROUP as CLUSTER_GROUP};
use metal3_api::cluster::{self, Cluster, IPAddressClaim, KubeadmControlPlane, Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3ClusterTemplate, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine,
    Metal3MachineTemplate, Metal3Remediation, Metal3RemediationTemplate,
};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{
    BMCEventSubscription, BareMetalHost, BareMetalSwitch, DataImage, FirmwareSchema, HardwareData, HostClaim,
    HostDeployPolicy, HostFirmwareComponents, HostFirmwareSettings, HostNetworkAttachment, HostUpdatePolicy,
    PreprovisioningImage,
};
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
    known::<Metal3MachineTemplate>(&["m3mt"]),
    known::<Metal3Remediation>(&["m3r", "m3remediation"]),
    known::<IPPool>(&["ipp"]),
    known::<IPClaim>(&["ipc"]),
    known::<IPAddress>(&["ipa"]),
    known::<IPAddressClaim>(&[]),
    known::<BareMetalHost>(&["bmh", "bmhost", "host"]),
    known::<HardwareData>(&["hd"]),
    known::<HostFirmwareSettings>(&["hfs"]),
    known::<HostFirmwareComponents>(&["hfc"]),
    known::<PreprovisioningImage>(&["ppimg"]),
    known::<DataImage>(&[]),
    known::<BMCEventSubscription>(&["bes", "bmcevent"]),
    known::<HostClaim>(&[]),
    known::<HostNetworkAttachment>(&[]),
    known::<BareMetalSwitch>(&["bms"]),
    known::<MachineDeployment>(&["md"]),
    known::<MachineSet>(&["ms"]),
    known::<KubeadmControlPlane>(&["kcp"]),
];

/// Kinds of this project that wait for nothing: they have neither conditions nor finalizers, and others read them.
pub const WITHOUT_WAITS: &[KnownKind] = &[
    known::<Metal3ClusterTemplate>(&[]),
    known::<Metal3RemediationTemplate>(&["m3rt"]),
    known::<FirmwareSchema>(&[]),
    known::<HostDeployPolicy>(&[]),
    known::<HostUpdatePolicy>(&[]),
];

/// Kinds that are listed, and whose own waits no walk explains.
pub(crate) const LISTED: &[KnownKind] = &[known::<cluster::IPAddress>(&[])];

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
    KINDS.iter().chain(WITHOUT_WAITS).find(|known| {
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

    /// Whether its kind is of a group that this project serves, so that the table has its reasons.
    #[must_use]
    pub fn is_of_this_project(&self) -> bool {
        self.known().is_some() && ![CLUSTER_GROUP, CONTROL_PLANE_GROUP].contains(&self.group.as_str())
    }

    /// Whether no controller of this project serves the kind.
    #[must_use]
    pub(crate) fn is_unserved(&self) -> bool {
        self.is::<HostNetworkAttachment>()
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
        self.known().or_else(|| LISTED.iter().chain(WITHOUT_WAITS).find(is_it))
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
    fn each_kind_of_this_project_is_explained_or_waits_for_nothing() {
        for definition in metal3_api::catalog::definitions() {
            let found = kind_named(&format!("{}.{}", definition.plural, definition.group));
            assert!(
                found.is_some(),
                "{}: add a walk, or a row to WITHOUT_WAITS",
                definition.kind
            );
        }
    }

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
