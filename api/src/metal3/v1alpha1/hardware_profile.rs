//! The sets of root device hints that have a name. They are kept for hosts that name one; new hosts write the hints.

use super::RootDeviceHints;

/// A set of root device hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HardwareProfile {
    /// The first SCSI disk.
    #[default]
    Unknown,
    /// The first virtio disk.
    Libvirt,
    /// The first disk of a Dell machine.
    Dell,
    /// The first RAID disk of a Dell machine.
    DellRaid,
    /// The second virtio disk.
    OpenStack,
    /// No hints: Ironic chooses.
    Empty,
}

impl HardwareProfile {
    /// Every profile.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Libvirt,
        Self::Dell,
        Self::DellRaid,
        Self::OpenStack,
        Self::Empty,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Libvirt => "libvirt",
            Self::Dell => "dell",
            Self::DellRaid => "dell-raid",
            Self::OpenStack => "openstack",
            Self::Empty => "empty",
        }
    }

    /// The profile of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// The hints.
    #[must_use]
    pub fn root_device(self) -> RootDeviceHints {
        let device = |path: &str| RootDeviceHints {
            device_name: Some(path.to_owned()),
            ..RootDeviceHints::default()
        };
        let hctl = |address: &str| RootDeviceHints {
            hctl: Some(address.to_owned()),
            ..RootDeviceHints::default()
        };
        match self {
            Self::Unknown => device("/dev/sda"),
            Self::Libvirt => device("/dev/vda"),
            Self::Dell => hctl("0:0:0:0"),
            Self::DellRaid => hctl("0:2:0:0"),
            Self::OpenStack => device("/dev/vdb"),
            Self::Empty => RootDeviceHints::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_names_its_disk() {
        let table = [
            ("unknown", Some("/dev/sda"), None),
            ("libvirt", Some("/dev/vda"), None),
            ("dell", None, Some("0:0:0:0")),
            ("dell-raid", None, Some("0:2:0:0")),
            ("openstack", Some("/dev/vdb"), None),
            ("empty", None, None),
        ];
        for (name, device, hctl) in table {
            let hints = HardwareProfile::of_name(name).unwrap().root_device();
            assert_eq!(
                (hints.device_name.as_deref(), hints.hctl.as_deref()),
                (device, hctl),
                "{name}"
            );
        }
        assert_eq!(HardwareProfile::of_name("antique"), None);
    }
}
