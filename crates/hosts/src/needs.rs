//! The API permissions of the host controller. Roles are generated from this table.

use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use metal3_api::metal3::v1alpha1::{
    BMCEventSubscription, BareMetalHost, BareMetalSwitch, DataImage, FirmwareSchema, HardwareData, HostClaim,
    HostDeployPolicy, HostFirmwareComponents, HostFirmwareSettings, HostNetworkAttachment, HostUpdatePolicy,
    PreprovisioningImage,
};
use metal3_runtime::role;

use crate::ironic_resource::Ironic;

role! {
    /// Hosts and the objects that belong to them. Secrets are watched by metadata and read by name: BMC credentials and
    /// the data of the config drive. The restored status of a moved host names its former instance, which admission lets
    /// only those set who may restore. Orders to update the firmware
    /// are recorded in the status of HostFirmwareComponents, before they are sent.
    pub struct Hosts {
        BareMetalHost: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers, UpdateRestore;
        HardwareData: Get, List, Watch, Create, Patch;
        HostFirmwareComponents: Get, List, Watch, Patch, PatchStatus;
        HostFirmwareSettings: Get, List, Watch, Patch, PatchStatus;
        HostUpdatePolicy: Get, List, Watch, Patch;
        FirmwareSchema: Create;
        DataImage: Get, List, Watch, Patch, PatchStatus;
        PreprovisioningImage: Get, List, Watch, Create, Patch;
        Secret: Get, List, Watch, Patch;
        Event: Create, Patch;
    }
}

role! {
    /// Nothing is deleted. An API server with the admission plugin `OwnerReferencesPermissionEnforcement` lets only those change
    /// the owners of an object who may delete it: a host becomes the owner of the DataImage and of the firmware objects that a user
    /// made, and of the HardwareData of a former host of its name.
    pub struct OwnedByHosts {
        DataImage: Delete;
        HardwareData: Delete;
        HostFirmwareComponents: Delete;
        HostFirmwareSettings: Delete;
        HostUpdatePolicy: Delete;
    }
}

role! {
    /// Images of agents that are built for hosts: of a Secret with network data only the metadata is read.
    pub struct AgentImages {
        PreprovisioningImage: Get, List, Watch, Patch, PatchStatus;
    }
}

role! {
    /// Event subscriptions: the host is read before each request to its BMC, and the Secret with the HTTP headers by name.
    pub struct Subscriptions {
        BMCEventSubscription: Get, List, Watch, Patch, PatchStatus;
        BareMetalHost: Get;
        Secret: Get;
    }
}

role! {
    /// Images in the virtual drives of hosts: their owner, their finalizer, and why a deleted one stays. The controller of hosts
    /// inserts and ejects them.
    pub struct DataImages {
        DataImage: Get, List, Watch, Patch, PatchStatus;
        BareMetalHost: Get;
    }
}

role! {
    /// HostClaims, with `--hostclaims`: their Secrets are read by name, and copied to the namespaces of their hosts. No Secret is
    /// deleted: a copy is emptied, and goes with its host.
    pub struct Claims {
        HostClaim: Get, List, Watch, Patch, PatchStatus;
        HostDeployPolicy: Get, List, Watch;
        Namespace: Get, List, Watch;
        BareMetalHost: Get, Patch;
        HardwareData: Patch;
        Secret: Get, Create, Patch;
    }
}

role! {
    /// Switches, with `IRONIC_NETWORKING_ENABLED`: their logins are read by name, and written to two Secrets that exist.
    pub struct Switches {
        BareMetalSwitch: Get, List, Watch, PatchStatus;
        Secret: Get, List, Watch, Patch;
    }
}

role! {
    /// The `Ironic` resource that `IRONIC_NAME` names, and the Secrets that it names.
    pub struct IronicResource {
        Ironic: List, Watch;
        Secret: Get, List, Watch;
    }
}

role! {
    /// Kinds without a controller: they are reported at the start, and finalizers of the Go manager are removed from
    /// objects that are deleted.
    pub struct UnservedKinds {
        BareMetalHost: Get;
        BareMetalSwitch: List;
        Event: Create, Patch;
        HostClaim: List;
        HostDeployPolicy: List;
        HostNetworkAttachment: List;
        PreprovisioningImage: Get, List, Watch, Patch, PatchStatus;
    }
}
