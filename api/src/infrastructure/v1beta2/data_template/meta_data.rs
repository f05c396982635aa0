//! Metadata: keys whose values are known when a machine has its host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::SourceObject;

/// Keys of the metadata, by where the value comes from. Values are text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetaData {
    /// Fixed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub strings: Vec<StringEntry>,
    /// Names of objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub object_names: Vec<ObjectNameEntry>,
    /// Numbers computed from the index of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub indexes: Vec<IndexEntry>,
    /// Addresses granted from pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub ip_addresses_from_pool: Vec<FromPool>,
    /// Prefix lengths that come with such addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub prefixes_from_pool: Vec<FromPool>,
    /// Gateways that come with such addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub gateways_from_pool: Vec<FromPool>,
    /// Name servers that come with such addresses, separated by commas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub dns_servers_from_pool: Vec<FromPool>,
    /// Hardware addresses of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub from_host_interfaces: Vec<FromHostInterface>,
    /// Values of labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub from_labels: Vec<FromLabel>,
    /// Values of annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub from_annotations: Vec<FromAnnotation>,
    /// The namespace of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub namespaces: Vec<NamespaceEntry>,
}

/// A fixed value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StringEntry {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// The value. It may be empty.
    #[schemars(length(max = 512))]
    pub value: String,
}

/// The name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectNameEntry {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// The object.
    pub object: SourceObject,
}

/// A number computed as offset plus step times index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexEntry {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// Number of the machine with index 0. Absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub offset: Option<i32>,
    /// Distance between the numbers of two machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub step: Option<i32>,
    /// Text before the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub prefix: Option<String>,
    /// Text after the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub suffix: Option<String>,
}

/// The namespace of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceEntry {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
}

/// Something that comes with an address granted from a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FromPool {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// Name of the pool.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// API group of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("default" = "ipam.metal3.io"))]
    pub api_group: Option<String>,
    /// Kind of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), extend("default" = "IPPool"))]
    pub kind: Option<String>,
}

/// The hardware address of one interface of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FromHostInterface {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// Name of the interface, as inspection found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub interface: Option<String>,
    /// True: the address the host boots from, instead of an interface by name.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "fromBootMAC")]
    pub from_boot_mac: Option<bool>,
}

/// The value of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FromLabel {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// The object that carries the label.
    pub object: SourceObject,
    /// Key of the label.
    #[schemars(length(min = 1, max = 512))]
    pub label: String,
}

/// The value of an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FromAnnotation {
    /// Key in the metadata.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// The object that carries the annotation.
    pub object: SourceObject,
    /// Key of the annotation.
    #[schemars(length(min = 1, max = 512))]
    pub annotation: String,
}
