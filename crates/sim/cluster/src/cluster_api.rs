//! Cluster API kinds that the controllers read. Their schemas accept any content.

use metal3_api::crd::{Definition, Version};
use serde_json::json;

/// IPAddressClaim, IPAddress, Cluster and Machine.
#[must_use]
pub fn cluster_api() -> Vec<Definition> {
    const IPAM: &str = "ipam.cluster.x-k8s.io";
    [
        (IPAM, "IPAddressClaim", "ipaddressclaims", "ipaddressclaim"),
        (IPAM, "IPAddress", "ipaddresses", "ipaddress"),
        ("cluster.x-k8s.io", "Cluster", "clusters", "cluster"),
        ("cluster.x-k8s.io", "Machine", "machines", "machine"),
        (
            "cluster.x-k8s.io",
            "MachineDeployment",
            "machinedeployments",
            "machinedeployment",
        ),
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
            scale_subresource: false,
            columns: &[],
            schema: || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            reencode: |value| Ok(value.clone()),
        }],
    })
    .collect()
}
