//! The machine whose data are rendered: the objects that a template may read, and the index.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::SourceObject;
use metal3_api::infrastructure::v1beta2::{AnnotationSource, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;

use super::{DataError, Problem};

/// The inputs of a rendering, all in one namespace.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// Index of the machine in the template.
    pub index: i32,
    /// The Machine of Cluster API.
    pub machine: &'a Machine,
    /// The Metal3Machine.
    pub metal3_machine: &'a Metal3Machine,
    /// The host of the machine.
    pub host: &'a BareMetalHost,
}

impl<'a> Subject<'a> {
    /// Name of one of the objects.
    #[must_use]
    pub fn name(&self, object: SourceObject) -> &'a str {
        name_of(self.metadata(object))
    }

    /// A label of one of the objects; empty when missing.
    #[must_use]
    pub fn label(&self, object: SourceObject, key: &str) -> &'a str {
        value(self.metadata(object).labels.as_ref(), key)
    }

    /// An annotation of one of the objects; empty when missing.
    #[must_use]
    pub fn annotation(&self, object: SourceObject, key: &str) -> &'a str {
        value(self.metadata(object).annotations.as_ref(), key)
    }

    /// An annotation that must exist.
    ///
    /// # Errors
    /// When it is missing or empty.
    pub fn required_annotation(&self, source: &AnnotationSource, field: &str) -> Result<&'a str, DataError> {
        let value = self.annotation(source.object, &source.annotation);
        if value.is_empty() {
            let object = format!("{} {}", kind(source.object), self.place(source.object));
            let annotation = source.annotation.clone();
            return Err(Problem::NoAnnotation { object, annotation }.of(field));
        }
        Ok(value)
    }

    /// The MAC address of an interface, from inspection. An interface with several addresses has several entries with
    /// the same MAC address.
    ///
    /// # Errors
    /// When the host is not inspected, or has no such interface with an address.
    pub fn interface_mac(&self, interface: &str, field: &str) -> Result<&'a str, DataError> {
        let mac = self.listed_mac(interface, field)?;
        if mac.is_empty() {
            let (host, interface) = (self.place(SourceObject::BareMetalHost), interface.to_owned());
            return Err(Problem::NoInterfaceMac { host, interface }.of(field));
        }
        Ok(mac)
    }

    /// The MAC address of an interface, from inspection; empty when the interface is listed without one.
    ///
    /// # Errors
    /// When the host is not inspected, or has no such interface.
    pub fn listed_mac(&self, interface: &str, field: &str) -> Result<&'a str, DataError> {
        let host = || self.place(SourceObject::BareMetalHost);
        let nics = self
            .host
            .status
            .hardware
            .as_ref()
            .map_or(&[][..], |hardware| &hardware.nics);
        if nics.is_empty() {
            return Err(Problem::NotInspected(host()).of(field));
        }
        let found = nics.iter().find(|nic| nic.name.as_deref() == Some(interface));
        if let Some(nic) = found {
            return Ok(nic.mac.as_deref().unwrap_or_default());
        }
        let mut known: Vec<&str> = nics.iter().filter_map(|nic| nic.name.as_deref()).collect();
        known.dedup();
        let (known, interface) = (known.join(", "), interface.to_owned());
        Err(Problem::NoInterface {
            host: host(),
            interface,
            known,
        }
        .of(field))
    }

    /// The boot MAC address of the host.
    ///
    /// # Errors
    /// When it is unset.
    pub fn boot_mac(&self, field: &str) -> Result<&'a str, DataError> {
        let stated = self.host.spec.boot_mac_address.as_deref().filter(|mac| !mac.is_empty());
        let host = || self.place(SourceObject::BareMetalHost);
        stated.ok_or_else(|| Problem::NoBootMac(host()).of(field))
    }

    /// Namespace, host and machine: the provider ID without its scheme.
    #[must_use]
    pub fn provider_id(&self) -> String {
        let (host, machine) = (SourceObject::BareMetalHost, SourceObject::Metal3Machine);
        format!("{}/{}/{}", self.namespace, self.name(host), self.name(machine))
    }

    fn place(&self, object: SourceObject) -> String {
        format!("{}/{}", self.namespace, self.name(object))
    }

    const fn metadata(&self, object: SourceObject) -> &'a ObjectMeta {
        match object {
            SourceObject::Machine => &self.machine.metadata,
            SourceObject::Metal3Machine => &self.metal3_machine.metadata,
            SourceObject::BareMetalHost => &self.host.metadata,
        }
    }
}

/// Name of an object; empty when it is not stored.
pub(crate) fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// Whether a reference is to this object, and not to an earlier one of its name.
pub(crate) fn is_uid_match(owner: &OwnerReference, found: &ObjectMeta) -> bool {
    owner.uid.is_empty() || found.uid.as_ref() == Some(&owner.uid)
}

fn value<'a>(map: Option<&'a BTreeMap<String, String>>, key: &str) -> &'a str {
    map.and_then(|map| map.get(key)).map_or("", String::as_str)
}

const fn kind(object: SourceObject) -> &'static str {
    match object {
        SourceObject::Machine => "Machine",
        SourceObject::Metal3Machine => "Metal3Machine",
        SourceObject::BareMetalHost => "BareMetalHost",
    }
}
