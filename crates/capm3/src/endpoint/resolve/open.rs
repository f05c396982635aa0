//! The Cluster has no endpoint yet. What the source says is written into the object, from where Cluster API takes it.

use std::time::Duration;

use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType};

use super::{Found, PACE, Question, Resolution, depends_on, differs, heard, known, left, named, shown, sooner};
use crate::endpoint::address::Address;
use crate::endpoint::own::{Derived, Own};
use crate::endpoint::reading::Heard;
use crate::endpoint::said::{Missing, Standing};

pub(super) fn settle(question: &Question<'_>, asked: EndpointSourceType, own: &Own) -> Resolution {
    // Who leaves the endpoint to the Cluster says that the infrastructure is not what it waits for.
    let is_elsewhere = asked == EndpointSourceType::Cluster && !question.is_secondary;
    let found = search(question, asked, own);
    if let (Own::Typed(typed), Ok(found)) = (own, &found)
        && *typed != found.address
    {
        return contested(question, typed, found);
    }
    let mut resolution = match (found, own) {
        (Ok(found), own) => take(question, own, &found),
        (Err(missing), Own::Derived(derived)) => keep(question, asked, derived, missing),
        (Err(missing), Own::Typed(_) | Own::Unset { .. }) => waits(missing),
    };
    resolution.is_provisioned |= is_elsewhere;
    resolution
}

fn search(question: &Question<'_>, asked: EndpointSourceType, own: &Own) -> Result<Found, Missing> {
    let typed = || match own {
        Own::Typed(address) => Some(Found {
            address: address.clone(),
            origin: EndpointOrigin::Spec,
            from: None,
        }),
        Own::Derived(_) | Own::Unset { .. } => None,
    };
    match asked {
        EndpointSourceType::Spec => typed().ok_or_else(Missing::typed),
        EndpointSourceType::Cluster => Err(Missing::cluster(question.cluster)),
        EndpointSourceType::InfraCluster => heard(question, EndpointOrigin::InfraCluster),
        EndpointSourceType::ControlPlane => heard(question, EndpointOrigin::ControlPlane),
        EndpointSourceType::Service => heard(question, EndpointOrigin::Service),
        EndpointSourceType::IPPool => heard(question, EndpointOrigin::IPPool),
        EndpointSourceType::Auto => typed()
            .or_else(|| heard(question, EndpointOrigin::InfraCluster).ok())
            .or_else(|| {
                heard(question, EndpointOrigin::ControlPlane)
                    .ok()
                    .filter(|_| !is_silent(question, own))
            })
            .ok_or_else(|| Missing::anywhere(question.cluster, question.readings)),
    }
}

/// Whether nobody can say for now what the infrastructure says that the endpoint came from. It is no reason to take
/// another.
fn is_silent(question: &Question<'_>, own: &Own) -> bool {
    let is_its = matches!(own, Own::Derived(derived) if derived.origin == EndpointOrigin::InfraCluster);
    let reading = question.readings.infrastructure.as_ref();
    is_its && reading.is_some_and(|one| matches!(one.heard, Heard::Unknown(_) | Heard::Forbidden { .. }))
}

/// A person typed something else than the source says. Nothing is fixed yet, so nothing is made of either.
fn contested(question: &Question<'_>, typed: &Address, found: &Found) -> Resolution {
    let from = named(question.readings.of(found.origin), found.origin);
    let both = differs(typed, &from, &found.address);
    Resolution {
        endpoint: None,
        write: None,
        is_provisioned: false,
        standing: Standing::Conflict(format!("{both}; leave it out here, or change {from}")),
        drift: None,
        nudge: None,
        again: None,
    }
}

fn take(question: &Question<'_>, own: &Own, found: &Found) -> Resolution {
    let (write, pause) = pace(question, own, found);
    let known = known(question, found);
    // What the pace holds back is not in the object yet: what is there is what counts.
    let counts = match own {
        Own::Derived(derived) if pause.is_some() => Found {
            address: derived.address.clone(),
            origin: derived.origin,
            from: None,
        },
        _ => found.clone(),
    };
    Resolution {
        endpoint: Some(shown(question, &counts)),
        write,
        is_provisioned: true,
        standing: Standing::Known {
            origin: found.origin,
            note: known.note,
        },
        drift: None,
        nudge: known.nudge,
        again: sooner(pause, known.again),
    }
}

/// What to write now, or how long to wait with it.
fn pace(question: &Question<'_>, own: &Own, found: &Found) -> (Option<Derived>, Option<Duration>) {
    let write = Some(Derived {
        address: found.address.clone(),
        origin: found.origin,
    });
    match own {
        Own::Typed(_) => (None, None),
        Own::Unset { .. } => (write, None),
        Own::Derived(derived) if derived.address == found.address => (None, None),
        Own::Derived(derived) => {
            let status = &question.object.status;
            let told = status.control_plane_endpoint.as_ref();
            let told = told.and_then(|told| Address::stated(told.host.as_deref(), told.port, None));
            // What the status does not know was written just now.
            let rest = match (status.last_updated, told.as_ref() == Some(&derived.address)) {
                (Some(then), true) => left(PACE, then, question.now),
                _ => Some(PACE),
            };
            (write.filter(|_| rest.is_none()), rest)
        }
    }
}

/// The source says nothing any more. What was derived from it stays, for Cluster API may be about to take it.
fn keep(question: &Question<'_>, asked: EndpointSourceType, derived: &Derived, missing: Missing) -> Resolution {
    let source = depends_on(asked, &Own::Derived(derived.clone())).unwrap_or(derived.origin);
    let reading = question.readings.of(source);
    let is_unknown = reading.is_none_or(|reading| matches!(reading.heard, Heard::Unknown(_)));
    let found = Found {
        address: derived.address.clone(),
        origin: derived.origin,
        from: reading.map(|reading| reading.from.clone()),
    };
    let standing = if is_unknown {
        Standing::Known {
            origin: derived.origin,
            note: None,
        }
    } else {
        Standing::Missing(missing)
    };
    Resolution {
        endpoint: Some(shown(question, &found)),
        is_provisioned: true,
        ..waits_with(standing)
    }
}

fn waits(missing: Missing) -> Resolution {
    waits_with(Standing::Missing(missing))
}

const fn waits_with(standing: Standing) -> Resolution {
    Resolution {
        endpoint: None,
        write: None,
        is_provisioned: false,
        standing,
        drift: None,
        nudge: None,
        again: None,
    }
}
