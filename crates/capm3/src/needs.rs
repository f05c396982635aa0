//! Permissions of the controllers. The roles are generated from this table.

use k8s_openapi::api::core::v1::{Event, Secret};
use metal3_api::cluster::{self, Cluster, IPAddressClaim, Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3MachineTemplate,
    Metal3Remediation,
};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::role;

role! {
    /// Clusters and machines. Secrets: get for kubeconfigs of workload clusters; patch to label a host's credentials
    /// for `clusterctl move`; create for the endpoint of a control plane from a pool. The address of such an endpoint
    /// is claimed and released; a Metal3Cluster is read before the claim of a missing Metal3Cluster is released.
    /// MachineSets and MachineDeployments are read when a machine with node reuse is deleted; control planes are, too, with
    /// the permissions of their endpoints. MachineDeployments are watched for the status of templates. `metal3clusters/finalizers` is needed because the claim's owner reference blocks the owner's deletion.
    pub struct Machines {
        Metal3Cluster: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers, Delete;
        Metal3Machine: Get, List, Watch, Patch, PatchStatus;
        Metal3MachineTemplate: Get, List, Watch, PatchStatus;
        Metal3DataClaim: List, Watch, Create, Patch, Delete;
        Metal3Data: List, Watch;
        BareMetalHost: Get, List, Watch, Patch;
        Cluster: List, Watch;
        Machine: List, Watch;
        MachineSet: Get;
        MachineDeployment: Get, List, Watch;
        Secret: Get, Create, Patch;
        IPClaim: Get, Create, Patch;
        IPAddressClaim: Get, Create, Patch;
    }
}

role! {
    /// No host is ever deleted. An API server with the admission plugin `OwnerReferencesPermissionEnforcement` lets only those
    /// remove the owners of a host, as Go managers up to 1.13 wrote them, who may delete it. A role of its own, so that the
    /// writer of machines cannot delete hosts.
    pub struct HostOwners {
        BareMetalHost: Delete;
    }
}

role! {
    /// Remediations. Get of the read kinds is for the live reads before a host is powered off or a Machine is given up.
    pub struct Remediations {
        Metal3Remediation: Get, List, Watch, Patch, PatchStatus;
        Metal3Machine: Get, List, Watch;
        BareMetalHost: Get, List, Watch, Patch;
        Cluster: Get, List, Watch;
        Machine: Get, List, Watch, PatchStatus;
    }
}

role! {
    /// Data of machines. Secrets are watched by metadata and created, and never read or changed.
    pub struct Data {
        Metal3DataTemplate: List, Watch, Patch, PatchStatus;
        Metal3DataClaim: List, Watch, Patch, PatchStatus;
        Metal3Data: Get, List, Watch, Create, Patch, PatchStatus, Delete;
        Metal3Machine: List, Watch;
        Machine: List, Watch;
        BareMetalHost: List, Watch;
        Cluster: List, Watch;
        IPClaim: Get, List, Watch, Create, Patch, Delete;
        IPAddress: List, Watch;
        IPAddressClaim: Get, List, Watch, Create, Patch, Delete;
        cluster::IPAddress: List, Watch;
        Secret: List, Watch, Create;
        Event: Create, Patch;
    }
}
