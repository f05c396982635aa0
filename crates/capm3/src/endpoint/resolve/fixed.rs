//! The Cluster has an endpoint. It is the source of truth: certificates, kubeconfigs and kubelets contain it.

use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType};

use super::{
    FoundEndpoint, KnownEndpoint, Resolution, ResolveInput, known_endpoint, mismatch, resolved_endpoint, source_origin,
};
use crate::endpoint::address::Address;
use crate::endpoint::conditions::{Drift, EndpointState, forbidden_message};
use crate::endpoint::source::SourceState;
use crate::endpoint::spec_endpoint::{Derived, SpecEndpoint};

pub(super) fn resolve(
    input: &ResolveInput<'_>,
    source_type: EndpointSourceType,
    spec_endpoint: &SpecEndpoint,
    fixed: &Address,
) -> Resolution {
    let source = source_origin(source_type, spec_endpoint);
    let origin = origin(input, spec_endpoint, source, fixed);
    let found = FoundEndpoint {
        address: fixed.clone(),
        origin,
        from: input.source_values.of(origin).map(|value| value.from.clone()),
    };
    let (state, known) = match conflict(input, spec_endpoint, source, fixed) {
        Some(conflict) => (EndpointState::Conflict(conflict), KnownEndpoint::default()),
        None => {
            let mut known = known_endpoint(input, &found);
            let note = known.note.take();
            (EndpointState::Known { origin, note }, known)
        }
    };
    Resolution {
        endpoint: Some(resolved_endpoint(input, &found)),
        write: follow(spec_endpoint, &found),
        is_provisioned: true,
        state,
        drift: source.and_then(|source| drift(input, source_type, spec_endpoint, source, fixed)),
        touch: known.touch,
        requeue_after: known.requeue_after,
    }
}

/// The source of the endpoint, as far as it is known.
fn origin(
    input: &ResolveInput<'_>,
    spec_endpoint: &SpecEndpoint,
    source: Option<EndpointOrigin>,
    fixed: &Address,
) -> EndpointOrigin {
    match spec_endpoint {
        SpecEndpoint::Typed(address) if address == fixed => EndpointOrigin::Spec,
        SpecEndpoint::Derived(derived) if derived.address == *fixed => derived.origin,
        _ => {
            let agrees = |origin: &EndpointOrigin| {
                let value = input.source_values.of(*origin);
                value.is_some_and(|value| value.state == SourceState::Address(fixed.clone()))
            };
            source.filter(agrees).unwrap_or(EndpointOrigin::Cluster)
        }
    }
}

/// A derived endpoint follows the Cluster. A user's value is kept.
fn follow(spec_endpoint: &SpecEndpoint, found: &FoundEndpoint) -> Option<Derived> {
    match spec_endpoint {
        SpecEndpoint::Typed(_) => None,
        SpecEndpoint::Derived(derived) if derived.address == found.address => None,
        SpecEndpoint::Derived(_) | SpecEndpoint::Unset => Some(Derived {
            address: found.address.clone(),
            origin: found.origin,
        }),
    }
}

/// How the user's value contradicts the Cluster, or else the requested source contradicts both.
fn conflict(
    input: &ResolveInput<'_>,
    spec_endpoint: &SpecEndpoint,
    source: Option<EndpointOrigin>,
    fixed: &Address,
) -> Option<String> {
    let SpecEndpoint::Typed(typed) = spec_endpoint else {
        return None;
    };
    if typed != fixed {
        let both = mismatch(typed, "the Cluster", fixed);
        return Some(format!("{both}, which decides; remove it here"));
    }
    let value = input.source_values.of(source?)?;
    match &value.state {
        SourceState::Address(address) if address != fixed => {
            let both = mismatch(typed, &value.from, address);
            Some(format!(
                "{both}; the Cluster has {fixed}, which decides: change {}",
                value.from
            ))
        }
        _ => None,
    }
}

/// Whether the source of a derived endpoint has changed.
fn drift(
    input: &ResolveInput<'_>,
    source_type: EndpointSourceType,
    spec_endpoint: &SpecEndpoint,
    source: EndpointOrigin,
    fixed: &Address,
) -> Option<Drift> {
    if matches!(spec_endpoint, SpecEndpoint::Typed(_)) {
        return None;
    }
    let value = input.source_values.of(source)?;
    let from = &value.from;
    match &value.state {
        SourceState::Address(address) if address != fixed => Some(Drift::Changed(format!(
            "{from} has {address}, the Cluster has {fixed}, which decides and is not changed; change {from} back"
        ))),
        SourceState::Invalid(why) => Some(Drift::Changed(format!(
            "{from}: {why}; the Cluster has {fixed}, which decides and is not changed"
        ))),
        SourceState::Address(_) | SourceState::Empty => Some(Drift::None),
        SourceState::Pending(why) => Some(Drift::SourceNotFound(format!("{from}: {why}; {fixed} is kept"))),
        SourceState::Absent => Some(Drift::SourceNotFound(format!(
            "{from} does not exist any more; {fixed} is kept"
        ))),
        // With `Auto`, other objects provide the endpoint only until the Cluster has one.
        SourceState::Forbidden { .. } if source_type == EndpointSourceType::Auto => None,
        SourceState::Forbidden { verb, resource } => Some(Drift::SourceForbidden(format!(
            "{}; {fixed} is kept",
            forbidden_message(from, verb, resource)
        ))),
        SourceState::Unknown(_) => Some(Drift::Unclear),
    }
}
