//! Immutable members. Either status counts, the stored or the sent one: a write of the spec carries the stored status.

use crate::metal3::rules::text;
use crate::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState};
use crate::rules::Findings;

fn address(host: &BareMetalHost) -> &str {
    host.spec.bmc.as_ref().map_or("", |bmc| &bmc.address)
}

pub(super) fn bmc_address_is_kept(old: &BareMetalHost, new: &BareMetalHost, findings: &mut Findings) {
    let free = |host: &BareMetalHost| {
        host.status.operational_status == OperationalStatus::Detached
            || host.status.provisioning.state == ProvisioningState::Registering
    };
    if !address(old).is_empty() && address(old) != address(new) && !free(old) && !free(new) {
        findings.forbidden(
            "spec.bmc.address",
            "BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached",
            "annotate the host with baremetalhost.metal3.io/detached, and change the address once it is detached",
        );
    }
}

pub(super) fn boot_mac_is_kept(old: &BareMetalHost, new: &BareMetalHost, findings: &mut Findings) {
    let mac = |host: &'_ BareMetalHost| text(host.spec.boot_mac_address.as_ref()).to_lowercase();
    if !mac(old).is_empty() && mac(old) != mac(new) {
        findings.forbidden(
            "spec.bootMACAddress",
            "bootMACAddress can not be changed once it is set",
            "delete the host and create it again",
        );
    }
}

pub(super) fn adoption_requires_available_host(old: &BareMetalHost, new: &BareMetalHost, findings: &mut Findings) {
    let wanted = |host: &BareMetalHost| host.spec.externally_provisioned == Some(true);
    let available = |host: &BareMetalHost| host.status.provisioning.state == ProvisioningState::Available;
    if !wanted(old) && wanted(new) && !available(old) && !available(new) {
        findings.forbidden(
            "spec.externallyProvisioned",
            format!(
                "externallyProvisioned can only be enabled when in Available state, currently in {}",
                old.status.provisioning.state
            ),
            "wait until the host is available, or set it when the host is created",
        );
    }
}
