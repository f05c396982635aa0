//! The profile of each address scheme: one row per kind of controller.

/// A kind of management controller, named by the scheme of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `ipmi`: plain IPMI, network boot.
    Ipmi,
    /// `libvirt`: IPMI emulated for a virtual machine.
    Libvirt,
    /// `redfish`: Redfish, network boot.
    Redfish,
    /// `ilo5-redfish`: HPE iLO 5 through Redfish, network boot.
    Ilo5Redfish,
    /// `idrac-redfish`: Dell iDRAC through Redfish, network boot.
    IdracRedfish,
    /// `redfish-virtualmedia`: Redfish, boot from virtual media.
    RedfishVirtualMedia,
    /// `ilo5-virtualmedia`: HPE iLO 5, boot from virtual media.
    Ilo5VirtualMedia,
    /// `idrac-virtualmedia`: Dell iDRAC, boot from virtual media.
    IdracVirtualMedia,
    /// `redfish-uefihttp`: Redfish, boot from a URL by the firmware.
    RedfishUefiHttp,
}

/// How a Redfish service is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// The scheme names none: HTTPS.
    Unstated,
    /// `+http`.
    Http,
    /// `+https`.
    Https,
}

impl Transport {
    /// The scheme of the controller's own URL.
    #[must_use]
    pub const fn url_scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Unstated | Self::Https => "https",
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Unstated => "",
            Self::Http => "+http",
            Self::Https => "+https",
        }
    }
}

/// The hardware interfaces of a node; `None` leaves the choice to Ironic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interfaces {
    /// `bios_interface`.
    pub bios: Option<&'static str>,
    /// `boot_interface`.
    pub boot: Option<&'static str>,
    /// `firmware_interface`.
    pub firmware: Option<&'static str>,
    /// `inspect_interface` for inspection out of band; `None` when the driver has none.
    pub inspect: Option<&'static str>,
    /// `management_interface`.
    pub management: Option<&'static str>,
    /// `power_interface`.
    pub power: Option<&'static str>,
    /// `raid_interface`.
    pub raid: Option<&'static str>,
    /// `vendor_interface`.
    pub vendor: Option<&'static str>,
}

impl Interfaces {
    /// Every interface by its short name, in alphabetical order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Option<&'static str>); 8] {
        [
            ("bios", self.bios),
            ("boot", self.boot),
            ("firmware", self.firmware),
            ("inspect", self.inspect),
            ("management", self.management),
            ("power", self.power),
            ("raid", self.raid),
            ("vendor", self.vendor),
        ]
    }
}

/// The properties of one kind of controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The scheme without transport.
    pub scheme: &'static str,
    /// Ironic's hardware type.
    pub driver: &'static str,
    /// Hardware interfaces to set on the node.
    pub interfaces: Interfaces,
    /// The boot MAC is required, because it cannot be discovered.
    pub needs_mac: bool,
    /// Secure boot is supported.
    pub secure_boot: bool,
    /// The ramdisk may be booted from an ISO, otherwise only from kernel and initial ramdisk.
    pub iso_preprovisioning_image: bool,
    /// Booting needs a provisioning network.
    pub requires_provisioning_network: bool,
}

impl Profile {
    /// Whether RAID can be configured.
    #[must_use]
    pub fn supports_raid(&self) -> bool {
        self.interfaces.raid != Some(NO_RAID)
    }

    /// Whether the host can be inspected out of band.
    #[must_use]
    pub const fn supports_fast_inspection(&self) -> bool {
        self.interfaces.inspect.is_some()
    }
}

const NO_RAID: &str = "no-raid";
const REDFISH: Option<&str> = Some("redfish");
const IDRAC_REDFISH: Option<&str> = Some("idrac-redfish");

const IPMI: Profile = Profile {
    scheme: "ipmi",
    driver: "ipmi",
    interfaces: Interfaces {
        bios: None,
        boot: Some("ipxe"),
        firmware: None,
        inspect: None,
        management: None,
        power: None,
        raid: Some(NO_RAID),
        vendor: None,
    },
    needs_mac: false,
    secure_boot: false,
    iso_preprovisioning_image: false,
    requires_provisioning_network: true,
};

