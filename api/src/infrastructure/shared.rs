//! Types that both versions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an image's digest comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumType {
    /// Not set. Only the Go manager writes this, into `v1beta1`.
    #[default]
    #[serde(rename = "")]
    #[schemars(skip)]
    Unset,
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl ChecksumType {
    /// The JSON value; empty when not set.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
}

/// Format of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFormat {
    /// Not set. Only the Go manager writes this, into `v1beta1`.
    #[default]
    #[serde(rename = "")]
    #[schemars(skip)]
    Unset,
    /// Plain bytes of a disk.
    Raw,
    /// QEMU copy on write.
    Qcow2,
    /// VirtualBox disk.
    Vdi,
    /// VMware disk.
    Vmdk,
    /// An ISO image that the host boots and runs from.
    LiveIso,
}

impl DiskFormat {
    /// The JSON value; empty when not set.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Vdi => "vdi",
            Self::Vmdk => "vmdk",
            Self::LiveIso => "live-iso",
        }
    }
}

/// What happens to the disks of a host before it is used and after it is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CleaningMode {
    /// Partition tables and other metadata are wiped.
    #[default]
    Metadata,
    /// Nothing is wiped.
    Disabled,
}

/// The object whose name, label or annotation is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceObject {
    /// The Machine of Cluster API.
    #[default]
    Machine,
    /// The Metal3Machine.
    Metal3Machine,
    /// The BareMetalHost.
    BareMetalHost,
}

/// Type of a network interface, as cloud-init's network data names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EthernetType {
    /// Bridge.
    Bridge,
    /// Distributed virtual switch.
    Dvs,
    /// Hardware virtual Ethernet bridge.
    HwVeb,
    /// Hyper-V.
    Hyperv,
    /// Open vSwitch.
    Ovs,
    /// Tap device.
    Tap,
    /// Interface in user space.
    Vhostuser,
    /// Virtual interface.
    Vif,
    /// Physical interface: the usual one on bare metal.
    #[default]
    Phy,
}

/// How a bond spreads traffic over its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondMode {
    /// Round robin.
    #[default]
    BalanceRr,
    /// One link at a time.
    ActiveBackup,
    /// By a hash of each packet.
    BalanceXor,
    /// Everything on every link.
    Broadcast,
    /// Outgoing traffic by load.
    BalanceTlb,
    /// Outgoing and incoming traffic by load.
    BalanceAlb,
    /// Link aggregation with LACP.
    #[serde(rename = "802.3ad")]
    Lacp,
}

/// What a bond hashes to choose a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum BondHashPolicy {
    /// Not set. Only the Go manager writes this, into `v1beta1`.
    #[default]
    #[serde(rename = "")]
    #[schemars(skip)]
    Unset,
    /// Hardware addresses.
    #[serde(rename = "layer2")]
    Layer2,
    /// Addresses and ports.
    #[serde(rename = "layer3+4")]
    Layer3And4,
    /// Hardware and network addresses.
    #[serde(rename = "layer2+3")]
    Layer2And3,
}

/// One address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineAddress {
    /// What kind of address it is.
    #[serde(rename = "type")]
    pub type_: AddressType,
    /// The address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

/// Kind of a machine's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AddressType {
    /// Host name.
    Hostname,
    /// Address reachable from outside.
    ExternalIP,
    /// Address inside the cluster's network.
    #[default]
    InternalIP,
    /// Name resolvable from outside.
    ExternalDNS,
    /// Name resolvable inside the cluster's network.
    InternalDNS,
}
