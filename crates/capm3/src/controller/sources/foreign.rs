//! An object of any kind, as far as it speaks of an endpoint.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ApiResource, DynamicResourceScope, ObjectMeta, Resource};
use metal3_api::infrastructure::v1beta2::EndpointService;
use metal3_api::meta::{IntOrString, Time};
use metal3_runtime::access::{Permission, Permits, Role, verb};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::endpoint::address::{API_SERVER_PORT, Address, stated_host, stated_port};
use crate::endpoint::reading::{Heard, Sleeper};
use crate::endpoint::said::NUDGE_ANNOTATION;

/// The condition by which Kamaji's provider says that the Cluster's infrastructure has not taken its endpoint yet. While
/// it fails, nothing but a change of its own object shortens the provider's back-off.
const CHECK_FAILED: &str = "InfrastructureClusterPatched";

/// What is kept of an object: who it is, and what it says of an endpoint. All else is dropped as it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Foreign {
    /// Who it is.
    pub metadata: ObjectMeta,
    /// `spec.controlPlaneEndpoint.host`.
    pub host: Option<String>,
    /// `spec.controlPlaneEndpoint.port`.
    pub port: Option<i32>,
    /// The first address or name that a load balancer was given.
    pub ingress: Option<String>,
    /// Ports of a Service, by name.
    pub ports: Vec<(String, i32)>,
    /// Its controller, if that failed for want of an endpoint in our object.
    pub sleeper: Option<Sleeper>,
}

impl Foreign {
    /// The endpoint of an object that follows the contract.
    pub(super) fn stated(&self) -> Heard {
        let Some(host) = stated_host(self.host.as_deref()) else {
            return Heard::Nothing;
        };
        match stated_port(self.port) {
            Some(port) => Heard::Address(Address {
                host: host.to_owned(),
                port,
            }),
            None => Heard::Invalid(format!(
                "spec.controlPlaneEndpoint has the host {host} and no port from 1 to 65535; set one there"
            )),
        }
    }

    /// Where a load balancer of a Service is reached. `fallback` is the port where the reference names none.
    pub(super) fn balanced(&self, wanted: &EndpointService, fallback: Option<u16>) -> Heard {
        let Some(host) = stated_host(self.ingress.as_deref()) else {
            return Heard::Nothing;
        };
        let by_name = |name: &str| self.ports.iter().find(|(port, _)| port == name).map(|(_, port)| *port);
        let port = match &wanted.port {
            None => Some(fallback.unwrap_or(API_SERVER_PORT)),
            Some(IntOrString::Int(number)) => u16::try_from(*number).ok().filter(|port| *port != 0),
            Some(IntOrString::String(name)) => stated_port(by_name(name)),
        };
        match port {
            Some(port) => Heard::Address(Address {
                host: host.to_owned(),
                port,
            }),
            None => Heard::Invalid(
                "the Service has no such port; correct spec.controlPlaneEndpointSource.service.port".to_owned(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Foreign {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut document = Value::deserialize(deserializer)?;
        let metadata = document.get_mut("metadata").map(Value::take).unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).map_err(serde::de::Error::custom)?;
        let woken_for = metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(NUDGE_ANNOTATION))
            .cloned();
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let ingress = "/status/loadBalancer/ingress/0";
        Ok(Self {
            metadata,
            host: text("/spec/controlPlaneEndpoint/host"),
            port: document.pointer("/spec/controlPlaneEndpoint/port").and_then(port),
            ingress: text(&format!("{ingress}/ip")).or_else(|| text(&format!("{ingress}/hostname"))),
            ports: list(&document, "/spec/ports").filter_map(named_port).collect(),
            sleeper: list(&document, "/status/conditions")
                .find(|condition| is_failed_check(condition))
                .map(|condition| Sleeper {
                    since: since(condition),
                    woken_for,
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

impl Resource for Foreign {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The control planes that are read out of the box, each by name. For any other kind an administrator grants the right.
const KNOWN: [&str; 5] = [
    "awsmanagedcontrolplanes",
    "k0smotroncontrolplanes",
    "kamajicontrolplanes",
    "kubeadmcontrolplanes",
    "rke2controlplanes",
];

/// Reading what others say of an endpoint.
///
/// Which kinds that are is only known when the program runs, so this role says by hand what the table of others says
/// for them. A kind that is not granted, as ConfigMaps are not, is refused by the server, and a condition says so.
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

impl Permits<verb::List, Foreign> for EndpointSources {}
impl Permits<verb::Watch, Foreign> for EndpointSources {}
impl Permits<verb::List, ConfigMap> for EndpointSources {}
impl Permits<verb::Watch, ConfigMap> for EndpointSources {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: Value) -> Foreign {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn objects_of_every_provider_are_read_and_odd_ones_say_nothing() {
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
        assert_eq!(control_plane.sleeper.unwrap().since, None);
        let service = read(json!({
            "metadata": { "name": "s" },
            "spec": { "ports": [{ "name": "api", "port": 6443 }, { "port": 8132 }] },
            "status": { "loadBalancer": { "ingress": [{ "hostname": "lb.example" }] } },
        }));
        assert_eq!(service.ingress.as_deref(), Some("lb.example"));
        assert_eq!(service.ports, [("api".to_owned(), 6443), (String::new(), 8132)]);
        for odd in [
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": "somewhere" } }),
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": { "host": 7, "port": "x" } } }),
            json!({ "metadata": { "name": "o" }, "status": { "conditions": {}, "loadBalancer": [] } }),
            json!({ "metadata": { "name": "o" }, "spec": { "controlPlaneEndpoint": { "port": 99_999_999_999_i64 } } }),
        ] {
            let read = read(odd);
            assert_eq!(
                (read.host, read.port, read.ingress, read.sleeper),
                (None, None, None, None)
            );
        }
    }

    #[test]
    fn known_control_planes_are_granted_by_name_and_nothing_else_is() {
        let needs = EndpointSources::permissions();
        assert_eq!(needs.len(), KNOWN.len() * 2);
        assert!(
            needs
                .iter()
                .all(|need| need.group == "controlplane.cluster.x-k8s.io" && need.resource != "*")
        );
    }
}
