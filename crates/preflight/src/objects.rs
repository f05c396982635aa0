//! The objects that are read, by kind.

use std::collections::BTreeMap;

use metal3_api::cluster::{IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta1;
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
use serde_json::Value;

use crate::finding::NotRead;

/// A kind to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindName {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name in URLs.
    pub plural: &'static str,
}

impl KindName {
    /// The name of a kind.
    #[must_use]
    pub const fn of<K: Kind>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
        }
    }

    /// The resource as kubectl names it: `baremetalhosts.metal3.io`.
    #[must_use]
    pub fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// Each kind with a rule. Data templates are read as `v1beta1`, which shows `templateReference`, and as `v1beta2`; a Go
/// manager up to 1.12 serves only the first. Of the Machines of Cluster API only the names are used.
pub const KINDS: &[KindName] = &[
    KindName::of::<BareMetalHost>(),
    KindName::of::<HostFirmwareSettings>(),
    KindName::of::<HostFirmwareComponents>(),
    KindName::of::<HostUpdatePolicy>(),
    KindName::of::<DataImage>(),
    KindName::of::<BMCEventSubscription>(),
    KindName::of::<PreprovisioningImage>(),
    KindName::of::<HostClaim>(),
    KindName::of::<HostDeployPolicy>(),
    KindName::of::<HostNetworkAttachment>(),
    KindName::of::<BareMetalSwitch>(),
    KindName::of::<HardwareData>(),
    KindName::of::<FirmwareSchema>(),
    KindName::of::<Metal3Cluster>(),
    KindName::of::<Metal3ClusterTemplate>(),
    KindName::of::<Metal3Machine>(),
    KindName::of::<Metal3MachineTemplate>(),
    KindName::of::<Metal3Data>(),
    KindName::of::<Metal3DataClaim>(),
    KindName::of::<Metal3DataTemplate>(),
    KindName::of::<v1beta1::Metal3DataTemplate>(),
    KindName::of::<Metal3Remediation>(),
    KindName::of::<Metal3RemediationTemplate>(),
    KindName::of::<IPPool>(),
    KindName::of::<IPClaim>(),
    KindName::of::<IPAddress>(),
    KindName::of::<IPAddressClaim>(),
    KindName::of::<Machine>(),
];

/// Objects as they are stored.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<KindName, Vec<Value>>);

impl Objects {
    /// Adds the objects of a kind.
    pub fn insert(&mut self, kind: KindName, objects: Vec<Value>) {
        self.0.insert(kind, objects);
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = BareMetalHost> {
        self.of::<BareMetalHost>().map(|(_, host)| host)
    }

    /// The documents of a kind.
    pub(crate) fn documents<K: Kind>(&self) -> &[Value] {
        self.0.get(&KindName::of::<K>()).map_or(&[], Vec::as_slice)
    }

    /// The objects of a kind that can be decoded, each with its name for people.
    pub(crate) fn of<K: Kind>(&self) -> impl Iterator<Item = (String, K)> {
        let decoded = self.documents::<K>().iter().map(|document| {
            let object = serde_json::from_value(document.clone()).ok()?;
            Some((name::<K>(document), object))
        });
        decoded.flatten()
    }

    /// The objects of a kind that cannot be decoded.
    pub(crate) fn not_decoded<K: Kind>(&self) -> Vec<NotRead> {
        let wrong = |document: &Value| {
            let why = serde_json::from_value::<K>(document.clone()).err()?;
            Some(NotRead {
                what: name::<K>(document),
                why: format!("it cannot be decoded: {why}"),
            })
        };
        self.documents::<K>().iter().filter_map(wrong).collect()
    }

    /// All kinds with their documents.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&KindName, &Vec<Value>)> {
        self.0.iter()
    }
}

pub(crate) fn name<K: Kind>(document: &Value) -> String {
    named(K::KIND, document)
}

/// The name of an object for people: `KIND NAMESPACE/NAME`.
#[must_use]
pub fn named(kind: &str, document: &Value) -> String {
    let member = |member: &str| document.get("metadata").and_then(|meta| meta.get(member));
    let text = |name: &str| member(name).and_then(Value::as_str).unwrap_or_default();
    format!("{kind} {}/{}", text("namespace"), text("name"))
}
