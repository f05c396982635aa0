//! API permissions of IP address management. Roles are generated from this table.

use k8s_openapi::api::core::v1::Event;
use metal3_api::cluster::{self, Cluster, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::role;

role! {
    /// IP address management. The right to update finalizers of owners is required because addresses block the deletion
    /// of their owners. An API server that enforces permissions of owner references lets only who may delete an IPPool
    /// make its Cluster an owner; no IPPool is deleted.
    pub struct Ipam {
        IPPool: List, Watch, Patch, PatchStatus, UpdateFinalizers, Delete;
        IPClaim: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        IPAddress: Get, List, Watch, Create, Patch, Delete;
        IPAddressClaim: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        cluster::IPAddress: Get, List, Watch, Create, Patch, Delete;
        Cluster: List, Watch;
        Event: Create, Patch;
    }
}
