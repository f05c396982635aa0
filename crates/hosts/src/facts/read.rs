//! The reads that a decision may need.

use metal3_api::metal3::v1alpha1::BareMetalHost;

/// A read that a plan needs. Each is live, whatever a cache contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// In which of the configured Ironics the node is: by `status.provisioning.ID` and by name. The first: the others depend on it.
    Ironic,
    /// The node: by `status.provisioning.ID`, then `namespace~name`, plain name (`--adopt-plain-node-names`), boot MAC
    /// address. If any of these reads fails, the node stays unknown.
    Node,
    /// The DataImage of the host.
    DataImage,
    /// The virtual drive of the node. After [`Self::Node`]: the two are one view.
    Drive,
    /// The Secret with the BMC's credentials, with its values.
    Credentials,
    /// What the BMC answers to the login that Ironic has: a read of the boot device, for which Ironic logs in. No failure of it is
    /// a failure of Ironic.
    Login,
    /// The Secret with user data.
    UserData,
    /// The Secret with network data.
    NetworkData,
    /// The Secret with meta data.
    MetaData,
    /// The Secret with the network data of the agent.
    AgentNetwork,
    /// The Secret with the login to the registry of the image.
    PullSecret,
    /// The HardwareData.
    HardwareData,
    /// The ports of the node.
    Ports,
    /// The result of the inspection.
    Inventory,
    /// Ironic's validation of the node for a deployment.
    Validation,
    /// The history of the node.
    History,
    /// The HostFirmwareComponents of the host.
    FirmwareComponents,
    /// The firmware of the node.
    Versions,
    /// The same, for a report only: a failure is no failure of the host.
    ReportedVersions,
    /// The HostFirmwareSettings of the host.
    FirmwareSettings,
    /// The HostUpdatePolicy of the host.
    UpdatePolicy,
    /// The BIOS settings of the node.
    Bios,
    /// The same, for a report only: a failure is no failure of the host.
    ReportedBios,
    /// No read: requests a busy-host slot.
    Slot,
    /// The host. The last: a request to Ironic can be slow, and an edit during it must be seen.
    Host,
}

impl Read {
    /// The Secrets that a host may name.
    pub(crate) const SECRETS: [Self; 6] = [
        Self::Credentials,
        Self::UserData,
        Self::NetworkData,
        Self::MetaData,
        Self::AgentNetwork,
        Self::PullSecret,
    ];

    /// The name of a read from Ironic; `None` for one from the API server.
    pub(crate) const fn ironic_name(self) -> Option<&'static str> {
        match self {
            Self::Node => Some("read node"),
            Self::Ports => Some("list ports"),
            Self::Inventory => Some("read inventory"),
            Self::Validation => Some("validate node"),
            Self::History => Some("read history"),
            Self::Bios => Some("read BIOS settings"),
            Self::Versions => Some("read firmware versions"),
            Self::Drive => Some("read virtual drive"),
            Self::Ironic
            | Self::Host
            | Self::Login
            | Self::DataImage
            | Self::Credentials
            | Self::UserData
            | Self::NetworkData
            | Self::MetaData
            | Self::AgentNetwork
            | Self::PullSecret
            | Self::HardwareData
            | Self::FirmwareComponents
            | Self::ReportedVersions
            | Self::FirmwareSettings
            | Self::UpdatePolicy
            | Self::ReportedBios
            | Self::Slot => None,
        }
    }

    /// The name of the Secret, if the host names one.
    pub(crate) fn secret_name(self, host: &BareMetalHost) -> Option<&str> {
        let spec = &host.spec;
        let name = match self {
            Self::Credentials => spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str()),
            Self::UserData => spec.user_data.as_ref()?.name.as_deref(),
            Self::NetworkData => spec.network_data.as_ref()?.name.as_deref(),
            Self::MetaData => spec.meta_data.as_ref()?.name.as_deref(),
            Self::AgentNetwork => spec.preprovisioning_network_data_name.as_deref(),
            // With another image it has no effect.
            Self::PullSecret => {
                let image = spec.image.as_ref()?;
                image.fields().registry_image()?;
                image.oci_auth_secret_name.as_deref()
            }
            _ => None,
        };
        name.filter(|name| !name.is_empty())
    }
}
