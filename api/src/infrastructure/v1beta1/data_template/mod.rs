//! A template for the metadata and network data of machines.

mod links;
mod meta_data;
mod networks;

use std::collections::BTreeMap;

pub use links::{Bond, Ethernet, MacAddress, NetworkLinks, Vlan};
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
    pub struct Metal3DataTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3datatemplates" {
        spec: Metal3DataTemplateSpec,
        status: Metal3DataTemplateStatus,
    }
}

/// What is rendered for each machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataTemplateSpec {
    // differs: conversion-writable-as-read
    /// Not used. The cluster follows from the machine. Empty in objects that were written without it as `v1beta2`.
    pub cluster_name: String,
    /// Not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_reference: Option<String>,
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
    /// When the numbers in use last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// Numbers in use, by name of the claim that has each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, i64>,
}
