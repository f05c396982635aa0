//! The conditions of the endpoint: what is missing, where, and the remedy.

use kube_core::ResourceExt as _;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::cluster::{self as reason, ENDPOINT_DRIFTED, ENDPOINT_READY};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_api::meta::{Condition, Time};
use metal3_runtime::access::verb::{Create, Verb as _};
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::reason::Reason;

use super::source::{SourceState, SourceValue, SourceValues};

/// The annotation that triggers an idle control plane. Any change of the object does.
pub const TOUCH_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/endpoint-taken";

/// State of the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointState {
    /// Known.
    Known {
        /// Its source.
        origin: EndpointOrigin,
        /// A note for the message.
        note: Option<String>,
    },
    /// Not known.
    Missing(Missing),
    /// Two endpoints contradict each other; the message names both.
    Conflict(String),
}

/// The reason for a missing endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Reason of the condition.
    pub reason: Reason,
    /// Message of the condition.
    pub message: String,
}

/// Drift between the source and the endpoint of the Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// None.
    None,
    /// The source has another value.
    Changed(String),
    /// The source does not exist any more.
    SourceNotFound(String),
    /// The source may not be read any more.
    SourceForbidden(String),
    /// Unknown for now: the last condition is kept.
    Unclear,
}

/// The reasons of an endpoint from a source: it is known, and it is waited for.
const fn reasons(origin: EndpointOrigin) -> (Reason, Reason) {
    match origin {
        EndpointOrigin::Spec => (reason::REASON_ENDPOINT_FROM_SPEC, reason::REASON_WAITING_FOR_SPEC),
        EndpointOrigin::Cluster => (reason::REASON_ENDPOINT_FROM_CLUSTER, reason::REASON_WAITING_FOR_CLUSTER),
        EndpointOrigin::InfraCluster => (
            reason::REASON_ENDPOINT_FROM_INFRA_CLUSTER,
            reason::REASON_WAITING_FOR_INFRA_CLUSTER,
        ),
        EndpointOrigin::ControlPlane => (
            reason::REASON_ENDPOINT_FROM_CONTROL_PLANE,
            reason::REASON_WAITING_FOR_CONTROL_PLANE,
        ),
        EndpointOrigin::Service => (reason::REASON_ENDPOINT_FROM_SERVICE, reason::REASON_WAITING_FOR_SERVICE),
        EndpointOrigin::IPPool => (
            reason::REASON_ENDPOINT_FROM_IP_POOL,
            reason::REASON_WAITING_FOR_IP_ADDRESS,
        ),
    }
}

impl Missing {
    /// The reason at one source.
    pub(super) fn at_source(origin: EndpointOrigin, value: &SourceValue) -> Self {
        let (from, (_, waiting)) = (&value.from, reasons(origin));
        let (reason, message) = match &value.state {
            SourceState::Absent if origin == EndpointOrigin::IPPool => {
                (waiting, format!("waiting for the creation of {from}"))
            }
            SourceState::Pending(why) => (waiting, format!("{from}: {why}")),
            SourceState::Absent => (
                reason::REASON_SOURCE_NOT_FOUND,
                format!("{from} does not exist; create it, or name another source in spec.controlPlaneEndpointSource"),
            ),
            SourceState::Forbidden { verb, resource } => {
                (reason::REASON_SOURCE_FORBIDDEN, forbidden_message(from, verb, resource))
            }
            SourceState::Invalid(why) => (reason::REASON_ENDPOINT_INVALID, format!("{from}: {why}")),
            SourceState::Unknown(why) => (waiting, format!("{from} cannot be read: {why}")),
            SourceState::Address(_) | SourceState::Empty => (
                waiting,
                format!("waiting for {from} to report the endpoint of the API server"),
            ),
        };
        Self { reason, message }
    }

    /// No source object is named.
    pub(super) fn unnamed(origin: EndpointOrigin) -> Self {
        let remedy = match origin {
            EndpointOrigin::InfraCluster => {
                "name an object of another kind in spec.infrastructureRef of the Cluster, or in \
                 spec.controlPlaneEndpointSource.objectRef"
            }
            EndpointOrigin::ControlPlane => {
                "name the control plane in spec.controlPlaneRef of the Cluster, or in \
                 spec.controlPlaneEndpointSource.objectRef"
            }
            EndpointOrigin::Service => "name the Service in spec.controlPlaneEndpointSource.service",
            EndpointOrigin::IPPool => "name the pool in spec.controlPlaneEndpointSource.ipPool",
            EndpointOrigin::Spec | EndpointOrigin::Cluster => "set spec.controlPlaneEndpoint",
        };
        Self {
            reason: reasons(origin).1,
            message: format!("no source of the endpoint is named: {remedy}"),
        }
    }

