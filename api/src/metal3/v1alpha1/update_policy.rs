//! When changes of firmware may be made to a host that is in use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;

kind! {
    /// When the firmware of the host of the same name may be changed. Without one, only while the host is prepared.
    pub struct HostUpdatePolicy in "metal3.io" / "v1alpha1" as "hostupdatepolicies" {
        spec: HostUpdatePolicySpec,
        status: HostUpdatePolicyStatus,
    }
}

/// The moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostUpdatePolicySpec {
    /// When firmware settings may be changed. Absent: only while the host is prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware_settings: Option<UpdateMoment>,
    /// When firmware may be updated. Absent: only while the host is prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware_updates: Option<UpdateMoment>,
}

/// When a change may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpdateMoment {
    /// While the host is prepared for its next use.
    #[default]
    OnPreparing,
    /// Also when a host in use is rebooted.
    OnReboot,
}

/// Nothing is reported here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUpdatePolicyStatus {}
