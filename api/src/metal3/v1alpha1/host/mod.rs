//! The host: a machine with a management controller, and what shall become of it.

mod cleaning;
mod facts;
mod requests;
mod saved;
mod spec;
mod status;

pub use cleaning::{CleaningTime, HostCleaning, KeptDisk};
pub(crate) use requests::reboot_annotations;
pub use requests::{DetachRequest, DetachedDelete, RebootMode, RebootRequest, RebootRequestError};
pub use spec::{AutomatedCleaningMode, BareMetalHostSpec, BmcDetails, BootMode, FirmwareConfig, InspectionMode, Taint};
pub use status::{
    BareMetalHostStatus, CredentialsStatus, ErrorType, OperationHistory, OperationMetric, OperationalStatus,
    ProvisionStatus, ProvisioningState,
};

use crate::kind::kind;

kind! {
    /// A physical machine: its access, desired and observed state.
    pub struct BareMetalHost in "metal3.io" / "v1alpha1" as "baremetalhosts" {
        spec: BareMetalHostSpec,
        status: BareMetalHostStatus,
    }
}
