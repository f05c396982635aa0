//! Permissions of the controllers of data. The roles are generated from this table.

use k8s_openapi::api::core::v1::{Event, Secret};
use metal3_api::cluster::{self, Cluster, IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::role;

role! {
    /// Data of machines. Secrets are watched by metadata and created, and never read or changed.
    pub struct Data {
        Metal3DataTemplate: List, Watch, Patch, PatchStatus;
        Metal3DataClaim: Get, List, Watch, Patch, PatchStatus;
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
