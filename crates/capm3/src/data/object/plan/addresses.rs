//! The addresses that a machine needs: claims on pools, and their grants.

use std::collections::BTreeSet;

use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataTemplate};
use metal3_capi::owner;
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::Key;

use super::release::release;
use super::waiting::{Stop, Waiting};
use crate::data::claims::{self, ClaimNames, ClaimState, Naming};
use crate::data::needed::needed;
use crate::data::object::action::{Action, Plan, then_requeue};
use crate::data::object::facts::{PoolClaim, Rendering};
use crate::data::pools::{Grants, PoolRef};
use crate::data::subject::{Subject, name_of};
use crate::data::{DataError, Problem, reason};
use crate::machine::facts::is_provisioned;

/// The pools that a machine needs an address from, each with the names of its claim.
///
/// # Errors
/// When the template names an invalid pool.
pub fn wanted(
    data: &Metal3Data,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    naming: Naming,
) -> Result<Vec<(PoolRef, ClaimNames)>, DataError> {
    let needed: BTreeSet<PoolRef> = needed(&template.spec, subject)?;
    let (data, host) = (name_of(&data.metadata), name_of(&subject.host.metadata));
    let names = |pool: &PoolRef| claims::names(data, host, pool, &needed, naming);
    needed.iter().map(|pool| Ok((pool.clone(), names(pool)?))).collect()
}

/// The grants of all needed pools. `rendered`: an existing Secret, which may contain the address of any claim, since
/// the template may have changed.
pub(super) fn grants(
    (data, rendering): (&Metal3Data, &Rendering),
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    rendered: Option<&ObjectName>,
) -> Result<Grants, Stop> {
    let template_name = name_of(&template.metadata);
    let wanted =
        wanted(data, template, subject, rendering.naming).map_err(|error| in_template(error, template_name))?;
    let (mut grants, mut missing, mut open) = (Grants::default(), Vec::new(), Vec::new());
    for (pool, names) in wanted {
        let known = if pool.is_metal3() {
            &rendering.claims.metal3
        } else {
            &rendering.claims.general
        };
        match names.known.iter().find_map(|name| Some((name, known.get(name)?))) {
            None => missing.push(Action::Claim(claims::new_claim(
                data,
                &pool,
                &names.made,
                rendering.naming,
            ))),
            Some((_, ClaimState::Pending)) => open.push(pool.to_string()),
            Some((_, ClaimState::Granted(grant))) => {
                grants.0.insert(pool, grant.clone());
            }
            Some((_, ClaimState::Failed { message })) => {
                let (pool, message) = (pool.to_string(), message.clone());
                let error = Problem::Refused { pool, message }.of("its pools");
                return Err(in_template(error, template_name).into());
            }
            Some((name, ClaimState::Deleting { is_owned: true })) => {
                return Err(release_claim(
                    (data, rendering),
                    (name, &pool),
                    in_use(subject, rendered),
                ));
            }
            Some((name, ClaimState::Deleting { is_owned: false })) => {
                let found = in_deletion(rendering, name, &pool);
                if found.is_some_and(|claim| is_left(claim, data)) {
                    return Err(release_claim(
                        (data, rendering),
                        (name, &pool),
                        in_use(subject, rendered),
                    ));
                }
                return Err(foreign(name, &pool, "another owner").into());
            }
            Some((name, ClaimState::Foreign { owner })) => return Err(foreign(name, &pool, owner).into()),
        }
    }
    if !missing.is_empty() {
        Err(Stop::First(Box::new(then_requeue(missing))))
    } else if !open.is_empty() {
        Err(Waiting::Addresses(open.join(", ")).into())
    } else {
        Ok(grants)
    }
}

/// The claim in deletion of this name.
fn in_deletion<'a>(rendering: &'a Rendering, name: &ObjectName, pool: &PoolRef) -> Option<&'a PoolClaim> {
    let is_this = |claim: &&PoolClaim| {
        matches!(claim, PoolClaim::Metal3(_)) == pool.is_metal3() && name_of(claim.metadata()) == name.as_str()
    };
    rendering.deleting.iter().find(is_this)
}

/// Whether a claim in deletion is left from an earlier Metal3Data of this name, or has lost its owner, as in a restore:
/// then only its finalizer keeps it. Metal3Data of other names can have claims of the same name.
fn is_left(claim: &PoolClaim, data: &Metal3Data) -> bool {
    let (claim, uid) = (claim.metadata(), data.metadata.uid.as_deref());
    let of_this_name = owner::first::<Metal3Data>(claim).is_none_or(|owner| owner.name == name_of(&data.metadata));
    of_this_name && claims::is_orphan(claim, |owner| Some(owner) == uid)
}

/// What may use the address of any claim of a machine: a rendered Secret may contain it, and a host may run with it
/// although its Secrets are gone, as after a restore.
fn in_use(subject: &Subject<'_>, rendered: Option<&ObjectName>) -> Option<String> {
    if let Some(secret) = rendered {
        return Some(format!("Secret {secret} exists and may contain its address"));
    }
    let host = name_of(&subject.host.metadata);
    is_provisioned(subject.host).then(|| format!("BareMetalHost {host} has an image and may run with its address"))
}

/// Releases a claim in deletion, so that another can be created. Only if its address cannot be in use, because a new
/// one is claimed in its place.
fn release_claim(
    (data, rendering): (&Metal3Data, &Rendering),
    (name, pool): (&ObjectName, &PoolRef),
    in_use: Option<String>,
) -> Stop {
    if let Some(why) = in_use {
        return Stop::Wait(Waiting::LostClaim {
            claim: name.to_string(),
            pool: pool.to_string(),
            why,
        });
    }
    let found = in_deletion(rendering, name, pool);
    let plan = if let Some(action) = found.and_then(|claim| release(claim, false)) {
        then_requeue(vec![action])
    } else {
        // The claim is held by another finalizer.
        let claim = Key::of(data).sibling(name.as_str());
        Plan::waiting(reason::WAITING, format!("waiting for the claim {claim} to be deleted"))
    };
    Stop::First(Box::new(plan))
}

fn foreign(claim: &ObjectName, pool: &PoolRef, owner: &str) -> Waiting {
    Waiting::ForeignClaim {
        claim: claim.to_string(),
        pool: pool.to_string(),
        owner: owner.to_owned(),
    }
}

/// The error with the template of its field.
pub(super) fn in_template(error: DataError, template: &str) -> DataError {
    DataError {
        field: format!("Metal3DataTemplate {template}: {}", error.field),
        ..error
    }
}
