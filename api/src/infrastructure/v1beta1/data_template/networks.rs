//! Networks of the network data: addresses and routes on links, and name servers.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta1::{AnnotationSource, TypedLocalReference};
use crate::meta::{FamilyText, IpText, Ipv4Text, Ipv6Text};

/// Addresses and routes on the links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Networks {
    /// v4 networks with an address from a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4: Vec<StaticNetwork<Ipv4Text>>,
    /// v6 networks with an address from a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<StaticNetwork<Ipv6Text>>,
    /// v4 networks that use DHCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "ipv4DHCP")]
    pub ipv4_dhcp: Vec<DynamicNetwork<Ipv4Text>>,
    /// v6 networks that use DHCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "ipv6DHCP")]
    pub ipv6_dhcp: Vec<DynamicNetwork<Ipv6Text>>,
    /// v6 networks that configure themselves from router advertisements.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "ipv6SLAAC")]
    pub ipv6_slaac: Vec<DynamicNetwork<Ipv6Text>>,
}

/// A network with an address from a pool. Set one of the three sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticNetwork<A: FamilyText> {
    /// Identifier of the network.
    pub id: String,
    /// Identifier of the link it is on.
    pub link: String,
    /// Name of the IPPool that supplies the address.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ipAddressFromIPPool")]
    pub ip_address_from_ip_pool: Option<String>,
    /// The pool that supplies the address, of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_pool_ref: Option<TypedLocalReference>,
    /// An annotation that names the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_pool_annotation: Option<AnnotationSource>,
    /// Routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route<A>>,
}

/// A network whose address the link supplies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DynamicNetwork<A: FamilyText> {
    /// Identifier of the network.
    pub id: String,
    /// Identifier of the link it is on.
    pub link: String,
    /// Routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route<A>>,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route<A: FamilyText> {
    /// Destination, without prefix length.
    pub network: A,
    /// Prefix length of the destination. Absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = longest_prefix::<A>)]
    pub prefix: Option<i64>,
    /// The next hop.
    pub gateway: Gateway<A>,
    /// Services reached through the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<RouteServices<A>>,
}

fn longest_prefix<A: FamilyText>(schema: &mut Schema) {
    schema.insert("maximum".into(), A::BITS.into());
}

/// Where the next hop comes from. Set one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gateway<A: FamilyText> {
    /// The address itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<A>,
    /// Name of the IPPool whose gateway is used.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "fromIPPool")]
    pub from_ip_pool: Option<String>,
    /// The pool whose gateway is used, of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_pool_ref: Option<TypedLocalReference>,
    /// An annotation that names the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_pool_annotation: Option<AnnotationSource>,
}

/// Services for all networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkServices {
    /// Addresses of name servers, of either family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<IpText>,
    /// Name of the IPPool whose name servers are used.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "dnsFromIPPool")]
    pub dns_from_ip_pool: Option<String>,
}

/// Services reached through a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteServices<A: FamilyText> {
    /// Addresses of name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<A>,
    /// Name of the IPPool whose name servers are used.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "dnsFromIPPool")]
    pub dns_from_ip_pool: Option<String>,
}
