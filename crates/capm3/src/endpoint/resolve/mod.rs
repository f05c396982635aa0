//! Which endpoint counts, and what follows: what is written back, whether the infrastructure is there, what is said.

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::cluster::ENDPOINT_READY;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType, Metal3Cluster, ResolvedEndpoint};
use metal3_api::meta::{ConditionStatus, Time};

use super::address::Address;
use super::own::{Derived, Own, own, word};
use super::reading::{Heard, Reading, Readings, asked};
use super::said::{Drift, Missing, Standing, wake};

mod fixed;
mod open;

/// Before the Cluster has an endpoint, a derived one is written at most this often.
pub const PACE: Duration = Duration::from_secs(10);
/// How long a source may go on failing for want of our endpoint after it was written, before it is said to sleep.
pub const LATE: Duration = Duration::from_secs(5);

/// All that decides about the endpoint of one object that belongs to a Cluster.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// Its Cluster.
    pub cluster: &'a Cluster,
    /// Whether the Cluster's infrastructure is something else.
    pub is_secondary: bool,
    /// What others say.
    pub readings: &'a Readings,
    /// Whether the server refused to let us write the endpoint, because somebody else looks after the field.
    pub is_refused: bool,
    /// The time.
    pub now: Time,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The endpoint that counts, and where it came from.
    pub endpoint: Option<ResolvedEndpoint>,
    /// What is to be written into the object.
    pub write: Option<Derived>,
    /// Whether the Cluster need not wait for the object.
    pub is_provisioned: bool,
    /// Whether the endpoint is known.
    pub standing: Standing,
    /// Whether the source still says what it said; nothing where that is not asked.
    pub drift: Option<Drift>,
    /// The source sleeps although this endpoint of it is in the object, and was not woken for it yet.
    pub nudge: Option<(EndpointOrigin, Address)>,
    /// When to look again although nothing changed.
    pub again: Option<Duration>,
}

/// What was found at a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) address: Address,
    pub(super) origin: EndpointOrigin,
    pub(super) from: Option<String>,
}

/// Decides. Nothing for an object whose endpoint is what is written in it, as ever.
#[must_use]
pub fn resolve(question: &Question<'_>) -> Option<Resolution> {
    let asked = asked(question.object, question.is_secondary)?;
    let own = own(question.object);
    let mut resolution = match Address::of_cluster(question.cluster) {
        Some(fixed) => fixed::settle(question, asked, &own, &fixed),
        None => open::settle(question, asked, &own),
    };
    if resolution.write.is_some() && question.is_refused {
        resolution.write = None;
        resolution.nudge = None;
        if Address::of_cluster(question.cluster).is_none() {
            // Cluster API reads the object, and there it is not.
            resolution.is_provisioned &= !matches!(own, Own::Unset { .. });
            let shown = &question.object.status.control_plane_endpoint;
            resolution.endpoint.clone_from(shown);
        }
        resolution.standing = Standing::Conflict(
            "spec.controlPlaneEndpoint: somebody else looks after the field and says something else; remove it there, \
             or set it to the endpoint of the source"
                .to_owned(),
        );
    }
    Some(resolution)
}

pub(super) fn sooner(one: Option<Duration>, two: Option<Duration>) -> Option<Duration> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// What a foreign source says, or what is missing there.
pub(super) fn heard(question: &Question<'_>, origin: EndpointOrigin) -> Result<Found, Missing> {
    let Some(reading) = question.readings.of(origin) else {
        return Err(Missing::unnamed(origin));
    };
    match &reading.heard {
        Heard::Address(address) => Ok(Found {
            address: address.clone(),
            origin,
            from: Some(reading.from.clone()),
        }),
        _ => Err(Missing::of(origin, reading)),
    }
}

