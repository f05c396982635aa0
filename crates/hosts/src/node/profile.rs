//! Hardware profiles: named sets of root device hints, kept for hosts that name one.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareProfile, RootDeviceHints};

use super::Refusal;

/// The profile of the host: the one in force, else the one asked for, else the one that suits its BMC. Once it is in
/// force it stays.
///
/// # Errors
/// When the name is that of no profile.
pub fn choose(host: &BareMetalHost) -> Result<HardwareProfile, Refusal> {
    host.hardware_profile().map_err(|name| {
        let in_force = host.status.hardware_profile.as_deref() == Some(name.as_str());
        Refusal::Profile {
            field: if in_force {
                "status.hardwareProfile"
            } else {
                "spec.hardwareProfile"
            },
            name,
        }
    })
}

/// Which disk a deployment goes to: the hints of the host, else those of its profile. `None`: the host makes a logical
/// disk for it.
///
/// # Errors
/// When the hints of a profile are needed and there is none of that name.
pub fn root_device(host: &BareMetalHost) -> Result<Option<RootDeviceHints>, Refusal> {
    let made = host
        .spec
        .raid
        .iter()
        .flat_map(|raid| raid.software_raid_volumes.iter().flatten())
        .any(|volume| volume.root_volume == Some(true));
    match &host.spec.root_device_hints {
        _ if made => Ok(None),
        Some(hints) => Ok(Some(hints.clone())),
        None => choose(host).map(|profile| Some(profile.root_device())),
    }
}
