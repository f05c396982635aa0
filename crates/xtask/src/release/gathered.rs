//! A role that whoever runs the cluster fills: the kinds of other providers that an endpoint may be read from.
//!
//! Which there are nobody here can know. A ClusterRole with the label of [`Layout::gathers`] is taken into it by the API
//! server, so that no binding has to name our account.

use serde_json::{Value, json};

use super::install::{binding, cluster_object};
use super::layout::Layout;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The role and its binding, where the product reads what others define.
pub(super) fn objects(layout: &Layout) -> Vec<Value> {
    let Some(label) = layout.gathers else { return Vec::new() };
    let name = layout.suite.named("endpoint-reader");
    // Its rules are the API server's to write.
    let role = json!({
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] },
        "rules": [],
    });
    vec![
        cluster_object(layout, RBAC, "ClusterRole", &name, role),
        cluster_object(
            layout,
            RBAC,
            "ClusterRoleBinding",
            &name,
            binding(layout, "ClusterRole", &name),
        ),
    ]
}
