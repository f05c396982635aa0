//! The Cluster has an endpoint. It is the truth: certificates, kubeconfigs and kubelets hold it.

use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType};

use super::{Found, Known, Question, Resolution, depends_on, differs, known, named, shown};
use crate::endpoint::address::Address;
use crate::endpoint::own::{Derived, Own};
use crate::endpoint::reading::Heard;
use crate::endpoint::said::{Drift, Standing, refusal};

pub(super) fn settle(question: &Question<'_>, asked: EndpointSourceType, own: &Own, fixed: &Address) -> Resolution {
    let source = depends_on(asked, own);
    let found = Found {
        address: fixed.clone(),
        origin: origin(question, own, source, fixed),
        from: None,
    };
    let found = Found {
        from: question.readings.of(found.origin).map(|reading| reading.from.clone()),
        ..found
    };
    let known = match conflict(question, own, source, fixed) {
        Some(conflict) => Err(conflict),
        None => Ok(known(question, &found)),
    };
    let (standing, nudge, again) = match known {
        Err(conflict) => (Standing::Conflict(conflict), None, None),
        Ok(Known { note, nudge, again }) => {
            let origin = found.origin;
            (Standing::Known { origin, note }, nudge, again)
        }
    };
    Resolution {
        endpoint: Some(shown(question, &found)),
        write: follow(own, &found),
        is_provisioned: true,
        standing,
        drift: source.and_then(|source| drift(question, asked, own, source, fixed)),
        nudge,
        again,
    }
}

/// Where the endpoint came from, as far as that can still be told.
fn origin(question: &Question<'_>, own: &Own, source: Option<EndpointOrigin>, fixed: &Address) -> EndpointOrigin {
    match own {
        Own::Typed(address) if address == fixed => EndpointOrigin::Spec,
        Own::Derived(derived) if derived.address == *fixed => derived.origin,
        _ => {
            let agrees = |origin: &EndpointOrigin| {
                let reading = question.readings.of(*origin);
                reading.is_some_and(|reading| reading.heard == Heard::Address(fixed.clone()))
            };
            source.filter(agrees).unwrap_or(EndpointOrigin::Cluster)
        }
    }
}

/// What was derived follows the Cluster. What a person typed stays.
fn follow(own: &Own, found: &Found) -> Option<Derived> {
    match own {
        Own::Typed(_) => None,
        Own::Derived(derived) if derived.address == found.address => None,
        Own::Derived(_) | Own::Unset { .. } => Some(Derived {
            address: found.address.clone(),
            origin: found.origin,
        }),
    }
}

/// What contradicts the Cluster: what a person typed here, or the source that a person relies on beside it.
fn conflict(question: &Question<'_>, own: &Own, source: Option<EndpointOrigin>, fixed: &Address) -> Option<String> {
    let Own::Typed(typed) = own else { return None };
    if typed != fixed {
        let both = differs(typed, "the Cluster", fixed);
        return Some(format!("{both}, which counts; leave it out here"));
    }
    let reading = question.readings.of(source?)?;
    match &reading.heard {
        Heard::Address(address) if address != fixed => {
            let both = differs(typed, &reading.from, address);
            Some(format!(
                "{both}; the Cluster has {fixed}, which counts: change {}",
                reading.from
            ))
        }
        _ => None,
    }
}

/// Whether the source of a derived endpoint still says the same.
fn drift(
    question: &Question<'_>,
    asked: EndpointSourceType,
    own: &Own,
    source: EndpointOrigin,
    fixed: &Address,
) -> Option<Drift> {
    if matches!(own, Own::Typed(_)) {
        return None;
    }
    let reading = question.readings.of(source)?;
    let from = named(Some(reading), source);
    match &reading.heard {
        Heard::Address(address) if address != fixed => Some(Drift::Changed(format!(
            "{from} says {address}, the Cluster has {fixed}, which counts and is not changed; change {from} back"
        ))),
        Heard::Invalid(why) => Some(Drift::Changed(format!(
            "{from}: {why}; the Cluster has {fixed}, which counts and is not changed"
        ))),
        Heard::Address(_) | Heard::Nothing => Some(Drift::None),
        Heard::Pending(why) => Some(Drift::SourceNotFound(format!("{from}: {why}; {fixed} is kept"))),
        Heard::Absent => Some(Drift::SourceNotFound(format!(
            "{from} does not exist any more; {fixed} is kept"
        ))),
        // Without a choice of source, the objects of others are only a way to know early.
        Heard::Forbidden { .. } if asked == EndpointSourceType::Auto => None,
        Heard::Forbidden { verb, resource } => Some(Drift::SourceForbidden(format!(
            "{}; {fixed} is kept",
            refusal(&from, verb, resource)
        ))),
        Heard::Unknown(_) => Some(Drift::Unclear),
    }
}
