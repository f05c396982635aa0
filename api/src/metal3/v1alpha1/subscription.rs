//! A host's BMC sends its events somewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::SecretReference;

kind! {
    /// Events of one host's BMC, sent to an address. It cannot be changed, only replaced.
    pub struct BMCEventSubscription in "metal3.io" / "v1alpha1" as "bmceventsubscriptions" {
        spec: BMCEventSubscriptionSpec,
        status: BMCEventSubscriptionStatus,
    }
}

/// The host, the destination and the events of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BMCEventSubscriptionSpec {
    /// Name of the host, in the namespace of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// URL the events are sent to. It must have a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Text that comes with each event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Secret whose members are sent as HTTP headers. Its namespace must be set, and be that of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_headers_ref: Option<SecretReference>,
}

/// The subscription made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BMCEventSubscriptionStatus {
    /// The BMC's identifier of the subscription.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "subscriptionID")]
    pub subscription_id: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
