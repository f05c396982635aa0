//! Progress of a Cluster and a Machine, from the newer fields, or from the older ones where the newer are absent.

use metal3_api::cluster::names::INFRASTRUCTURE_READY;
use metal3_api::cluster::{Cluster, ClusterEndpoint, DeprecatedStatus, Machine};

/// Whether the infrastructure of the Cluster is provisioned.
#[must_use]
pub fn has_infrastructure(cluster: &Cluster) -> bool {
    let stated = cluster
        .status
        .initialization
        .as_ref()
        .and_then(|done| done.infrastructure_provisioned);
    stated.unwrap_or_else(|| was_true(cluster.status.deprecated.as_ref(), INFRASTRUCTURE_READY))
}

/// The Secret with the bootstrap data of the Machine, once it is set. It is in the Machine's namespace.
#[must_use]
pub fn bootstrap_secret(machine: &Machine) -> Option<&str> {
    machine
        .spec
        .bootstrap
        .data_secret_name
        .as_deref()
        // differs (`bootstrap-secret-unset`): the Go manager takes an empty name for a Secret.
        .filter(|name| !name.is_empty())
}

/// Whether a bootstrap provider starts the kubelet, which then labels its Node.
#[must_use]
pub fn has_bootstrap_provider(machine: &Machine) -> bool {
    machine
        .spec
        .bootstrap
        .config_ref
        .as_ref()
        .is_some_and(|config| !config.name.is_empty())
}

/// The endpoint of the Cluster, once it is complete; then it is immutable.
#[must_use]
pub fn endpoint(cluster: &Cluster) -> Option<(&str, i32)> {
    let ClusterEndpoint { host, port } = cluster.spec.control_plane_endpoint.as_ref()?;
    let host = host.as_deref().filter(|host| !host.is_empty())?;
    Some((host, port.filter(|port| *port != 0)?))
}

fn was_true(deprecated: Option<&DeprecatedStatus>, aspect: &str) -> bool {
    let conditions = deprecated
        .and_then(|status| status.v1beta1.as_ref())
        .map(|older| &older.conditions);
    conditions.is_some_and(|all| {
        all.iter()
            .any(|condition| condition.type_ == aspect && condition.status == "True")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(status: serde_json::Value) -> Cluster {
        serde_json::from_value(json!({ "metadata": { "name": "edge" }, "status": status })).unwrap()
    }

    #[test]
    fn older_field_is_read_only_when_the_newer_one_is_absent() {
        let older = |status: &str| {
            let time = "2026-01-01T00:00:00Z";
            json!({ "v1beta1": { "conditions": [{ "type": "InfrastructureReady", "status": status, "lastTransitionTime": time }] } })
        };
        for (status, expected) in [
            (json!({}), false),
            (json!({ "deprecated": older("True") }), true),
            (json!({ "deprecated": older("False") }), false),
            (
                json!({ "initialization": { "infrastructureProvisioned": true }, "deprecated": older("False") }),
                true,
            ),
            (
                json!({ "initialization": { "infrastructureProvisioned": false }, "deprecated": older("True") }),
                false,
            ),
        ] {
            assert_eq!(has_infrastructure(&cluster(status.clone())), expected, "{status}");
        }
    }

    #[test]
    fn endpoint_is_returned_only_when_it_is_complete() {
        for (found, expected) in [
            (json!({ "host": "192.0.2.1", "port": 6443 }), Some(("192.0.2.1", 6443))),
            (json!({ "host": "", "port": 6443 }), None),
            (json!({ "host": "192.0.2.1" }), None),
            (json!({ "port": 6443 }), None),
        ] {
            let cluster: Cluster =
                serde_json::from_value(json!({ "metadata": {}, "spec": { "controlPlaneEndpoint": found } })).unwrap();
            assert_eq!(endpoint(&cluster), expected);
        }
    }
}
