//! The kinds that an API server must know before the controllers can run. The program that counts requests uses this
//! file too, so it knows nothing of this crate.

use metal3_api::crd::{Definition, Version};
use serde_json::json;

/// Ours, those of hosts and addresses, and those of Cluster API that we read.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::infrastructure::definitions();
    kinds.extend(metal3_api::metal3::definitions());
    kinds.extend(metal3_api::ipam::definitions());
    kinds.extend(metal3_simcluster::cluster_api());
    kinds.push(machine());
    kinds
}

/// The Machine of Cluster API, of any content.
fn machine() -> Definition {
    Definition {
        group: "cluster.x-k8s.io",
        kind: "Machine",
        plural: "machines",
        singular: "machine",
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