/// The endpoint as the status shows it. The object it came from is remembered where nobody looks at it any more.
pub(super) fn shown(question: &Question<'_>, found: &Found) -> ResolvedEndpoint {
    let before = question.object.status.control_plane_endpoint.as_ref();
    let remembered = before
        .filter(|before| before.source == Some(found.origin))
        .and_then(|before| before.from.clone());
    let from = match found.origin {
        EndpointOrigin::Spec => None,
        EndpointOrigin::Cluster => question
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

/// The foreign source that an object depends on: the one it asks for, or else the one its endpoint came from.
pub(super) fn depends_on(asked: EndpointSourceType, own: &Own) -> Option<EndpointOrigin> {
    match (asked, own) {
        (EndpointSourceType::InfraCluster, _) => Some(EndpointOrigin::InfraCluster),
        (EndpointSourceType::ControlPlane, _) => Some(EndpointOrigin::ControlPlane),
        (EndpointSourceType::Service, _) => Some(EndpointOrigin::Service),
        (EndpointSourceType::IPPool, _) => Some(EndpointOrigin::IPPool),
        (EndpointSourceType::Auto, Own::Derived(derived)) if derived.origin != EndpointOrigin::Cluster => {
            Some(derived.origin)
        }
        (EndpointSourceType::Auto | EndpointSourceType::Spec | EndpointSourceType::Cluster, _) => None,
    }
}

/// What follows from an endpoint that is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What people are to know of its source.
    pub(super) note: Option<String>,
    pub(super) nudge: Option<(EndpointOrigin, Address)>,
    pub(super) again: Option<Duration>,
}

/// The endpoint is known. Its source may not have noticed that we took it over, and is said to sleep once it is late.
pub(super) fn known(question: &Question<'_>, found: &Found) -> Known {
    let reading = question.readings.of(found.origin);
    let reading = reading.filter(|reading| reading.heard == Heard::Address(found.address.clone()));
    let Some((reading, sleeper)) = reading.and_then(|reading| Some((reading, reading.sleeper.as_ref()?))) else {
        return Known::default();
    };
    let late = late(question);
    let is_in_place = match own(question.object) {
        Own::Typed(address) => address == found.address,
        Own::Derived(derived) => derived.address == found.address,
        Own::Unset { .. } => false,
    };
    let was_woken = sleeper.woken_for.as_deref() == Some(&*found.address.to_string());
    // One that failed long before we wrote does not try again soon.
    let old = sleeper.since.map_or(late, |since| left(LATE, since, question.now));
    let is_due = is_in_place && !was_woken && (late.is_none() || old.is_none());
    Known {
        note: late.is_none().then(|| wake(question.object, reading)),
        nudge: is_due.then(|| (found.origin, found.address.clone())),
        again: if is_due || was_woken { late } else { sooner(late, old) },
    }
}

/// How long until a source that still fails is late; nothing once it is. Counted from when the endpoint became known.
fn late(question: &Question<'_>) -> Option<Duration> {
    let conditions = &question.object.status.conditions;
    let ready = conditions.iter().find(|one| one.type_ == ENDPOINT_READY);
    let since = ready.filter(|ready| ready.status == ConditionStatus::True);
    let Some(since) = since.map(|ready| ready.last_transition_time) else {
        return Some(LATE);
    };
    left(LATE, since, question.now)
}

/// What is left of a time that began then.
pub(super) fn left(whole: Duration, began: Time, now: Time) -> Option<Duration> {
    let passed = now
        .get()
        .signed_duration_since(began.get())
        .to_std()
        .unwrap_or_default();
    whole.checked_sub(passed).filter(|rest| !rest.is_zero())
}

/// A typed endpoint and another one.
pub(super) fn differs(typed: &Address, other: &str, address: &Address) -> String {
    format!("spec.controlPlaneEndpoint says {typed}, {other} says {address}")
}

/// A source by name, for people.
pub(super) fn named(reading: Option<&Reading>, origin: EndpointOrigin) -> String {
    reading.map_or_else(|| word(origin).to_owned(), |reading| reading.from.clone())
}
