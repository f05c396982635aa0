//! The next step for one Metal3Data: wait, claim addresses, create Secrets, or none.
//!
//! Claims precede Secrets, metadata precede network data, and each missing object is reported by name. An existing
//! Secret is never changed; when all exist, neither the machine nor the template is needed. Release is decided in
//! [`super::release`].
//!
//! Invariant: once a Secret is rendered, no claim is released, so that a later one contains the same addresses.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_domain::derived::RenderedPart;
use metal3_domain::names::ObjectName;

use super::claims::{self, ClaimNames, ClaimState, Naming, NewClaim};
use super::pools::{self, Grants, PoolRef};
use super::secrets::{self, NewSecret, Rendered, SecretAction};
use super::subject::{Subject, name_of};
use super::{DataError, Problem, meta_data, network_data};

pub use super::waiting::Waiting;

/// The inputs of the step. `None`: the object does not exist.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The Metal3Data.
    pub data: &'a Metal3Data,
    /// The template it names.
    pub template: Option<&'a Metal3DataTemplate>,
    /// The claim it names.
    pub claim: Option<&'a Metal3DataClaim>,
    /// The Metal3Machine that owns the claim.
    pub metal3_machine: Option<&'a Metal3Machine>,
    /// The Machine that owns the Metal3Machine.
    pub machine: Option<&'a Machine>,
    /// The host of the Metal3Machine.
    pub host: Option<&'a BareMetalHost>,
    /// Secrets of the namespace by name, those that [`secrets::name`] returns.
    pub secrets: &'a BTreeMap<String, ObjectMeta>,
    /// Claims by name, those that [`wanted`] returns.
    pub claims: &'a KnownClaims,
    /// The prefix of the names of new claims.
    pub naming: Naming,
}

/// The state of claims, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownClaims {
    /// Claims on IPPools of `ipam.metal3.io`.
    pub metal3: BTreeMap<ObjectName, ClaimState>,
    /// Claims on other pools.
    pub general: BTreeMap<ObjectName, ClaimState>,
}

/// The next step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// None: the object names no template.
    Idle,
    /// Wait for the named object.
    Wait(Waiting),
    /// Create these claims.
    Claim(Vec<NewClaim>),
    /// Remove the finalizer from a claim in deletion, so that another can be created.
    ReleaseClaim {
        /// The pool; it determines the kind of the claim.
        pool: PoolRef,
        /// The claim.
        claim: ObjectName,
    },
    /// Create these Secrets, then decide again. The error is that of a later part.
    Write(Vec<NewSecret>, Option<DataError>),
    /// All Secrets of the template's parts exist.
    Ready {
        /// With metadata.
        meta_data: Option<ObjectName>,
        /// With network data.
        network_data: Option<ObjectName>,
    },
}

struct Part {
    part: RenderedPart,
    secret: ObjectName,
    action: SecretAction,
    /// Whether this Metal3Data rendered it, from any version of the template.
    is_rendered: bool,
}

/// The next step.
///
/// # Errors
/// When only a change of an object resolves it. The error names its field.
pub fn next(facts: &Facts<'_>) -> Result<Step, DataError> {
    let Some(template_name) = stated(
        facts
            .data
            .spec
            .template
            .as_ref()
            .and_then(|template| template.name.as_deref()),
    ) else {
        return Ok(Step::Idle);
    };
    let Some(template) = facts.template else {
        return Ok(Step::Wait(Waiting::Template(template_name.to_owned())));
    };
    let metal3_machine = match metal3_machine(facts)? {
        Ok(machine) => machine,
        Err(waiting) => return Ok(Step::Wait(waiting)),
    };
    let parts = parts(facts, template, name_of(&metal3_machine.metadata))?;
    if parts.iter().all(|part| part.action == SecretAction::Keep) {
        return Ok(ready(&parts));
    }
    if let Some(part) = parts.iter().find(|part| part.action == SecretAction::Wait) {
        return Ok(Step::Wait(Waiting::Secret(part.secret.to_string())));
    }
    check_template(metal3_machine, template_name, facts.data)?;
    let subject = match subject(facts, metal3_machine)? {
        Ok(subject) => subject,
        Err(waiting) => return Ok(Step::Wait(waiting)),
    };
    let named = |error: DataError| in_template(error, template_name);
    let rendered = parts.iter().find(|part| part.is_rendered).map(|part| &part.secret);
    match grants(facts, template, &subject, rendered).map_err(named)? {
        Ok(grants) => Ok(write(&parts, template, &subject, &grants)),
        Err(step) => Ok(step),
    }
}

