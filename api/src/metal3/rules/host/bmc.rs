//! Rules about the management controller (BMC).

use metal3_domain::bmc::{BmcAddress, BmcAddressError, Kind};
use metal3_domain::mac::MacAddress;

use super::Host;
use crate::metal3::rules::text;
use crate::metal3::v1alpha1::{BareMetalHost, BootMode, InspectionMode};
use crate::rules::Findings;

/// The controller, if its address is valid.
fn controller(host: &BareMetalHost) -> Option<BmcAddress> {
    host.bmc_address().ok().flatten()
}

/// The address is not shown as a value: users write credentials into it. The messages leave them out.
pub(super) fn address_is_readable(host: &Host<'_>, findings: &mut Findings) {
    let Err(error) = host.new.bmc_address() else { return };
    let (problem, cure) = match &error {
        BmcAddressError::UnknownType { .. } => {
            let schemes = Kind::ALL.map(|kind| kind.profile().scheme).join(", ");
            (error.to_string(), format!("use one of the schemes {schemes}"))
        }
        BmcAddressError::Malformed { source, .. } => (
            format!("failed to parse BMC address information: {error}: {source}"),
            "write a URL such as redfish://192.0.2.1/redfish/v1/Systems/1".to_owned(),
        ),
        BmcAddressError::Missing | BmcAddressError::Host { .. } => (
            format!("failed to parse BMC address information: {error}"),
            "write an IP address or a DNS name as the host".to_owned(),
        ),
    };
    findings.unreadable("spec.bmc.address", problem, cure);
}

pub(super) fn boot_mac_is_given(host: &Host<'_>, findings: &mut Findings) {
    let relevant = |host: &BareMetalHost| (host.spec.clone(), host.inspection_disabled());
    if host.old.is_some_and(|old| relevant(old) == relevant(host.new)) {
        return;
    }
    let Some(controller) = controller(host.new) else {
        return;
    };
    let needed = controller.profile().needs_mac || host.new.inspection_disabled();
    if needed && text(host.new.spec.boot_mac_address.as_ref()).is_empty() {
        findings.required(
            "spec.bootMACAddress",
            format!("BMC driver {} requires a BootMACAddress value", controller.type_name()),
            "write the MAC address of the card that boots from the network",
        );
    }
}

pub(super) fn boot_mac_is_readable(host: &Host<'_>, findings: &mut Findings) {
    let mac = text(host.new.spec.boot_mac_address.as_ref());
    if controller(host.new).is_some() && !mac.is_empty() && MacAddress::parse(mac).is_err() {
        findings.invalid(
            "spec.bootMACAddress",
            mac,
            "is no MAC address",
            "write pairs of hexadecimal digits, as in 52:54:00:aa:bb:01",
        );
    }
}

pub(super) fn secure_boot_is_supported(host: &Host<'_>, findings: &mut Findings) {
    let Some(controller) = controller(host.new) else { return };
    if host.new.boot_mode() == BootMode::UefiSecureBoot && !controller.profile().secure_boot {
        findings.forbidden(
            "spec.bootMode",
            format!("BMC driver {} does not support secure boot", controller.type_name()),
            "use UEFI or legacy, or address the controller by a Redfish scheme",
        );
    }
}

pub(super) fn raid_is_supported(host: &Host<'_>, findings: &mut Findings) {
    let Some(controller) = controller(host.new) else { return };
    let raid = host.new.spec.raid.as_ref();
    let volumes = raid.and_then(|raid| raid.hardware_raid_volumes.as_ref());
    if volumes.is_some_and(|volumes| !volumes.is_empty()) && !controller.profile().supports_raid() {
        findings.forbidden(
            "spec.raid.hardwareRAIDVolumes",
            format!(
                "BMC driver {} does not support configuring RAID",
                controller.type_name()
            ),
            "use software RAID volumes, or address the controller by a Redfish scheme",
        );
    }
}

pub(super) fn fast_inspection_is_supported(host: &Host<'_>, findings: &mut Findings) {
    let Some(controller) = controller(host.new) else { return };
    let fast = host.new.spec.inspection_mode == Some(InspectionMode::Fast);
    if fast && !controller.profile().supports_fast_inspection() {
        findings.forbidden(
            "spec.inspectionMode",
            format!(
                "BMC driver {} does not support fast (out-of-band) inspection",
                controller.type_name()
            ),
            "use agent or disabled, or address the controller by a Redfish scheme",
        );
    }
}
