//! What hosts may do in the API. Roles are granted from this table.

use k8s_openapi::api::core::v1::{Event, Secret};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_runtime::needs;

needs! {
    /// Hosts and what they own. Secrets are watched by metadata and read by name: what unlocks BMCs, and what a machine
    /// is told at its first start.
    pub struct Hosts {
        BareMetalHost: Get, List, Watch, Patch, PatchStatus, UpdateFinalizers;
        HardwareData: Get, List, Watch, Create, Patch;
        Secret: Get, List, Watch, Patch;
        Event: Create, Patch;
    }
}
