//! What a host may ask for and this program does not do yet. It is refused by name, never passed over.

use metal3_api::metal3::v1alpha1::{BareMetalHost, Image, InspectionMode};
use thiserror::Error;

/// Something that is not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[error("{} is not supported yet: {}; {}", .0.field(), .0.what(), .0.cure())]
pub struct NotYet(pub Wish);

/// A wish that is not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// An image from a registry.
    OciImage,
    /// A deploy step in place of an image.
    CustomDeploy,
    /// Logical disks.
    Raid,
    /// Firmware settings in the host itself.
    Firmware,
    /// Asking the BMC for the hardware.
    FastInspection,
}

impl Wish {
    const fn field(self) -> &'static str {
        match self {
            Self::OciImage => "spec.image.url",
            Self::CustomDeploy => "spec.customDeploy",
            Self::Raid => "spec.raid",
            Self::Firmware => "spec.firmware",
            Self::FastInspection => "spec.inspectionMode",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::OciImage => "images from a registry (oci://)",
            Self::CustomDeploy => "deployments by a step of the agent",
            Self::Raid => "logical disks",
            Self::Firmware => "firmware settings",
            Self::FastInspection => "inspection through the BMC (fast)",
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Self::OciImage => "use an http or https URL with a checksum",
            Self::CustomDeploy => "remove it and set spec.image",
            Self::Raid => "set the disks up beforehand and remove it",
            Self::Firmware => "set it up beforehand and remove it",
            Self::FastInspection => "use agent or disabled",
        }
    }
}

impl NotYet {
    /// The field that asks for it.
    #[must_use]
    pub const fn field(self) -> &'static str {
        self.0.field()
    }
}

/// Everything a host asks for that is not built, in the order of [`Wish`].
#[must_use]
pub fn of(host: &BareMetalHost) -> Vec<NotYet> {
    let spec = &host.spec;
    // Volumes alone are a wish: a RAID object without any leaves the disks as they are.
    let raid = spec
        .raid
        .as_ref()
        .is_some_and(|raid| raid.hardware_raid_volumes.is_some() || raid.software_raid_volumes.is_some());
    let asked = [
        (Wish::OciImage, spec.image.as_ref().is_some_and(is_oci)),
        (
            Wish::CustomDeploy,
            spec.custom_deploy
                .as_ref()
                .is_some_and(|deploy| !deploy.method.is_empty()),
        ),
        (Wish::Raid, raid),
        (Wish::Firmware, spec.firmware.is_some()),
        (
            Wish::FastInspection,
            !host.inspection_disabled() && spec.inspection_mode == Some(InspectionMode::Fast),
        ),
    ];
    asked
        .into_iter()
        .filter_map(|(wish, asked)| asked.then_some(NotYet(wish)))
        .collect()
}

/// Whether the image comes from a registry.
pub(super) fn is_oci(image: &Image) -> bool {
    const SCHEME: &str = "oci://";
    image
        .url
        .get(..SCHEME.len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}
