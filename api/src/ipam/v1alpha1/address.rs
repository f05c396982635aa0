//! An address that was granted. It is never changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{IpText, ObjectReference};

kind! {
    /// One address granted to one claim.
    pub struct IPAddress in "ipam.metal3.io" / "v1alpha1" as "ipaddresses" {
        spec: IPAddressSpec,
    }
}

/// The grant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressSpec {
    /// The claim that holds the address.
    pub claim: ObjectReference,
    /// The pool it comes from.
    pub pool: ObjectReference,
    /// The address.
    pub address: IpText,
    /// Prefix length of the network it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub prefix: Option<i64>,
    /// Gateway of that network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpText>,
    /// Name servers to use with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "dnsServers")]
    pub dns_servers: Vec<IpText>,
}
