//! The API permissions of the host controller. Roles are generated from this table.

use k8s_openapi::api::core::v1::{Event, Secret};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_runtime::role;

role! {
    /// Hosts and the objects that belong to them. Secrets are watched by metadata and read by name: BMC credentials and
    /// the data of the config drive.
    pub struct Hosts {
        BareMetalHost: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        HardwareData: Get, List, Watch, Create, Patch;
        Secret: Get, List, Watch, Patch;
        Event: Create, Patch;
    }
}