/// The pools that a machine needs an address from, each with the names of its claim.
///
/// # Errors
/// When the template names an invalid pool.
pub fn wanted(
    facts: &Facts<'_>,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
) -> Result<Vec<(PoolRef, ClaimNames)>, DataError> {
    let needed: BTreeSet<PoolRef> = pools::needed(&template.spec, subject)?;
    let (data, host) = (name_of(&facts.data.metadata), name_of(&subject.host.metadata));
    let names = |pool: &PoolRef| claims::names(data, host, pool, &needed, facts.naming);
    needed.iter().map(|pool| Ok((pool.clone(), names(pool)?))).collect()
}

/// The machine that owns the claim, or what to wait for.
fn metal3_machine<'a>(facts: &Facts<'a>) -> Result<Result<&'a Metal3Machine, Waiting>, DataError> {
    let reference = facts.data.spec.claim.as_ref();
    let name = stated(reference.and_then(|claim| claim.name.as_deref()));
    let name = name.ok_or_else(|| Problem::Unset.of("spec.claim.name"))?;
    let Some(claim) = facts.claim else {
        return Ok(Err(Waiting::Claim(name.to_owned())));
    };
    let owner = owner::first::<Metal3Machine>(&claim.metadata);
    let owner = owner.ok_or_else(|| Problem::NoOwner.of(format!("Metal3DataClaim {name} metadata.ownerReferences")))?;
    Ok(facts
        .metal3_machine
        .ok_or_else(|| Waiting::Metal3Machine(owner.name.clone())))
}

/// The inputs of a rendering, or what to wait for.
fn subject<'a>(
    facts: &Facts<'a>,
    metal3_machine: &'a Metal3Machine,
) -> Result<Result<Subject<'a>, Waiting>, DataError> {
    let name = || name_of(&metal3_machine.metadata).to_owned();
    let Some(machine) = facts.machine else {
        return Ok(Err(Waiting::Machine(name())));
    };
    let Some(host) = facts.host else {
        return Ok(Err(Waiting::Host(name())));
    };
    let index = facts.data.spec.index.ok_or_else(|| Problem::Unset.of("spec.index"))?;
    let namespace = facts.data.metadata.namespace.as_deref().unwrap_or_default();
    Ok(Ok(Subject {
        namespace,
        index,
        machine,
        metal3_machine,
        host,
    }))
}

/// Checks that the machine names the template of the Metal3Data, as long as a part is not rendered.
fn check_template(machine: &Metal3Machine, wanted: &str, data: &Metal3Data) -> Result<(), DataError> {
    let reference = machine.spec.data_template.as_ref();
    let found = reference
        .and_then(|template| template.name.as_deref())
        .unwrap_or_default();
    let namespace = stated(reference.and_then(|template| template.namespace.as_deref()));
    let is_here = namespace.is_none_or(|namespace| Some(namespace) == data.metadata.namespace.as_deref());
    if found == wanted && is_here {
        return Ok(());
    }
    let problem = Problem::OtherTemplate {
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    };
    Err(problem.of(format!(
        "Metal3Machine {} spec.dataTemplate",
        name_of(&machine.metadata)
    )))
}

fn parts(facts: &Facts<'_>, template: &Metal3DataTemplate, machine: &str) -> Result<Vec<Part>, DataError> {
    let has = [
        (RenderedPart::MetaData, template.spec.meta_data.is_some()),
        (RenderedPart::NetworkData, template.spec.network_data.is_some()),
    ];
    let part = |(part, _)| {
        let secret = secrets::name(facts.data, part, machine)?;
        let found = facts.secrets.get(secret.as_str());
        let action = secrets::action(facts.data, found);
        let uid = facts.data.metadata.uid.as_deref();
        let is_rendered = action == SecretAction::Keep && found.is_some_and(|secret| owner::is_owned_by(secret, uid));
        Ok(Part {
            part,
            secret,
            action,
            is_rendered,
        })
    };
    has.into_iter().filter(|(_, has)| *has).map(part).collect()
}

