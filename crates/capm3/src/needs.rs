//! What the controllers of clusters and machines may do in the API. Roles are granted from this table.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::{Cluster, IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::role;

role! {
    /// Clusters and machines. Secrets are got for the way into workload clusters, and patched so that those with the
    /// credentials of a host move with its cluster. Where the endpoint of a control plane comes from a pool, its address
    /// is claimed and given back, and the Secret that tells it to machines is made; a Metal3Cluster is got before a claim
    /// is given back because there is none. The finalizers of Metal3Clusters are named because such a claim keeps its
    /// owner until it is gone: a server may ask for this before it lets anyone write that.
    pub struct Machines {
        Metal3Cluster: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers, Delete;
        Metal3Machine: Get, List, Watch, Patch, PatchStatus;
        Metal3DataClaim: List, Watch, Create, Patch, Delete;
        Metal3Data: List, Watch;
        BareMetalHost: Get, List, Watch, Patch;
        Cluster: List, Watch;
        Machine: List, Watch;
        Secret: Get, Create, Patch;
        IPClaim: Get, Create, Patch;
        IPAddressClaim: Get, Create, Patch;
    }
}
