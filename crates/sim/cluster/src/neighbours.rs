//! Kinds that Cluster API defines and controllers here read: there, and of any content. What its own server would refuse
//! is not judged.

use metal3_api::crd::{Definition, Version};
use serde_json::json;

/// The claims and addresses of Cluster API's address management, its Cluster and its Machine.
#[must_use]
pub fn cluster_api() -> Vec<Definition> {
    const IPAM: &str = "ipam.cluster.x-k8s.io";
    [
        (IPAM, "IPAddressClaim", "ipaddressclaims", "ipaddressclaim"),
        (IPAM, "IPAddress", "ipaddresses", "ipaddress"),
        ("cluster.x-k8s.io", "Cluster", "clusters", "cluster"),
        ("cluster.x-k8s.io", "Machine", "machines", "machine"),
    ]
    .into_iter()
    .map(|(group, kind, plural, singular)| Definition {
        group,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        labels: &[],
        annotations: &[],
        conversion: None,
        versions: vec![Version {
            name: "v1beta2",
            storage: true,
            deprecated: false,
            status_subresource: true,
            columns: &[],
            schema: || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            reencode: |value| Ok(value.clone()),
        }],
    })
    .collect()
}