const REDFISH_NETWORK_BOOT: Profile = Profile {
    scheme: "redfish",
    driver: "redfish",
    interfaces: Interfaces {
        firmware: REDFISH,
        inspect: REDFISH,
        raid: REDFISH,
        ..IPMI.interfaces
    },
    secure_boot: true,
    ..IPMI
};

const IDRAC_NETWORK_BOOT: Profile = Profile {
    scheme: "idrac-redfish",
    driver: "idrac",
    interfaces: Interfaces {
        bios: IDRAC_REDFISH,
        management: IDRAC_REDFISH,
        power: IDRAC_REDFISH,
        raid: IDRAC_REDFISH,
        vendor: IDRAC_REDFISH,
        ..REDFISH_NETWORK_BOOT.interfaces
    },
    ..REDFISH_NETWORK_BOOT
};

/// The same controller booting from an image that it mounts or downloads itself.
const fn booting_iso(base: Profile, scheme: &'static str, boot: &'static str) -> Profile {
    Profile {
        scheme,
        interfaces: Interfaces {
            boot: Some(boot),
            ..base.interfaces
        },
        iso_preprovisioning_image: true,
        requires_provisioning_network: false,
        ..base
    }
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Ipmi,
        Self::Libvirt,
        Self::Redfish,
        Self::Ilo5Redfish,
        Self::IdracRedfish,
        Self::RedfishVirtualMedia,
        Self::Ilo5VirtualMedia,
        Self::IdracVirtualMedia,
        Self::RedfishUefiHttp,
    ];

    /// The profile of this kind.
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::Ipmi => IPMI,
            Self::Libvirt => Profile {
                scheme: "libvirt",
                needs_mac: true,
                ..IPMI
            },
            Self::Redfish => REDFISH_NETWORK_BOOT,
            Self::Ilo5Redfish => Profile {
                scheme: "ilo5-redfish",
                ..REDFISH_NETWORK_BOOT
            },
            Self::IdracRedfish => IDRAC_NETWORK_BOOT,
            Self::RedfishVirtualMedia => {
                booting_iso(REDFISH_NETWORK_BOOT, "redfish-virtualmedia", "redfish-virtual-media")
            }
            Self::Ilo5VirtualMedia => booting_iso(REDFISH_NETWORK_BOOT, "ilo5-virtualmedia", "redfish-virtual-media"),
            Self::IdracVirtualMedia => {
                booting_iso(IDRAC_NETWORK_BOOT, "idrac-virtualmedia", "idrac-redfish-virtual-media")
            }
            Self::RedfishUefiHttp => booting_iso(REDFISH_NETWORK_BOOT, "redfish-uefihttp", "redfish-https"),
        }
    }

    /// Whether the controller uses IPMI; all others use Redfish.
    #[must_use]
    pub const fn is_ipmi(self) -> bool {
        matches!(self, Self::Ipmi | Self::Libvirt)
    }

    const fn transports(self) -> &'static [Transport] {
        if self.is_ipmi() {
            &[Transport::Unstated]
        } else {
            &[Transport::Unstated, Transport::Http, Transport::Https]
        }
    }

    /// Kind and transport of a scheme in lower case.
    pub(super) fn of_scheme(scheme: &str) -> Option<(Self, Transport)> {
        Self::ALL.into_iter().find_map(|kind| {
            let suffix = scheme.strip_prefix(kind.profile().scheme)?;
            let transport = kind
                .transports()
                .iter()
                .copied()
                .find(|transport| transport.suffix() == suffix)?;
            Some((kind, transport))
        })
    }

    /// The scheme of an address of this kind with this transport.
    pub(super) fn scheme_with(self, transport: Transport) -> String {
        format!("{}{}", self.profile().scheme, transport.suffix())
    }
}
