mod conflicts;
pub(crate) mod held_claims;
mod histories;
mod pool;
mod render;
mod sources;

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::names::DERIVED_ENDPOINT_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_api::meta::{ConditionStatus, Time};
use metal3_runtime::patch::apply;
use serde_json::{Value, json};

use super::address::Address;
use super::conditions::{Drift, EndpointState};
use super::resolve::{Resolution, ResolveInput, resolve};
use super::source::{SourceState, SourceValue, SourceValues};
use super::spec_endpoint::Derived;

pub(crate) fn at(seconds: i64) -> Time {
    Time::new(chrono::DateTime::from_timestamp(seconds, 0).unwrap())
}

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn derived(origin: EndpointOrigin, text: &str) -> Derived {
    Derived {
        address: address(text),
        origin,
    }
}

fn object(spec: Value) -> Metal3Cluster {
    let meta = json!({ "name": "edge", "namespace": "metal", "uid": "u1", "resourceVersion": "7" });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
}

/// An object with a source, and nothing else.
fn with_source(source: &str) -> Metal3Cluster {
    object(json!({ "controlPlaneEndpointSource": { "type": source } }))
}

/// The same with an endpoint of the user.
fn with_endpoint(source: &str, endpoint: &str) -> Metal3Cluster {
    let Address { host, port } = address(endpoint);
    object(json!({
        "controlPlaneEndpointSource": { "type": source }, "controlPlaneEndpoint": { "host": host, "port": port },
    }))
}

pub(crate) fn with_derived(object: &Metal3Cluster, derived: &Derived) -> Metal3Cluster {
    let mut document = serde_json::to_value(object).unwrap();
    let Address { host, port } = &derived.address;
    let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
    apply(&endpoint, &mut document);
    let marker = json!({ "metadata": { "annotations": { DERIVED_ENDPOINT_ANNOTATION: derived.marker() } } });
    apply(&marker, &mut document);
    serde_json::from_value(document).unwrap()
}

fn cluster(endpoint: Option<&str>) -> Cluster {
    let endpoint = endpoint.map(address);
    let endpoint = endpoint.map(|Address { host, port }| json!({ "host": host, "port": port }));
    let spec = json!({
        "controlPlaneEndpoint": endpoint,
        "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "edge" },
        "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
    });
    serde_json::from_value(json!({ "metadata": { "name": "edge", "namespace": "metal" }, "spec": spec })).unwrap()
}

fn value(from: &str, state: SourceState) -> Option<SourceValue> {
    Some(SourceValue {
        from: from.to_owned(),
        state,
        idle: None,
    })
}

pub(crate) fn known(text: &str) -> SourceState {
    SourceState::Address(address(text))
}

fn forbidden() -> SourceState {
    SourceState::Forbidden {
        verb: "list",
        resource: "oddcontrolplanes.example.io".to_owned(),
    }
}

pub(crate) fn control_plane(state: SourceState) -> SourceValues {
    SourceValues {
        control_plane: value("KamajiControlPlane edge", state),
        ..SourceValues::default()
    }
}

fn input<'a>(object: &'a Metal3Cluster, cluster: &'a Cluster, source_values: &'a SourceValues) -> ResolveInput<'a> {
    ResolveInput {
        object,
        cluster,
        is_secondary: false,
        source_values,
        is_refused: false,
        now: at(1000),
    }
}

fn resolve_for(
    object: &Metal3Cluster,
    cluster: &Cluster,
    is_secondary: bool,
    source_values: &SourceValues,
) -> Resolution {
    resolve(&ResolveInput {
        is_secondary,
        ..input(object, cluster, source_values)
    })
    .unwrap()
}

/// The resolution for a Primary whose source is a control plane in this state.
fn resolve_from(object: &Metal3Cluster, endpoint: Option<&str>, state: SourceState) -> Resolution {
    resolve_for(object, &cluster(endpoint), false, &control_plane(state))
}

/// Status, reason and message of the endpoint condition.
fn condition(resolution: &Resolution) -> (ConditionStatus, String, String) {
    let condition = resolution.state.condition(None, at(0));
    (condition.status, condition.reason, condition.message)
}

/// The same of the condition of the drift.
fn drift(resolution: &Resolution) -> (ConditionStatus, String, String) {
    let condition = resolution.drift.as_ref().unwrap().condition(None, at(0)).unwrap();
    (condition.status, condition.reason, condition.message)
}

/// Asserts reason and part of the message of an endpoint condition that is false.
fn assert_missing(resolution: &Resolution, expected: &str, part: &str) {
    let (status, reason, message) = condition(resolution);
    assert_eq!(
        (status, reason.as_str()),
        (ConditionStatus::False, expected),
        "{message}"
    );
    assert!(message.contains(part), "{message}");
}

/// The effective endpoint, and its source.
fn effective(resolution: &Resolution) -> Option<String> {
    let endpoint = resolution.endpoint.as_ref()?;
    let (host, port) = (endpoint.host.as_ref().unwrap(), endpoint.port.unwrap());
    Some(format!("{host}:{port} {:?}", endpoint.source.unwrap()))
}
