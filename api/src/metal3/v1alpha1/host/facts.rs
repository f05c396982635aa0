//! Questions that several controllers and the admission rules share, answered from one host.
//!
//! Pure functions of one object, without clock, cluster or Ironic.

use metal3_domain::bmc::{BmcAddress, BmcAddressError};

use super::{BareMetalHost, BootMode, CleaningTime, InspectionMode};
use crate::metal3::names::{INSPECT_ANNOTATION, INSPECTION_DISABLED, PAUSED_ANNOTATION, STATUS_ANNOTATION};
use crate::metal3::v1alpha1::{HardwareProfile, NetworkInterface, ProvisioningState};

impl BareMetalHost {
    /// Value of an annotation.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(name).map(String::as_str)
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let labels = self.metadata.labels.as_ref()?;
        labels.get(name).map(String::as_str)
    }

    /// The management controller. `None`: there is no address.
    ///
    /// # Errors
    /// When the address is invalid or the controller type is not supported.
    pub fn bmc_address(&self) -> Result<Option<BmcAddress>, BmcAddressError> {
        match self.spec.bmc.as_ref().map(|bmc| bmc.address.as_str()) {
            None | Some("") => Ok(None),
            Some(address) => BmcAddress::parse(address).map(Some),
        }
    }

    /// Whether the host is only recorded: neither an address nor credentials are given.
    #[must_use]
    pub fn is_unmanaged(&self) -> bool {
        self.spec
            .bmc
            .as_ref()
            .is_none_or(|bmc| bmc.address.is_empty() && bmc.credentials_name.is_empty())
    }

    /// Whether the machine is cleaned before its first deployment only.
    #[must_use]
    pub fn is_cleaned_first(&self) -> bool {
        let cleaning = self.spec.cleaning.as_ref();
        cleaning.and_then(|cleaning| cleaning.when) == Some(CleaningTime::First)
    }

    /// Whether `spec.cleaning` says which disks, or which of their content, outlive a deployment.
    #[must_use]
    pub fn chooses_what_is_kept(&self) -> bool {
        let cleaning = self.spec.cleaning.as_ref();
        self.is_cleaned_first() || cleaning.is_some_and(|cleaning| !cleaning.keep_disks.is_empty())
    }

    /// Whether all work on the host stops.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.annotation(PAUSED_ANNOTATION).is_some()
    }

    /// The saved status to restore, if any.
    #[must_use]
    pub fn saved_status(&self) -> Option<&str> {
        self.annotation(STATUS_ANNOTATION)
    }

    /// Whether a saved status is restored into the host: it has none of its own.
    #[must_use]
    pub fn takes_saved_status(&self) -> bool {
        self.status.last_updated.is_none() || self.status.provisioning.state == ProvisioningState::None
    }

    /// Whether the host must not be inspected, by its spec or by an annotation.
    #[must_use]
    pub fn inspection_disabled(&self) -> bool {
        self.spec.inspection_mode == Some(InspectionMode::Disabled)
            || self.annotation(INSPECT_ANNOTATION) == Some(INSPECTION_DISABLED)
    }

    /// How the machine should boot.
    #[must_use]
    pub fn boot_mode(&self) -> BootMode {
        self.spec.boot_mode.unwrap_or_default()
    }

    /// The set of root device hints that applies: the one in force, else the requested one, else the one that fits
    /// the controller.
    ///
    /// # Errors
    /// The name, when no such set exists.
    pub fn hardware_profile(&self) -> Result<HardwareProfile, String> {
        let in_force = self.status.hardware_profile.as_deref();
        let named = [in_force, self.spec.hardware_profile.as_deref()];
        let by_address = || {
            let address = self.spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
            if address.starts_with("libvirt") {
                HardwareProfile::Libvirt
            } else {
                HardwareProfile::Unknown
            }
        };
        match named.into_iter().flatten().find(|name| !name.is_empty()) {
            Some(name) => HardwareProfile::of_name(name).ok_or_else(|| name.to_owned()),
            None => Ok(by_address()),
        }
    }

    /// The HostNetworkAttachments the host refers to: namespace, name, and the interface that does.
    pub fn network_attachments(&self) -> impl Iterator<Item = (&str, &str, &NetworkInterface)> {
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        self.spec.network_interfaces.iter().filter_map(move |interface| {
            let reference = interface.host_network_attachment.as_ref()?;
            let name = reference.name.as_deref().filter(|name| !name.is_empty())?;
            let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty());
            Some((namespace.unwrap_or(own), name, interface))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(annotations: Value, spec: Value) -> BareMetalHost {
        let metadata = json!({ "name": "node-0", "namespace": "metal", "annotations": annotations });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    #[test]
    fn host_with_neither_address_nor_credentials_is_unmanaged() {
        let bmc = |address: &str, credentials: &str| {
            let bmc = json!({ "address": address, "credentialsName": credentials });
            host(json!({}), json!({ "online": true, "bmc": bmc }))
        };
        assert!(host(json!({}), json!({ "online": true })).is_unmanaged());
        assert!(bmc("", "").is_unmanaged());
        assert!(!bmc("", "secret").is_unmanaged());
        assert!(!bmc("ipmi://192.0.2.1", "").is_unmanaged());
        assert_eq!(bmc("", "secret").bmc_address(), Ok(None));
        assert_eq!(
            bmc("ipmi://192.0.2.1", "").bmc_address().unwrap().unwrap().host(),
            "192.0.2.1"
        );
        assert!(bmc("carrier-pigeon://loft", "").bmc_address().is_err());
    }

    #[test]
    fn inspection_is_disabled_by_spec_or_by_annotation() {
        let none = json!({});
        assert!(!host(none.clone(), json!({ "online": true })).inspection_disabled());
        assert!(!host(none.clone(), json!({ "online": true, "inspectionMode": "fast" })).inspection_disabled());
        assert!(host(none, json!({ "online": true, "inspectionMode": "disabled" })).inspection_disabled());
        assert!(host(json!({ "inspect.metal3.io": "disabled" }), json!({ "online": true })).inspection_disabled());
        assert!(!host(json!({ "inspect.metal3.io": "" }), json!({ "online": true })).inspection_disabled());
    }

    #[test]
    fn annotations_pause_and_restore_whatever_their_value() {
        let plain = host(json!({}), json!({ "online": true }));
        assert!(!plain.is_paused() && plain.saved_status().is_none());
        let paused = host(
            json!({ "baremetalhost.metal3.io/paused": "" }),
            json!({ "online": true }),
        );
        assert!(paused.is_paused());
        let moved = host(
            json!({ "baremetalhost.metal3.io/status": "{}" }),
            json!({ "online": true }),
        );
        assert_eq!(moved.saved_status(), Some("{}"));
    }

    #[test]
    fn machine_boots_by_uefi_by_default() {
        assert_eq!(host(json!({}), json!({ "online": true })).boot_mode(), BootMode::Uefi);
        let legacy = host(json!({}), json!({ "online": true, "bootMode": "legacy" }));
        assert_eq!(legacy.boot_mode(), BootMode::Legacy);
    }

    #[test]
    fn profile_in_force_wins_over_the_one_asked_for_and_that_over_the_address() {
        let bmc = json!({ "address": "libvirt://192.0.2.1:6230", "credentialsName": "bmc" });
        let mut host = host(json!({}), json!({ "online": true, "bmc": bmc }));
        assert_eq!(host.hardware_profile(), Ok(HardwareProfile::Libvirt));
        host.spec.hardware_profile = Some("dell".to_owned());
        assert_eq!(host.hardware_profile(), Ok(HardwareProfile::Dell));
        host.status.hardware_profile = Some("empty".to_owned());
        assert_eq!(host.hardware_profile(), Ok(HardwareProfile::Empty));
        host.status.hardware_profile = Some("antique".to_owned());
        assert_eq!(host.hardware_profile(), Err("antique".to_owned()));
    }

    #[test]
    fn attachment_without_namespace_is_that_of_the_host() {
        let interfaces = json!([
            { "name": "eno1", "hostNetworkAttachment": { "name": "storage" } },
            { "name": "eno2", "hostNetworkAttachment": { "name": "storage", "namespace": "net" } },
            { "name": "eno3", "hostNetworkAttachment": { "name": "" } },
            { "name": "eno4" },
        ]);
        let host = host(json!({}), json!({ "online": true, "networkInterfaces": interfaces }));
        let found: Vec<_> = host
            .network_attachments()
            .map(|(namespace, name, interface)| (namespace, name, interface.name.as_deref().unwrap()))
            .collect();
        assert_eq!(found, [("metal", "storage", "eno1"), ("net", "storage", "eno2")]);
    }
}