fn ready(parts: &[Part]) -> Step {
    let secret = |wanted| {
        parts
            .iter()
            .find(|part| part.part == wanted)
            .map(|part| part.secret.clone())
    };
    Step::Ready {
        meta_data: secret(RenderedPart::MetaData),
        network_data: secret(RenderedPart::NetworkData),
    }
}

/// The grants of all needed pools, or the step that precedes them. `rendered`: an existing Secret. Since the template
/// may have changed, any claim may be part of it.
fn grants(
    facts: &Facts<'_>,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    rendered: Option<&ObjectName>,
) -> Result<Result<Grants, Step>, DataError> {
    let (mut grants, mut missing, mut open) = (Grants::default(), Vec::new(), Vec::new());
    for (pool, names) in wanted(facts, template, subject)? {
        let known = if pool.is_metal3() {
            &facts.claims.metal3
        } else {
            &facts.claims.general
        };
        match names.known.iter().find_map(|name| Some((name, known.get(name)?))) {
            None => missing.push(claims::new_claim(facts.data, &pool, &names.made, facts.naming)),
            Some((_, ClaimState::Pending)) => open.push(pool.to_string()),
            Some((_, ClaimState::Granted(grant))) => {
                grants.0.insert(pool, grant.clone());
            }
            Some((_, ClaimState::Failed { message })) => {
                let (pool, message) = (pool.to_string(), message.clone());
                return Err(Problem::Refused { pool, message }.of("its pools"));
            }
            Some((name, ClaimState::Deleting { is_owned: true })) => {
                return Ok(Err(release_claim(name, pool, rendered)));
            }
            Some((name, ClaimState::Deleting { is_owned: false })) => {
                return Ok(Err(foreign(name, &pool, "another owner")));
            }
            Some((name, ClaimState::Foreign { owner })) => return Ok(Err(foreign(name, &pool, owner))),
        }
    }
    Ok(if !missing.is_empty() {
        Err(Step::Claim(missing))
    } else if !open.is_empty() {
        Err(Step::Wait(Waiting::Addresses(open.join(", "))))
    } else {
        Ok(grants)
    })
}

/// Releases a claim only if its address cannot be in use, because a new one would be claimed in its place.
fn release_claim(claim: &ObjectName, pool: PoolRef, rendered: Option<&ObjectName>) -> Step {
    match rendered {
        None => Step::ReleaseClaim {
            pool,
            claim: claim.clone(),
        },
        Some(secret) => Step::Wait(Waiting::LostClaim {
            claim: claim.to_string(),
            pool: pool.to_string(),
            secret: secret.to_string(),
        }),
    }
}

fn foreign(claim: &ObjectName, pool: &PoolRef, owner: &str) -> Step {
    Step::Wait(Waiting::ForeignClaim {
        claim: claim.to_string(),
        pool: pool.to_string(),
        owner: owner.to_owned(),
    })
}

fn write(parts: &[Part], template: &Metal3DataTemplate, subject: &Subject<'_>, grants: &Grants) -> Step {
    let mut new = Vec::new();
    for part in parts.iter().filter(|part| part.action == SecretAction::Write) {
        match render(part.part, template, subject, grants) {
            Ok(text) => new.push(NewSecret {
                name: part.secret.clone(),
                part: part.part,
                content: Rendered::new(text),
            }),
            Err(error) => return Step::Write(new, Some(in_template(error, name_of(&template.metadata)))),
        }
    }
    Step::Write(new, None)
}

fn render(
    part: RenderedPart,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    grants: &Grants,
) -> Result<String, DataError> {
    let spec = &template.spec;
    match part {
        RenderedPart::MetaData => meta_data::render(&spec.meta_data.clone().unwrap_or_default(), subject, grants),
        RenderedPart::NetworkData => {
            network_data::render(&spec.network_data.clone().unwrap_or_default(), subject, grants)
        }
    }
}

fn in_template(error: DataError, template: &str) -> DataError {
    DataError {
        field: format!("Metal3DataTemplate {template}: {}", error.field),
        ..error
    }
}

fn stated(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
