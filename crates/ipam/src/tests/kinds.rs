//! The kinds that an API server must know before the controller can run. The program that counts requests uses this
//! file too, so it knows nothing of this crate.

use metal3_api::crd::{Definition, Version};
use serde_json::json;

/// A kind of somebody else's, with a status, of any content.
fn foreign(group: &'static str, kind: &'static str, plural: &'static str, singular: &'static str) -> Definition {
    Definition {
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
    }
}

/// Ours, those of Cluster API, and its Cluster.
pub(crate) fn kinds() -> Vec<Definition> {
    const IPAM: &str = "ipam.cluster.x-k8s.io";
    let mut kinds = metal3_api::ipam::definitions();
    kinds.push(foreign(IPAM, "IPAddressClaim", "ipaddressclaims", "ipaddressclaim"));
    kinds.push(foreign(IPAM, "IPAddress", "ipaddresses", "ipaddress"));
    kinds.push(foreign("cluster.x-k8s.io", "Cluster", "clusters", "cluster"));
    kinds
}
