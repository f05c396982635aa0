//! A pool: ranges of addresses and what is granted of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{Condition, IpText, SubnetText, Time};

kind! {
    /// A pool of addresses. Each claim on it is granted one.
    pub struct IPPool in "ipam.metal3.io" / "v1alpha1" as "ippools" {
        spec: IPPoolSpec,
        status: IPPoolStatus,
    }
}

/// The ranges of the pool and what comes with an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPPoolSpec {
    /// Name of the Cluster the pool belongs to. The pool is labelled with it, owned by it, and pauses with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// Ranges of addresses. They are used up in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolRange>,
    /// Which free address of a range is granted next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "sequential"))]
    pub allocation_strategy: Option<AllocationStrategy>,
    /// Addresses reserved for claims of a given name. Other claims never receive them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pre_allocations: BTreeMap<String, IpText>,
    /// Prefix length handed out with an address where its range states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub prefix: Option<i64>,
    /// Gateway handed out with an address where its range states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpText>,
    /// Name servers handed out with an address where its range states none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "dnsServers")]
    pub dns_servers: Vec<IpText>,
    /// First part of the name of each IPAddress object. It must differ between the pools of a namespace.
    #[schemars(length(min = 1))]
    pub name_prefix: String,
}

/// A range, given by its ends, by a network, or by both.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolRange {
    /// First address. Absent: the second address of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<IpText>,
    /// Last address, included. Absent: the last but one of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<IpText>,
    /// Network that bounds the range, and supplies it where the ends are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubnetText>,
    /// Prefix length handed out with an address of this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub prefix: Option<i64>,
    /// Gateway handed out with an address of this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpText>,
    /// Name servers handed out with an address of this range.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "dnsServers")]
    pub dns_servers: Vec<IpText>,
}

/// Which free address of a range is granted next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllocationStrategy {
    /// The lowest free one.
    #[default]
    Sequential,
    /// Any free one.
    Random,
}

/// What is granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPPoolStatus {
    /// When the map of grants last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// Grants, by name of the claim. Rebuilt from the address objects; cut short in very large pools, which a
    /// condition says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, IpText>,
    /// Addresses in all ranges together. Text, because a v6 range holds more than a number does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<String>,
    /// Addresses granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<String>,
    /// Addresses that can still be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<String>,
    /// Addresses kept for claims of a given name and not granted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    /// `Ready`, `Exhausted`, `Overlapping`, `IndexesTruncated` and `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Grants that are under way, so that no other replica makes them twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<Allocator>,
}

/// The replica that grants from this pool, and what it is about to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allocator {
    /// Identity of the process that wrote this last; new at every start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// Addresses that may be created now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "atomic"))]
    pub pending: Vec<PendingAddress>,
}

/// An address that is about to be created for a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingAddress {
    /// The address.
    pub address: IpText,
    /// Kind of the claim.
    pub claim_kind: String,
    /// Name of the claim.
    pub claim_name: String,
    /// UID of the claim.
    #[serde(rename = "claimUID")]
    pub claim_uid: String,
}
