//! What IP address management may do in the API. Roles are granted from this table.

use k8s_openapi::api::core::v1::Event;
use metal3_api::cluster::{self, Cluster, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::role;

role! {
    /// IP address management. The finalizers of owners are named because the addresses of Cluster API claims keep their
    /// owners from going.
    pub struct Ipam {
        IPPool: List, Watch, Patch, PatchStatus, UpdateFinalizers;
        IPClaim: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        IPAddress: Get, List, Watch, Create, Patch, Delete;
        IPAddressClaim: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        cluster::IPAddress: Get, List, Watch, Create, Patch, Delete;
        Cluster: List, Watch;
        Event: Create, Patch;
    }
}
