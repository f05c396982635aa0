//! What is to be done next for one Metal3Data: wait, claim addresses, write Secrets, or nothing.
//!
//! Claims come before Secrets, metadata before network data, and what is missing is waited for under its name. A Secret
//! that is already there is never touched, and when all are there nothing else is asked: neither the machine nor the
//! template has to exist any more. Releasing is not decided here.
//!
//! Invariant: once a Secret is rendered, no claim is let go, so that what is rendered later says the same addresses.

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
use super::secrets::{self, NewSecret, Rendered, Verdict};
use super::subject::{Subject, name_of};
use super::{DataError, Problem, meta_data, network_data};

pub use super::waiting::Waiting;

/// What is known around a Metal3Data. `None`: known not to be there.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The object itself.
    pub data: &'a Metal3Data,
    /// The template it names.
    pub template: Option<&'a Metal3DataTemplate>,
    /// The claim it names.
    pub claim: Option<&'a Metal3DataClaim>,
    /// The Metal3Machine that owns the claim.
    pub metal3_machine: Option<&'a Metal3Machine>,
    /// The Machine that owns that.
    pub machine: Option<&'a Machine>,
    /// The host the Metal3Machine is associated with.
    pub host: Option<&'a BareMetalHost>,
    /// Secrets of the namespace by name, as far as [`secrets::name`] asks for them.
    pub secrets: &'a BTreeMap<String, ObjectMeta>,
    /// Claims as far as [`wanted`] asks for them.
    pub claims: &'a KnownClaims,
    /// After what new claims are named.
    pub naming: Naming,
}

/// What has become of claims, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownClaims {
    /// Claims on IPPools of ours.
    pub metal3: BTreeMap<ObjectName, ClaimState>,
    /// Claims on other pools.
    pub general: BTreeMap<ObjectName, ClaimState>,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing: the object names no template.
    Idle,
    /// Wait for what the reason names.
    Wait(Waiting),
    /// Make these claims.
    Claim(Vec<NewClaim>),
    /// Take our finalizer off a claim that is being deleted, so that another can be made.
    LetGo {
        /// The pool; it tells the kind of the claim.
        pool: PoolRef,
        /// The claim.
        claim: ObjectName,
    },
    /// Write these Secrets, then look again. The error is that of a later part, which could not be rendered.
    Write(Vec<NewSecret>, Option<DataError>),
    /// All Secrets are there: those of the parts that the template has.
    Ready {
        /// With metadata.
        meta_data: Option<ObjectName>,
        /// With network data.
        network_data: Option<ObjectName>,
    },
}

/// A part of the data and the Secret it belongs into.
struct Part {
    part: RenderedPart,
    secret: ObjectName,
    verdict: Verdict,
    /// Whether it was rendered here, in whole or from an earlier template.
    is_rendered: bool,
}

/// What is to be done next.
///
/// # Errors
/// When only a change of an object helps. The error names its field.
pub fn next(situation: &Situation<'_>) -> Result<Step, DataError> {
    let Some(template_name) = stated(
        situation
            .data
            .spec
            .template
            .as_ref()
            .and_then(|template| template.name.as_deref()),
    ) else {
        return Ok(Step::Idle);
    };
    let Some(template) = situation.template else {
        return Ok(Step::Wait(Waiting::Template(template_name.to_owned())));
    };
    let metal3_machine = match metal3_machine(situation)? {
        Ok(machine) => machine,
        Err(waiting) => return Ok(Step::Wait(waiting)),
    };
    let parts = parts(situation, template, name_of(&metal3_machine.metadata))?;
    if parts.iter().all(|part| part.verdict == Verdict::Keep) {
        return Ok(ready(&parts));
    }
    if let Some(part) = parts.iter().find(|part| part.verdict == Verdict::Wait) {
        return Ok(Step::Wait(Waiting::Secret(part.secret.to_string())));
    }
    check_template(metal3_machine, template_name, situation.data)?;
    let subject = match subject(situation, metal3_machine)? {
        Ok(subject) => subject,
        Err(waiting) => return Ok(Step::Wait(waiting)),
    };
    let named = |error: DataError| in_template(error, template_name);
    let rendered = parts.iter().find(|part| part.is_rendered).map(|part| &part.secret);
    match grants(situation, template, &subject, rendered).map_err(named)? {
        Ok(grants) => Ok(write(&parts, template, &subject, &grants)),
        Err(step) => Ok(step),
    }
}

/// The pools a machine needs an address from, each with the names of its claim.
///
/// # Errors
/// When the template names a pool that cannot be used.
pub fn wanted(
    situation: &Situation<'_>,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
) -> Result<Vec<(PoolRef, ClaimNames)>, DataError> {
    let needed: BTreeSet<PoolRef> = pools::needed(&template.spec, subject)?;
    let (data, host) = (name_of(&situation.data.metadata), name_of(&subject.host.metadata));
    let names = |pool: &PoolRef| claims::names(data, host, pool, &needed, situation.naming);
    needed.iter().map(|pool| Ok((pool.clone(), names(pool)?))).collect()
}

