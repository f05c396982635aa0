//! What is said of the endpoint: conditions that tell people what is missing, where, and what to do.

use kube_core::ResourceExt as _;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::cluster::{
    ENDPOINT_DRIFTED, ENDPOINT_READY, REASON_ENDPOINT_CONFLICT, REASON_ENDPOINT_INVALID, REASON_SOURCE_CHANGED,
    REASON_SOURCE_FORBIDDEN, REASON_SOURCE_NOT_FOUND,
};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_api::meta::{Condition, Time};
use metal3_runtime::access::verb::{Create, Verb as _};
use metal3_runtime::condition::{ConditionBuilder, Severity};
use metal3_runtime::reason::Reason;

use super::reading::{Heard, Reading, Readings};

/// The annotation that wakes a control plane which does not look again by itself. Any change of the object does.
pub const NUDGE_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/endpoint-taken";

/// Whether the endpoint is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Known {
        /// From there.
        origin: EndpointOrigin,
        /// What is worth knowing all the same.
        note: Option<String>,
    },
    /// It is not.
    Missing(Missing),
    /// Two endpoints contradict each other; both are named.
    Conflict(String),
}

/// Why an endpoint is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// Whether the source of an endpoint still says what the Cluster has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// It does.
    None,
    /// It says something else.
    Changed(String),
    /// It is gone.
    SourceNotFound(String),
    /// We may not look any more.
    SourceForbidden(String),
    /// Nobody can say for now: what was said before stands.
    Unclear,
}

const fn from(origin: EndpointOrigin) -> Reason {
    match origin {
        EndpointOrigin::Spec => Reason::new("EndpointFromSpec"),
        EndpointOrigin::Cluster => Reason::new("EndpointFromCluster"),
        EndpointOrigin::InfraCluster => Reason::new("EndpointFromInfraCluster"),
        EndpointOrigin::ControlPlane => Reason::new("EndpointFromControlPlane"),
        EndpointOrigin::Service => Reason::new("EndpointFromService"),
        EndpointOrigin::IPPool => Reason::new("EndpointFromIPPool"),
    }
}

const fn waiting_for(origin: EndpointOrigin) -> Reason {
    match origin {
        EndpointOrigin::Spec => Reason::new("WaitingForSpec"),
        EndpointOrigin::Cluster => Reason::new("WaitingForCluster"),
        EndpointOrigin::InfraCluster => Reason::new("WaitingForInfraCluster"),
        EndpointOrigin::ControlPlane => Reason::new("WaitingForControlPlane"),
        EndpointOrigin::Service => Reason::new("WaitingForService"),
        EndpointOrigin::IPPool => Reason::new("WaitingForIPAddress"),
    }
}

impl Missing {
    /// What one source lacks.
    pub(super) fn of(origin: EndpointOrigin, reading: &Reading) -> Self {
        let from = &reading.from;
        let (reason, message) = match &reading.heard {
            Heard::Absent if origin == EndpointOrigin::IPPool => {
                (waiting_for(origin), format!("waiting for {from} to be made"))
            }
            Heard::Pending(why) => (waiting_for(origin), format!("{from}: {why}")),
            Heard::Absent => (
                Reason::new(REASON_SOURCE_NOT_FOUND),
                format!("{from} does not exist; create it, or name another source in spec.controlPlaneEndpointSource"),
            ),
            Heard::Forbidden { verb, resource } => {
                (Reason::new(REASON_SOURCE_FORBIDDEN), refusal(from, verb, resource))
            }
            Heard::Invalid(why) => (Reason::new(REASON_ENDPOINT_INVALID), format!("{from}: {why}")),
            Heard::Unknown(why) => (waiting_for(origin), format!("{from} cannot be read: {why}")),
            Heard::Address(_) | Heard::Nothing => (
                waiting_for(origin),
                format!("waiting for {from} to say where the API server is reached"),
            ),
        };
        Self { reason, message }
    }

    /// Nothing names the object that is to be the source.
    pub(super) fn unnamed(origin: EndpointOrigin) -> Self {
        let cure = match origin {
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
            reason: waiting_for(origin),
            message: format!("no object is named that could say where the API server is reached: {cure}"),
        }
    }

