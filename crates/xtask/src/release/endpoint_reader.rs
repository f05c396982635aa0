//! An aggregated role of the cluster administrator: kinds of other providers that an endpoint may be read from.
//!
//! The API server adds the rules of every ClusterRole with the label of [`Layout::aggregated_by`], so that no binding
//! has to name the account.

use serde_json::{Value, json};

use super::install::{binding, cluster_object};
use super::layout::Layout;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The role and its binding, for products that read endpoints of other kinds.
pub(super) fn objects(layout: &Layout) -> Vec<Value> {
    let Some(label) = layout.aggregated_by else {
        return Vec::new();
    };
    let name = layout.suite.named("endpoint-reader");
    // The API server fills in the rules.
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
