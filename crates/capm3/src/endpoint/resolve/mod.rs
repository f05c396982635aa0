//! Resolves the effective endpoint: the write to the spec, whether the infrastructure is provisioned, and the
//! condition.

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::cluster::ENDPOINT_READY;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType, Metal3Cluster, ResolvedEndpoint};
use metal3_api::meta::{ConditionStatus, Time};

use super::address::Address;
use super::conditions::{Drift, EndpointState, Missing, idle_message};
use super::source::{SourceState, SourceValue, SourceValues, source_type};
use super::spec_endpoint::{Derived, SpecEndpoint, origin_name, spec_endpoint};

mod fixed;
mod open;

/// Least interval of writes of a derived endpoint before the Cluster has one.
pub const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which a source that still fails counts as idle.
pub const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Input of [`resolve`], for an object that belongs to a Cluster.
#[derive(Debug, Clone, Copy)]
pub struct ResolveInput<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// Its Cluster.
    pub cluster: &'a Cluster,
    /// Whether the Cluster names another infrastructure.
    pub is_secondary: bool,
    /// The values of the sources.
    pub source_values: &'a SourceValues,
    /// Whether another field manager owns the endpoint.
    pub is_refused: bool,
    /// The time.
    pub now: Time,
}

/// The resolved endpoint and its consequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The effective endpoint, and its source.
    pub endpoint: Option<ResolvedEndpoint>,
    /// The endpoint to write into the spec.
    pub write: Option<Derived>,
    /// Whether the infrastructure is provisioned.
    pub is_provisioned: bool,
    /// State of the endpoint.
    pub state: EndpointState,
    /// Drift of the source; `None` when not requested.
    pub drift: Option<Drift>,
    /// The idle source to touch, and the endpoint that its controller has not read.
    pub touch: Option<(EndpointOrigin, Address)>,
    /// Delay until the next reconcile.
    pub requeue_after: Option<Duration>,
}

/// An endpoint and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundEndpoint {
    pub(super) address: Address,
    pub(super) origin: EndpointOrigin,
    pub(super) from: Option<String>,
}

/// Resolves the endpoint; `None` when the endpoint is in the spec.
#[must_use]
pub fn resolve(input: &ResolveInput<'_>) -> Option<Resolution> {
    let source_type = source_type(input.object, input.is_secondary)?;
    let spec_endpoint = spec_endpoint(input.object);
    let mut resolution = match Address::of_cluster(input.cluster) {
        Some(fixed) => fixed::resolve(input, source_type, &spec_endpoint, &fixed),
        None => open::resolve(input, source_type, &spec_endpoint),
    };
    if resolution.write.is_some() && input.is_refused {
        resolution.write = None;
        resolution.touch = None;
        if Address::of_cluster(input.cluster).is_none() {
            // Cluster API reads the spec, which has no endpoint.
            resolution.is_provisioned &= spec_endpoint.address().is_some();
            let resolved_endpoint = &input.object.status.control_plane_endpoint;
            resolution.endpoint.clone_from(resolved_endpoint);
        }
        resolution.state = EndpointState::Conflict(
            "spec.controlPlaneEndpoint: another field manager owns the field with another value; remove it there, or \
             set it to the endpoint of the source"
                .to_owned(),
        );
    }
    Some(resolution)
}

/// The earlier of two delays.
pub(crate) fn earlier(one: Option<Duration>, two: Option<Duration>) -> Option<Duration> {
    [one, two].into_iter().flatten().min()
}

/// The endpoint of another object, or the reason why there is none.
pub(super) fn from_source(input: &ResolveInput<'_>, origin: EndpointOrigin) -> Result<FoundEndpoint, Missing> {
    let Some(value) = input.source_values.of(origin) else {
        return Err(Missing::unnamed(origin));
    };
    match &value.state {
        SourceState::Address(address) => Ok(FoundEndpoint {
            address: address.clone(),
            origin,
            from: Some(value.from.clone()),
        }),
        _ => Err(Missing::at_source(origin, value)),
    }
}