/// The machine that owns the claim, or what is waited for.
fn metal3_machine<'a>(situation: &Situation<'a>) -> Result<Result<&'a Metal3Machine, Waiting>, DataError> {
    let reference = situation.data.spec.claim.as_ref();
    let name = stated(reference.and_then(|claim| claim.name.as_deref()));
    let name = name.ok_or_else(|| Problem::Unset.of("spec.claim.name"))?;
    let Some(claim) = situation.claim else {
        return Ok(Err(Waiting::Claim(name.to_owned())));
    };
    let owner = owner::first::<Metal3Machine>(&claim.metadata);
    let owner = owner.ok_or_else(|| Problem::NoOwner.of(format!("Metal3DataClaim {name} metadata.ownerReferences")))?;
    Ok(situation
        .metal3_machine
        .ok_or_else(|| Waiting::Metal3Machine(owner.name.clone())))
}

/// The machine with everything a rendering may read, or what is waited for.
fn subject<'a>(
    situation: &Situation<'a>,
    metal3_machine: &'a Metal3Machine,
) -> Result<Result<Subject<'a>, Waiting>, DataError> {
    let name = || name_of(&metal3_machine.metadata).to_owned();
    let Some(machine) = situation.machine else {
        return Ok(Err(Waiting::Machine(name())));
    };
    let Some(host) = situation.host else {
        return Ok(Err(Waiting::Host(name())));
    };
    let index = situation
        .data
        .spec
        .index
        .ok_or_else(|| Problem::Unset.of("spec.index"))?;
    let namespace = situation.data.metadata.namespace.as_deref().unwrap_or_default();
    Ok(Ok(Subject {
        namespace,
        index,
        machine,
        metal3_machine,
        host,
    }))
}

/// The template that the machine asks for has to be the one of the data, as long as something is to be rendered.
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

fn parts(situation: &Situation<'_>, template: &Metal3DataTemplate, machine: &str) -> Result<Vec<Part>, DataError> {
    let has = [
        (RenderedPart::MetaData, template.spec.meta_data.is_some()),
        (RenderedPart::NetworkData, template.spec.network_data.is_some()),
    ];
    let part = |(part, _)| {
        let secret = secrets::name(situation.data, part, machine)?;
        let found = situation.secrets.get(secret.as_str());
        let verdict = secrets::verdict(situation.data, found);
        let uid = situation.data.metadata.uid.as_deref();
        let is_rendered = verdict == Verdict::Keep && found.is_some_and(|secret| owner::is_owned_by(secret, uid));
        Ok(Part {
            part,
            secret,
            verdict,
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

/// What was granted from every pool that is needed, or what has to happen first. `rendered`: a Secret that is written
/// already. Since the template may have changed, any claim may have gone into it.
fn grants(
    situation: &Situation<'_>,
    template: &Metal3DataTemplate,
    subject: &Subject<'_>,
    rendered: Option<&ObjectName>,
) -> Result<Result<Grants, Step>, DataError> {
    let (mut grants, mut missing, mut open) = (Grants::default(), Vec::new(), Vec::new());
    for (pool, names) in wanted(situation, template, subject)? {
        let known = if pool.is_metal3() {
            &situation.claims.metal3
        } else {
            &situation.claims.general
        };
        match names.known.iter().find_map(|name| Some((name, known.get(name)?))) {
            None => missing.push(claims::new_claim(situation.data, &pool, &names.made, situation.naming)),
            Some((_, ClaimState::Open)) => open.push(pool.to_string()),
            Some((_, ClaimState::Granted(grant))) => {
                grants.0.insert(pool, grant.clone());
            }
            Some((_, ClaimState::Refused { message })) => {
                let (pool, message) = (pool.to_string(), message.clone());
                return Err(Problem::Refused { pool, message }.of("its pools"));
            }
            Some((name, ClaimState::Leaving { ours: true })) => {
                return Ok(Err(let_go(name, pool, rendered)));
            }
            Some((name, ClaimState::Leaving { ours: false })) => {
                return Ok(Err(foreign(name, &pool, "what is being deleted")));
            }
            Some((name, ClaimState::Taken { owner })) => return Ok(Err(foreign(name, &pool, owner))),
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

/// A claim is let go only if no address of it can be in use: another would be claimed in its place.
fn let_go(claim: &ObjectName, pool: PoolRef, rendered: Option<&ObjectName>) -> Step {
    match rendered {
        None => Step::LetGo {
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

/// The Secrets that are missing, up to the first part that cannot be rendered.
fn write(parts: &[Part], template: &Metal3DataTemplate, subject: &Subject<'_>, grants: &Grants) -> Step {
    let mut new = Vec::new();
    for part in parts.iter().filter(|part| part.verdict == Verdict::Write) {
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

/// The error with the template it is about.
fn in_template(error: DataError, template: &str) -> DataError {
    DataError {
        field: format!("Metal3DataTemplate {template}: {}", error.field),
        ..error
    }
}

fn stated(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
