//! Services of the network data: name servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{FamilyText, IpText};

/// Services for all networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkServices {
    /// Addresses of name servers, of either family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 512), extend("x-kubernetes-list-type" = "set"))]
    pub dns: Vec<IpText>,
    /// Name of the IPPool whose name servers are used.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "dnsFromIPPool")]
    #[schemars(length(min = 1, max = 512))]
    pub dns_from_ip_pool: Option<String>,
}

/// Services reached through a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteServices<A: FamilyText> {
    /// Addresses of name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 512), extend("x-kubernetes-list-type" = "set"))]
    pub dns: Vec<A>,
    /// Name of the IPPool whose name servers are used.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "dnsFromIPPool")]
    #[schemars(length(min = 1, max = 512))]
    pub dns_from_ip_pool: Option<String>,
}
