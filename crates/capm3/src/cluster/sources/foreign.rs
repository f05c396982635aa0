//! An object of any kind, reduced to its endpoint.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use metal3_api::infrastructure::v1beta2::EndpointService;
use metal3_api::meta::{IntOrString, Time};
use metal3_runtime::access::{Permission, Permits, Role, verb};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::endpoint::address::{API_SERVER_PORT, Address, stated_host, stated_port};
use crate::endpoint::conditions::TOUCH_ANNOTATION;
use crate::endpoint::source::{IdleControlPlane, SourceState};

/// The condition by which Kamaji's provider reports that the Cluster's infrastructure has no endpoint yet. While it is
/// false, only a change of its own object shortens the provider's backoff.
const CHECK_FAILED: &str = "InfrastructureClusterPatched";

/// The retained fields of an object. All others are dropped during decoding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignObject {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// `spec.controlPlaneEndpoint.host`.
    pub host: Option<String>,
    /// `spec.controlPlaneEndpoint.port`.
    pub port: Option<i32>,
    /// The first address or name of the load balancer.
    pub ingress: Option<String>,
    /// Ports of a Service, by name.
    pub ports: Vec<(String, i32)>,
    /// Set when its controller failed without an endpoint in the Metal3Cluster.
    pub idle: Option<IdleControlPlane>,
}

impl ForeignObject {
    /// The endpoint by the contract of Cluster API.
    pub(super) fn contract_endpoint(&self) -> SourceState {
        let Some(host) = stated_host(self.host.as_deref()) else {
            return SourceState::Empty;
        };
        match stated_port(self.port) {
            Some(port) => SourceState::Address(Address {
                host: host.to_owned(),
                port,
            }),
            None => SourceState::Invalid(format!(
                "spec.controlPlaneEndpoint has the host {host} and no port from 1 to 65535; set one there"
            )),
        }
    }

    /// The endpoint of the load balancer of a Service. `fallback` is the port when the reference names none.
    pub(super) fn load_balancer_endpoint(&self, wanted: &EndpointService, fallback: Option<u16>) -> SourceState {
        let Some(host) = stated_host(self.ingress.as_deref()) else {
            return SourceState::Empty;
        };
        let by_name = |name: &str| self.ports.iter().find(|(port, _)| port == name).map(|(_, port)| *port);
        let port = match &wanted.port {
            None => Some(fallback.unwrap_or(API_SERVER_PORT)),
            Some(IntOrString::Int(number)) => u16::try_from(*number).ok().filter(|port| *port != 0),
            Some(IntOrString::String(name)) => stated_port(by_name(name)),
        };
        match port {
            Some(port) => SourceState::Address(Address {
                host: host.to_owned(),
                port,
            }),
            None => SourceState::Invalid(
                "the Service has no such port; correct spec.controlPlaneEndpointSource.service.port".to_owned(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for ForeignObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut document = Value::deserialize(deserializer)?;
        let metadata = document.get_mut("metadata").map(Value::take).unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).map_err(serde::de::Error::custom)?;
        let touched_for = metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(TOUCH_ANNOTATION))
            .cloned();
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let ingress = "/status/loadBalancer/ingress/0";
        Ok(Self {
            metadata,
            host: text("/spec/controlPlaneEndpoint/host"),
            port: document.pointer("/spec/controlPlaneEndpoint/port").and_then(port),
            ingress: text(&format!("{ingress}/ip")).or_else(|| text(&format!("{ingress}/hostname"))),
            ports: list(&document, "/spec/ports").filter_map(named_port).collect(),
            idle: list(&document, "/status/conditions")
                .find(|condition| is_failed_check(condition))
                .map(|condition| IdleControlPlane {
                    since: since(condition),
                    touched_for,
                }),
        })
    }
}

fn list<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    document
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn port(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|port| i32::try_from(port).ok())
}

fn named_port(value: &Value) -> Option<(String, i32)> {
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
    Some((name.to_owned(), value.get("port").and_then(port)?))
}

fn is_failed_check(condition: &Value) -> bool {
    let says = |member, expected| condition.get(member).and_then(Value::as_str) == Some(expected);
    says("type", CHECK_FAILED) && says("status", "False")
}

fn since(condition: &Value) -> Option<Time> {
    serde_json::from_value(condition.get("lastTransitionTime")?.clone()).ok()
}

metal3_runtime::resource!(ForeignObject: of any kind);

/// The control plane kinds of the released role. An administrator grants the right for others.
const KNOWN: [&str; 5] = [
    "awsmanagedcontrolplanes",
    "k0smotroncontrolplanes",
    "kamajicontrolplanes",
    "kubeadmcontrolplanes",
    "rke2controlplanes",
];

/// Reading endpoint sources.
///
/// The kinds are only known at run time, so this role lists the permissions by hand. Requests for a kind without
/// permission are rejected, and a condition reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointSources;

impl Role for EndpointSources {
    const NAME: &'static str = "EndpointSources";

    fn permissions() -> std::collections::BTreeSet<Permission> {
        let verbs = ["list", "watch"];
        let line = |resource: &str, verb| Permission {
            group: metal3_api::cluster::names::CONTROL_PLANE_GROUP.to_owned(),
            resource: resource.to_owned(),
            subresource: "",
            verb,
        };
        let of_kind = |resource| verbs.into_iter().map(move |verb| line(resource, verb));
        KNOWN.into_iter().flat_map(of_kind).collect()
    }
}

impl Permits<verb::List, ForeignObject> for EndpointSources {}
impl Permits<verb::Watch, ForeignObject> for EndpointSources {}
impl Permits<verb::List, ConfigMap> for EndpointSources {}
impl Permits<verb::Watch, ConfigMap> for EndpointSources {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: Value) -> ForeignObject {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn objects_of_every_provider_are_decoded_and_invalid_ones_have_no_endpoint() {
        let control_plane = read(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha2", "kind": "KamajiControlPlane",
            "metadata": { "name": "k", "uid": "u", "resourceVersion": "7" },
            "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 }, "version": "1.33.0" },
            "status": { "conditions": [{ "type": "InfrastructureClusterPatched", "status": "False" }] },
        }));
        assert_eq!(
            (control_plane.host.as_deref(), control_plane.port),
            (Some("192.0.2.1"), Some(6443))
        );
        assert_eq!(control_plane.idle.unwrap().since, None);
        let service = read(json!({
            "metadata": { "name": "s" },
            "spec": { "ports": [{ "name": "api", "port": 6443 }, { "port": 8132 }] },
            "status": { "loadBalancer": { "ingress": [{ "hostname": "lb.example" }] } },
        }));
        assert_eq!(service.ingress.as_deref(), Some("lb.example"));
        assert_eq!(service.ports, [("api".to_owned(), 6443), (String::new(), 8132)]);
        for invalid in [
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": "somewhere" } }),
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": { "host": 7, "port": "x" } } }),
            json!({ "metadata": { "name": "o" }, "status": { "conditions": {}, "loadBalancer": [] } }),
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": { "port": 99_999_999_999_i64 } } }),
        ] {
            let read = read(invalid);
            assert_eq!(
                (read.host, read.port, read.ingress, read.idle),
                (None, None, None, None)
            );
        }
    }

    #[test]
    fn known_control_planes_are_granted_by_name_only() {
        let needs = EndpointSources::permissions();
        assert_eq!(needs.len(), KNOWN.len() * 2);
        assert!(
            needs
                .iter()
                .all(|need| need.group == "controlplane.cluster.x-k8s.io" && need.resource != "*")
        );
    }
}
