//! A template for the metadata and network data of machines.

mod links;
mod meta_data;
mod networks;

pub use links::{Bond, BondParameter, Ethernet, MacAddress, NetworkLinks, Vlan};
pub use meta_data::{
    FromAnnotation, FromHostInterface, FromLabel, FromPool, IndexEntry, MetaData, NamespaceEntry, ObjectNameEntry,
    StringEntry,
};
pub use networks::{DynamicNetwork, Gateway, NetworkServices, Networks, Route, RouteServices, StaticNetwork};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::Time;

kind! {
    /// A template for the metadata and network data of machines.
    pub struct Metal3DataTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3datatemplates" {
        spec: Metal3DataTemplateSpec,
        status: Metal3DataTemplateStatus,
    }
}

/// What is rendered for each machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataTemplateSpec {
    /// Not used. The cluster follows from the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub cluster_name: Option<String>,
    /// Metadata. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<MetaData>,
    /// Network data. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<NetworkData>,
}

/// Links, networks on them, and services for all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkData {
    /// Interfaces, bonds and VLANs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<NetworkLinks>,
    /// Addresses and routes on the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<Networks>,
    /// Services for all networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkServices>,
}

/// Which machines have data of this template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataTemplateStatus {
    /// Numbers in use. With more than 512, the lowest 512; a condition says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["index"])
    )]
    pub indexes: Vec<IndexGrant>,
    /// When the numbers in use last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
}

/// A number in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexGrant {
    /// Name of the claim that has it.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// The number.
    #[schemars(range(min = 0))]
    pub index: i32,
}
