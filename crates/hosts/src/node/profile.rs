//! Hardware profiles: named sets of root device hints.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareProfile, RootDeviceHints};

use super::invalid_host::InvalidHost;

/// The profile of the host: from its status, else its spec, else by its BMC. It never changes once it is in the status.
///
/// # Errors
/// When the profile does not exist.
pub fn choose(host: &BareMetalHost) -> Result<HardwareProfile, InvalidHost> {
    host.hardware_profile().map_err(|name| {
        let in_force = host.status.hardware_profile.as_deref() == Some(name.as_str());
        InvalidHost::Profile {
            field: if in_force {
                "status.hardwareProfile"
            } else {
                "spec.hardwareProfile"
            },
            name,
        }
    })
}

/// The root device hints of a deployment: from the host, else from its profile. `None`: the host defines a software
/// RAID root volume.
///
/// # Errors
/// When the profile is needed and does not exist.
pub fn root_device(host: &BareMetalHost) -> Result<Option<RootDeviceHints>, InvalidHost> {
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