/// The endpoint in the status. The name of the source object is kept when it is not read any more.
pub(super) fn resolved_endpoint(input: &ResolveInput<'_>, found: &FoundEndpoint) -> ResolvedEndpoint {
    let before = input.object.status.control_plane_endpoint.as_ref();
    let remembered = before
        .filter(|before| before.source == Some(found.origin))
        .and_then(|before| before.from.clone());
    let from = match found.origin {
        EndpointOrigin::Spec => None,
        EndpointOrigin::Cluster => input
            .cluster
            .metadata
            .name
            .as_ref()
            .map(|name| format!("Cluster {name}")),
        _ => found.from.clone().or(remembered),
    };
    ResolvedEndpoint {
        host: Some(found.address.host.clone()),
        port: Some(i32::from(found.address.port)),
        source: Some(found.origin),
        from,
    }
}

/// The source of an object: the requested one, or else that of its endpoint.
pub(super) fn source_origin(source_type: EndpointSourceType, spec_endpoint: &SpecEndpoint) -> Option<EndpointOrigin> {
    match (source_type, spec_endpoint) {
        (EndpointSourceType::InfraCluster, _) => Some(EndpointOrigin::InfraCluster),
        (EndpointSourceType::ControlPlane, _) => Some(EndpointOrigin::ControlPlane),
        (EndpointSourceType::Service, _) => Some(EndpointOrigin::Service),
        (EndpointSourceType::IPPool, _) => Some(EndpointOrigin::IPPool),
        (EndpointSourceType::Auto, SpecEndpoint::Derived(derived)) if derived.origin != EndpointOrigin::Cluster => {
            Some(derived.origin)
        }
        (EndpointSourceType::Auto | EndpointSourceType::Spec | EndpointSourceType::Cluster, _) => None,
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownEndpoint {
    /// Note for the condition.
    pub(super) note: Option<String>,
    pub(super) touch: Option<(EndpointOrigin, Address)>,
    pub(super) requeue_after: Option<Duration>,
}

/// Consequences of a known endpoint. A control plane that still fails without it counts as idle after a while.
pub(super) fn known_endpoint(input: &ResolveInput<'_>, found: &FoundEndpoint) -> KnownEndpoint {
    let value = input.source_values.of(found.origin);
    let value = value.filter(|value| value.state == SourceState::Address(found.address.clone()));
    let Some((value, idle)) = value.and_then(|value| Some((value, value.idle.as_ref()?))) else {
        return KnownEndpoint::default();
    };
    let time_until_idle = time_until_idle(input);
    let is_in_place = spec_endpoint(input.object).address() == Some(&found.address);
    let was_woken = idle.touched_for.as_deref() == Some(&*found.address.to_string());
    // A control plane that failed long before the write does not retry soon.
    let failing_for = idle
        .since
        .map_or(time_until_idle, |since| remaining(IDLE_AFTER, since, input.now));
    let is_due = is_in_place && !was_woken && (time_until_idle.is_none() || failing_for.is_none());
    KnownEndpoint {
        note: time_until_idle.is_none().then(|| idle_message(input.object, value)),
        touch: is_due.then(|| (found.origin, found.address.clone())),
        requeue_after: if is_due || was_woken {
            time_until_idle
        } else {
            earlier(time_until_idle, failing_for)
        },
    }
}

/// Time until a failing source counts as idle; `None` once it does. Counted from when the endpoint became known.
fn time_until_idle(input: &ResolveInput<'_>) -> Option<Duration> {
    let conditions = &input.object.status.conditions;
    let ready = conditions.iter().find(|one| one.type_ == ENDPOINT_READY);
    let since = ready.filter(|ready| ready.status == ConditionStatus::True);
    let Some(since) = since.map(|ready| ready.last_transition_time) else {
        return Some(IDLE_AFTER);
    };
    remaining(IDLE_AFTER, since, input.now)
}

/// The rest of a duration that started at `began`. A start that is ahead of now by more than the duration is from a clock
/// that was wrong, so the duration is over.
pub(super) fn remaining(whole: Duration, began: Time, now: Time) -> Option<Duration> {
    let passed = now.get().signed_duration_since(began.get());
    if (-passed).to_std().is_ok_and(|ahead| ahead > whole) {
        return None;
    }
    let passed = passed.to_std().unwrap_or_default();
    whole.checked_sub(passed).filter(|rest| !rest.is_zero())
}

/// Message on two different endpoints.
pub(super) fn mismatch(typed: &Address, other: &str, address: &Address) -> String {
    format!("spec.controlPlaneEndpoint is {typed}, {other} has {address}")
}

pub(super) fn source_name(value: Option<&SourceValue>, origin: EndpointOrigin) -> String {
    value.map_or_else(|| origin_name(origin).to_owned(), |value| value.from.clone())
}