    /// The object itself is to say it.
    pub(super) fn typed() -> Self {
        Self {
            reason: waiting_for(EndpointOrigin::Spec),
            message: "spec.controlPlaneEndpoint: host or port is missing; set them to where the API server is reached"
                .to_owned(),
        }
    }

    /// The Cluster is to say it.
    pub(super) fn cluster(cluster: &Cluster) -> Self {
        Self {
            reason: waiting_for(EndpointOrigin::Cluster),
            message: format!(
                "waiting for spec.controlPlaneEndpoint of the Cluster {}",
                cluster.name_any()
            ),
        }
    }

    /// Nobody says it yet.
    pub(super) fn anywhere(cluster: &Cluster, readings: &Readings) -> Self {
        let mut waiting = Self::cluster(cluster);
        let others = [EndpointOrigin::InfraCluster, EndpointOrigin::ControlPlane];
        for origin in others {
            if let Some(reading) = readings.of(origin) {
                waiting.message.push_str("; ");
                waiting.message.push_str(&Self::of(origin, reading).message);
            }
        }
        waiting
    }
}

/// What we may not do, and who can change that.
pub(super) fn refusal(from: &str, verb: &str, resource: &str) -> String {
    if verb == Create::NAME {
        return format!(
            "{from}: this manager may not {verb} {resource}; grant its service account {verb} there, or, where it has \
             that, make room in the quota or admit it in the policy that forbids it: the answer of the API server is in \
             the log of this manager. It tries again each minute"
        );
    }
    format!(
        "{from}: this manager may not {verb} {resource}; grant its service account list and watch there, it tries again \
         each minute"
    )
}

/// That a source sleeps, and what wakes it.
pub(super) fn wake(object: &Metal3Cluster, reading: &Reading) -> String {
    let (kind, name) = reading.from.split_once(' ').unwrap_or((&reading.from, ""));
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{} failed before the endpoint was here, and may sleep for up to 1000 s before it looks again; any change wakes \
         it: kubectl -n {namespace} annotate {} {name} {NUDGE_ANNOTATION}=$(date +%s) --overwrite",
        reading.from,
        kind.to_lowercase(),
    )
}

impl Standing {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        matches!(self, Self::Known { .. })
    }

    /// As a condition of the object.
    #[must_use]
    pub fn condition(&self, generation: Option<i64>, now: Time) -> Condition {
        let (statement, note) = match self {
            Self::Known { origin, note } => (ConditionBuilder::mark_true(ENDPOINT_READY, from(*origin)), note.clone()),
            Self::Missing(Missing { reason, message }) => (
                ConditionBuilder::mark_false(ENDPOINT_READY, *reason, Severity::Info, message.clone()),
                None,
            ),
            Self::Conflict(message) => {
                let reason = Reason::new(REASON_ENDPOINT_CONFLICT);
                let statement =
                    ConditionBuilder::mark_false(ENDPOINT_READY, reason, Severity::Warning, message.clone());
                (statement, None)
            }
        };
        let condition = statement.standard(generation, now);
        match note {
            Some(message) => Condition { message, ..condition },
            None => condition,
        }
    }
}

impl Drift {
    /// As a condition of the object, which holds in the bad case.
    #[must_use]
    pub fn condition(&self, generation: Option<i64>, now: Time) -> Option<Condition> {
        let statement = match self {
            Self::Unclear => return None,
            Self::None => ConditionBuilder::mark_false(ENDPOINT_DRIFTED, Reason::new("NotDrifted"), Severity::Info, ""),
            Self::Changed(_) => ConditionBuilder::mark_true(ENDPOINT_DRIFTED, Reason::new(REASON_SOURCE_CHANGED)),
            Self::SourceNotFound(message) => {
                ConditionBuilder::mark_unknown(ENDPOINT_DRIFTED, Reason::new(REASON_SOURCE_NOT_FOUND), message.clone())
            }
            Self::SourceForbidden(message) => {
                ConditionBuilder::mark_unknown(ENDPOINT_DRIFTED, Reason::new(REASON_SOURCE_FORBIDDEN), message.clone())
            }
        };
        let condition = statement.standard(generation, now);
        Some(match self {
            Self::Changed(message) => Condition {
                message: message.clone(),
                ..condition
            },
            _ => condition,
        })
    }
}
