//! The CRDs of `ipam.metal3.io`.

use schemars::JsonSchema;

use super::v1alpha1::{IPAddress, IPClaim, IPPool};
use crate::crd::{AGE, Column, ConversionService, Definition, Version};
use crate::kind::Kind;

const SERVICE: ConversionService = ConversionService {
    name: "ipam-webhook-service",
    namespace: "metal3-ipam-system",
    certificate: "metal3-ipam-system/ipam-serving-cert",
};

/// The contract label of `v1beta2` names the served version. The older ones name versions that never existed; inventory
/// scripts match them, so they stay.
const LABELS: &[(&str, &str)] = &[
    ("cluster.x-k8s.io/provider", "ipam-metal3"),
    ("cluster.x-k8s.io/v1alpha2", "v1alpha2"),
    ("cluster.x-k8s.io/v1alpha3", "v1alpha3_v1alpha4"),
    ("cluster.x-k8s.io/v1alpha4", "v1alpha5"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1alpha1"),
    ("clusterctl.cluster.x-k8s.io", ""),
];

const CLUSTER: Column = Column::string("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name");

const POOL_COLUMNS: &[Column] = &[
    CLUSTER,
    AGE,
    Column::string("Available", ".status.available")
        .wide()
        .described("Addresses that can still be granted"),
    Column::string("Allocated", ".status.allocated")
        .wide()
        .described("Addresses granted"),
];

/// The definitions, by kind.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    vec![
        Definition {
            categories: &["metal3"],
            ..definition::<IPAddress>("ipaddress", ADDRESS_SHORT_NAMES, &[AGE])
        },
        definition::<IPClaim>("ipclaim", CLAIM_SHORT_NAMES, &[AGE]),
        definition::<IPPool>("ippool", POOL_SHORT_NAMES, POOL_COLUMNS),
    ]
}

const ADDRESS_SHORT_NAMES: &[&str] = &[
    "ipa",
    "ipaddress",
    "m3ipa",
    "m3ipaddress",
    "m3ipaddresses",
    "metal3ipa",
    "metal3ipaddress",
    "metal3ipaddresses",
];
const CLAIM_SHORT_NAMES: &[&str] = &[
    "ipc",
    "ipclaim",
    "m3ipc",
    "m3ipclaim",
    "m3ipclaims",
    "metal3ipc",
    "metal3ipclaim",
    "metal3ipclaims",
];
const POOL_SHORT_NAMES: &[&str] = &[
    "ipp",
    "ippool",
    "m3ipp",
    "m3ippool",
    "m3ippools",
    "metal3ipp",
    "metal3ippool",
    "metal3ippools",
];

/// A definition with the settings shared by the kinds of the group.
fn definition<K: Kind<Spec: JsonSchema, Status: JsonSchema>>(
    singular: &'static str,
    short_names: &'static [&'static str],
    columns: &'static [Column],
) -> Definition {
    Definition {
        categories: &["cluster-api"],
        labels: LABELS,
        conversion: Some(SERVICE),
        ..Definition::new::<K>(singular, short_names, vec![Version::stored::<K>(columns)])
    }
}
