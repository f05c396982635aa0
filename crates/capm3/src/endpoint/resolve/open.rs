//! The Cluster has no endpoint yet. The endpoint of the source is written into the spec, from where Cluster API takes
//! it.

use std::time::Duration;

use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType};

use super::{
    FoundEndpoint, Resolution, ResolveInput, WRITE_INTERVAL, earlier, from_source, known_endpoint, mismatch, remaining,
    resolved_endpoint, source_name, source_origin,
};
use crate::endpoint::address::Address;
use crate::endpoint::conditions::{EndpointState, Missing};
use crate::endpoint::source::SourceState;
use crate::endpoint::spec_endpoint::{Derived, SpecEndpoint};

pub(super) fn resolve(
    input: &ResolveInput<'_>,
    source_type: EndpointSourceType,
    spec_endpoint: &SpecEndpoint,
) -> Resolution {
    // With the type `Cluster`, the Cluster does not wait for this infrastructure.
    let is_optional = source_type == EndpointSourceType::Cluster && !input.is_secondary;
    let found = find(input, source_type, spec_endpoint);
    if let (SpecEndpoint::Typed(typed), Ok(found)) = (spec_endpoint, &found)
        && *typed != found.address
    {
        return conflicting(input, typed, found);
    }
    let mut resolution = match (found, spec_endpoint) {
        (Ok(found), spec_endpoint) => accept(input, spec_endpoint, &found),
        (Err(missing), SpecEndpoint::Derived(derived)) => keep(input, source_type, derived, missing),
        (Err(missing), SpecEndpoint::Typed(_) | SpecEndpoint::Unset) => with_state(EndpointState::Missing(missing)),
    };
    resolution.is_provisioned |= is_optional;
    resolution
}

fn find(
    input: &ResolveInput<'_>,
    source_type: EndpointSourceType,
    spec_endpoint: &SpecEndpoint,
) -> Result<FoundEndpoint, Missing> {
    let typed = || match spec_endpoint {
        SpecEndpoint::Typed(address) => Some(FoundEndpoint {
            address: address.clone(),
            origin: EndpointOrigin::Spec,
            from: None,
        }),
        SpecEndpoint::Derived(_) | SpecEndpoint::Unset => None,
    };
    match source_type {
        EndpointSourceType::Spec => typed().ok_or_else(Missing::in_spec),
        EndpointSourceType::Cluster => Err(Missing::cluster(input.cluster)),
        EndpointSourceType::InfraCluster => from_source(input, EndpointOrigin::InfraCluster),
        EndpointSourceType::ControlPlane => from_source(input, EndpointOrigin::ControlPlane),
        EndpointSourceType::Service => from_source(input, EndpointOrigin::Service),
        EndpointSourceType::IPPool => from_source(input, EndpointOrigin::IPPool),
        EndpointSourceType::Auto => typed()
            .or_else(|| from_source(input, EndpointOrigin::InfraCluster).ok())
            .or_else(|| {
                from_source(input, EndpointOrigin::ControlPlane)
                    .ok()
                    .filter(|_| !is_infrastructure_unavailable(input, spec_endpoint))
            })
            .ok_or_else(|| Missing::automatic(input.cluster, input.source_values)),
    }
}

/// Whether the infrastructure that the endpoint came from cannot be read. That is no reason to take another endpoint.
fn is_infrastructure_unavailable(input: &ResolveInput<'_>, spec_endpoint: &SpecEndpoint) -> bool {
    let is_its =
        matches!(spec_endpoint, SpecEndpoint::Derived(derived) if derived.origin == EndpointOrigin::InfraCluster);
    let value = input.source_values.infrastructure.as_ref();
    is_its && value.is_some_and(|one| matches!(one.state, SourceState::Unknown(_) | SourceState::Forbidden { .. }))
}

/// The user's value differs from the source. The Cluster has no endpoint, so neither is used.
fn conflicting(input: &ResolveInput<'_>, typed: &Address, found: &FoundEndpoint) -> Resolution {
    let from = source_name(input.source_values.of(found.origin), found.origin);
    let both = mismatch(typed, &from, &found.address);
    with_state(EndpointState::Conflict(format!(
        "{both}; remove it here, or change {from}"
    )))
}

fn accept(input: &ResolveInput<'_>, spec_endpoint: &SpecEndpoint, found: &FoundEndpoint) -> Resolution {
    let (write, pause) = throttle(input, spec_endpoint, found);
    let known_endpoint = known_endpoint(input, found);
    // A delayed endpoint is not in the spec yet: the present one is effective.
    let counts = match spec_endpoint {
        SpecEndpoint::Derived(derived) if pause.is_some() => FoundEndpoint {
            address: derived.address.clone(),
            origin: derived.origin,
            from: None,
        },
        _ => found.clone(),
    };
    Resolution {
        endpoint: Some(resolved_endpoint(input, &counts)),
        write,
        is_provisioned: true,
        state: EndpointState::Known {
            origin: found.origin,
            note: known_endpoint.note,
        },
        drift: None,
        touch: known_endpoint.touch,
        requeue_after: earlier(pause, known_endpoint.requeue_after),
    }
}

/// The write, or the delay until it.
fn throttle(
    input: &ResolveInput<'_>,
    spec_endpoint: &SpecEndpoint,
    found: &FoundEndpoint,
) -> (Option<Derived>, Option<Duration>) {
    let write = Some(Derived {
        address: found.address.clone(),
        origin: found.origin,
    });
    match spec_endpoint {
        SpecEndpoint::Typed(_) => (None, None),
        SpecEndpoint::Unset => (write, None),
        SpecEndpoint::Derived(derived) if derived.address == found.address => (None, None),
        SpecEndpoint::Derived(derived) => {
            let status = &input.object.status;
            let recorded = status.control_plane_endpoint.as_ref();
            let recorded = recorded.and_then(|recorded| Address::stated(recorded.host.as_deref(), recorded.port, None));
            // An endpoint that is not in the status was written just now.
            let rest = match (status.last_updated, recorded.as_ref() == Some(&derived.address)) {
                (Some(then), true) => remaining(WRITE_INTERVAL, then, input.now),
                _ => Some(WRITE_INTERVAL),
            };
            (write.filter(|_| rest.is_none()), rest)
        }
    }
}

/// The source has no endpoint any more. The derived one is kept, because Cluster API may be about to take it.
fn keep(input: &ResolveInput<'_>, source_type: EndpointSourceType, derived: &Derived, missing: Missing) -> Resolution {
    let source = source_origin(source_type, &SpecEndpoint::Derived(derived.clone())).unwrap_or(derived.origin);
    let value = input.source_values.of(source);
    let is_unknown = value.is_none_or(|value| matches!(value.state, SourceState::Unknown(_)));
    let found = FoundEndpoint {
        address: derived.address.clone(),
        origin: derived.origin,
        from: value.map(|value| value.from.clone()),
    };
    let state = if is_unknown {
        EndpointState::Known {
            origin: derived.origin,
            note: None,
        }
    } else {
        EndpointState::Missing(missing)
    };
    Resolution {
        endpoint: Some(resolved_endpoint(input, &found)),
        is_provisioned: true,
        ..with_state(state)
    }
}

const fn with_state(state: EndpointState) -> Resolution {
    Resolution {
        endpoint: None,
        write: None,
        is_provisioned: false,
        state,
        drift: None,
        touch: None,
        requeue_after: None,
    }
}
