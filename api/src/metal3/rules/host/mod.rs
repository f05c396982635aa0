//! BareMetalHost: a supported controller, compatible disks and images, and immutable members.
//!
//! A row about the controller applies only when the address is valid; another row reports an invalid address. Rows
//! about the spec accept an update that does not change the spec. Deleting a host is never rejected.

mod annotations;
mod bmc;
mod changes;
mod cleaning;
mod raid;
mod spec;
mod unverified;

use super::{check_image_checksum, check_image_url, check_reboot_annotations};
use crate::metal3::v1alpha1::BareMetalHost;
use crate::rules::{AdmissionRules, Rule, WriteRequest, images};

type Host<'a> = WriteRequest<'a, BareMetalHost>;

impl AdmissionRules for BareMetalHost {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec(
            "bmc-address-readable",
            "`spec.bmc.address`, if given, is an address with a known scheme and a valid host.",
            bmc::address_is_readable,
        ),
        Rule::on_write(
            "boot-mac-given",
            "`spec.bootMACAddress` is given when the controller needs it (`libvirt`) or the host is not \
                inspected. An update that changes neither the spec nor inspection is not checked.",
            bmc::boot_mac_is_given,
        )
        .differing("unchanged-spec"),
        Rule::on_spec(
            "boot-mac-readable",
            "`spec.bootMACAddress` is a MAC address of 6, 8 or 20 octets.",
            bmc::boot_mac_is_readable,
        ),
        Rule::on_spec(
            "secure-boot-supported",
            "The boot mode `UEFISecureBoot` requires a controller that supports secure boot.",
            bmc::secure_boot_is_supported,
        ),
        Rule::on_spec(
            "raid-supported",
            "Hardware RAID requires a controller that supports it.",
            bmc::raid_is_supported,
        ),
        Rule::on_spec(
            "fast-inspection-supported",
            "The inspection mode `fast` requires a controller that supports out-of-band inspection.",
            bmc::fast_inspection_is_supported,
        ),
        Rule::on_spec(
            "network-interfaces-unserved",
            "A warning is returned for `spec.networkInterfaces`: no controller of this program connects them.",
            spec::network_interfaces_are_unserved,
        )
        .differing("kind-unserved"),
        Rule::on_spec(
            "firmware-unset",
            "`spec.firmware` is not set; HostFirmwareSettings replaces it.",
            spec::firmware_is_unset,
        ),
        Rule::on_spec(
            "secret-in-own-namespace",
            "References to Secrets name the namespace of the host or none.",
            spec::secrets_are_in_own_namespace,
        ),
        Rule::on_spec(
            "raid-of-one-kind",
            "Hardware and software RAID volumes are mutually exclusive.",
            raid::volumes_are_of_one_kind,
        ),
        Rule::on_spec(
            "raid-disks-with-controller",
            "A hardware RAID volume that names its disks names the controller they are on.",
            raid::disks_have_a_controller,
        ),
        Rule::on_spec(
            "raid-disk-count",
            "A hardware RAID volume that names its disks has as many as `numberOfPhysicalDisks` says.",
            raid::disk_count_matches,
        ),
        Rule::on_spec(
            "raid-one-root-volume",
            "At most one software RAID volume is the root volume.",
            raid::root_volume_is_one,
        ),
        Rule::on_spec(
            "raid-root-volume-or-hints",
            "A root volume and root device hints are mutually exclusive.",
            raid::root_volume_excludes_hints,
        ),
        Rule::on_spec(
            "raid-root-volume-mirrored",
            "The root volume is of level 1, so that the host boots after a disk is lost.",
            raid::root_volume_is_mirrored,
        ),
        Rule::on_spec(
            "kept-disk-named",
            "Each disk in `spec.cleaning.keepDisks` has a serial number or a world wide name, without operators of Ironic.",
            cleaning::kept_disks_are_named,
        )
        .differing("host-cleaning"),
        Rule::on_spec(
            "kept-disk-root-device",
            "A host that keeps disks has root device hints.",
            cleaning::image_has_a_disk,
        )
        .differing("host-cleaning"),
        Rule::on_spec(
            "kept-disk-without-image",
            "A disk that is kept is not the one of the root device hints.",
            cleaning::image_has_another_disk,
        )
        .differing("host-cleaning"),
        Rule::on_spec(
            "kept-disk-without-raid",
            "A host that keeps disks has no RAID volumes.",
            cleaning::kept_disks_have_no_volumes,
        )
        .differing("host-cleaning"),
        Rule::on_write(
            "name-characters",
            "The name of a host has only letters, digits, `.`, `_` and `-`.",
            spec::name_has_known_characters,
        ),
        Rule::on_write(
            "name-no-uuid",
            "The name of a host is not a UUID, which Ironic would read as the UUID of a node.",
            spec::name_is_no_uuid,
        ),
        Rule::on_spec(
            "root-device-path",
            "The device name in `spec.rootDeviceHints` is directly below `/dev/` or `/dev/disk/by-path/`.",
            spec::root_device_is_a_path,
        ),
        Rule::on_spec(
            "image-url-fetchable",
            "The image has an absolute URL with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
            |host, findings| check_image_url(host.new.spec.image.as_ref(), findings),
        ),
        Rule::on_spec(
            "image-checksum-fits",
            "The image has a checksum unless it is a `live-iso` or comes from `oci://`, where it has none.",
            |host, findings| check_image_checksum(host.new.spec.image.as_ref(), findings),
        ),
        Rule::on_spec(images::STRONG, images::STRONG_MEANS, unverified::checksum_is_strong).differing(images::DIFFERS),
        Rule::on_spec(images::VERIFIED, images::VERIFIED_MEANS, unverified::image_is_verified)
            .differing(images::DIFFERS),
        Rule::on_spec(
            "certificate-verified",
            "A warning is returned for `spec.bmc.disableCertificateVerification`.",
            unverified::certificate_is_verified,
        )
        .differing("host-unverified-warned"),
        Rule::on_write(
            "status-readable",
            "The annotation `baremetalhost.metal3.io/status` holds the JSON of a status, without unknown members.",
            annotations::saved_status_is_readable,
        ),
        Rule::on_write(
            "status-values-known",
            "The status in that annotation has a known `operationalStatus` and `errorType`.",
            annotations::saved_status_has_known_values,
        )
        .differing("saved-status-servicing"),
        Rule::on_write(
            "reboot-readable",
            "Reboot annotations are empty or JSON, with the mode `hard` or `soft` if they name one.",
            |host, findings| check_reboot_annotations(&host.new.metadata, findings),
        ),
        Rule::on_write(
            "inspect-known",
            "The annotation `inspect.metal3.io` is empty or `disabled`.",
            annotations::inspect_is_known,
        ),
        Rule::on_write(
            "details-without-inspection",
            "Hardware details are supplied only for a host that is not inspected.",
            annotations::details_require_disabled_inspection,
        ),
        Rule::on_write(
            "details-readable",
            "The annotation `inspect.metal3.io/hardwaredetails` holds JSON of hardware details, without unknown \
             members.",
            annotations::details_are_readable,
        ),
        Rule::on_write(
            "inspection-unambiguous",
            "The annotation `inspect.metal3.io` and `spec.inspectionMode` do not contradict each other.",
            annotations::inspection_is_unambiguous,
        ),
        Rule::on_spec(
            "power-off-possible",
            "A host that must not be powered off is `online`.",
            spec::power_off_is_possible,
        ),
        Rule::on_spec(
            "interface-identified",
            "Each network interface has a name or a MAC address.",
            spec::interfaces_are_identified,
        ),
        Rule::on_spec(
            "interface-identified-once",
            "No network interface has both a name and a MAC address.",
            spec::interfaces_are_identified_once,
        ),
        Rule::on_spec(
            "interface-unique",
            "Network interfaces are unique, compared without case.",
            spec::interfaces_are_unique,
        ),
        Rule::on_update(
            "bmc-address-kept",
            "The address of the controller changes only while the host is registering or detached.",
            changes::bmc_address_is_kept,
        ),
        Rule::on_update(
            "boot-mac-kept",
            "`spec.bootMACAddress` does not change once set, except in case.",
            changes::boot_mac_is_kept,
        ),
        Rule::on_update(
            "adoption-when-available",
            "`spec.externallyProvisioned` is switched on only while the host is available.",
            changes::adoption_requires_available_host,
        ),
    ];
}