    /// The endpoint in the spec is missing.
    pub(super) fn in_spec() -> Self {
        Self {
            reason: reasons(EndpointOrigin::Spec).1,
            message: "spec.controlPlaneEndpoint: host or port is missing; set them to where the API server is reached"
                .to_owned(),
        }
    }

    /// The endpoint of the Cluster is missing.
    pub(super) fn cluster(cluster: &Cluster) -> Self {
        Self {
            reason: reasons(EndpointOrigin::Cluster).1,
            message: format!(
                "waiting for spec.controlPlaneEndpoint of the Cluster {}",
                cluster.name_any()
            ),
        }
    }

    /// No source of `Auto` has an endpoint.
    pub(super) fn automatic(cluster: &Cluster, source_values: &SourceValues) -> Self {
        let mut missing = Self::cluster(cluster);
        let others = [EndpointOrigin::InfraCluster, EndpointOrigin::ControlPlane];
        for origin in others {
            if let Some(value) = source_values.of(origin) {
                missing.message.push_str("; ");
                missing.message.push_str(&Self::at_source(origin, value).message);
            }
        }
        missing
    }
}

/// A forbidden request, with the remedy.
pub(super) fn forbidden_message(from: &str, verb: &str, resource: &str) -> String {
    if verb == Create::NAME {
        return format!(
            "{from}: this manager may not {verb} {resource}; grant its service account {verb} on it or, if granted, \
             raise the quota or change the policy that forbids it: the log of this manager contains the response of the \
             API server. It is retried each minute"
        );
    }
    format!(
        "{from}: this manager may not {verb} {resource}; grant its service account list and watch on it; it is retried \
         each minute"
    )
}

/// An idle control plane, with the remedy.
pub(super) fn idle_message(object: &Metal3Cluster, value: &SourceValue) -> String {
    let (kind, name) = value.from.split_once(' ').unwrap_or((&value.from, ""));
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{} failed before the endpoint was here, and may be idle for up to 1000 s; any change triggers a retry: \
         kubectl -n {namespace} annotate {} {name} {TOUCH_ANNOTATION}=$(date +%s) --overwrite",
        value.from,
        kind.to_lowercase(),
    )
}

impl EndpointState {
    /// Whether the endpoint is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known { .. })
    }

    /// The condition.
    #[must_use]
    pub fn condition(&self, generation: Option<i64>, now: Time) -> Condition {
        let (statement, message) = match self {
            Self::Known { origin, note } => (
                ConditionBuilder::mark_true(ENDPOINT_READY, reasons(*origin).0),
                note.as_deref().unwrap_or_default(),
            ),
            Self::Missing(Missing { reason, message }) => (
                ConditionBuilder::mark_false(ENDPOINT_READY, *reason, Severity::Info, ""),
                message.as_str(),
            ),
            Self::Conflict(message) => {
                let reason = reason::REASON_ENDPOINT_CONFLICT;
                let statement = ConditionBuilder::mark_false(ENDPOINT_READY, reason, Severity::Warning, "");
                (statement, message.as_str())
            }
        };
        with_message(statement.standard(generation, now), message)
    }
}

impl Drift {
    /// The condition, which is true in the bad case; `None` to keep the last one.
    #[must_use]
    pub fn condition(&self, generation: Option<i64>, now: Time) -> Option<Condition> {
        let unknown = |reason| ConditionBuilder::mark_unknown(ENDPOINT_DRIFTED, reason, "");
        let (statement, message) = match self {
            Self::Unclear => return None,
            Self::None => (
                ConditionBuilder::mark_false(ENDPOINT_DRIFTED, reason::REASON_NOT_DRIFTED, Severity::Info, ""),
                "",
            ),
            Self::Changed(message) => (
                ConditionBuilder::mark_true(ENDPOINT_DRIFTED, reason::REASON_SOURCE_CHANGED),
                message.as_str(),
            ),
            Self::SourceNotFound(message) => (unknown(reason::REASON_SOURCE_NOT_FOUND), message.as_str()),
            Self::SourceForbidden(message) => (unknown(reason::REASON_SOURCE_FORBIDDEN), message.as_str()),
        };
        Some(with_message(statement.standard(generation, now), message))
    }
}

/// The condition with a message. A true condition has a message only through this function.
pub(crate) fn with_message(condition: Condition, message: &str) -> Condition {
    Condition {
        message: message.to_owned(),
        ..condition
    }
}
