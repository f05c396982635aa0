//! What is to be done next for one Metal3DataTemplate and the claims on it.
//!
//! A claim is guarded first, then its Metal3Data is created, then its status names it. Two rules make any number of
//! replicas safe without a leader: the name of a Metal3Data says its number, so no number is given twice; and a status is
//! written only to the version of the claim that was seen without an answer, so a claim names one Metal3Data and keeps
//! to it. What two replicas made at the same time for one claim is surplus, and goes before anybody has worked on it.
//!
//! Releasing needs no template. A Metal3Data that is held for a claim is let go only when the claim goes, or when a live
//! read says that it is gone.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::infrastructure::names::{DATA_CLAIM_FINALIZER, DATA_TEMPLATE_FINALIZER};
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3DataTemplateStatus, Metal3ObjectRef,
};
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_runtime::cache::Key;
use metal3_runtime::patch::{MergePatch, add_finalizer, has_finalizer, remove_finalizer};

use super::DataError;
use super::index::{Allocation, Answer, allocate, referred};
use super::release::LetGo;
use super::subject::name_of;
use crate::documents::{changes, version};

/// What is known around a template.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Which template.
    pub key: &'a Key,
    /// The template. `None`: known not to be there.
    pub template: Option<&'a Metal3DataTemplate>,
    /// Every Metal3Data of the namespace.
    pub objects: &'a [&'a Metal3Data],
    /// The claims on the template.
    pub claims: &'a [&'a Metal3DataClaim],
    /// Whether something of the namespace cannot be read and may be a claim on the template, or hold a number of it.
    pub is_obscured: bool,
    /// The claims, by name, that are left alone with their Cluster.
    pub resting: &'a [String],
    /// Claims that were read live: the UID of what was found.
    pub read: &'a BTreeMap<String, Option<String>>,
    /// Whether claims and objects were listed after the template was seen to go.
    pub listed: bool,
    /// The time for what is written.
    pub now: Time,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the finalizers of the template.
    PatchTemplate(MergePatch),
    /// Shows the numbers in use.
    PatchTemplateStatus(MergePatch),
    /// Changes the finalizers of a claim.
    PatchClaim(String, MergePatch),
    /// Names the answer to a claim, or says why there is none.
    PatchClaimStatus(String, MergePatch),
    /// Creates a Metal3Data. That one of its name exists is a success only if it is this one.
    Create(Box<Metal3Data>),
    /// Takes the finalizer off a Metal3Data that is held for a claim, and deletes what then is left of it.
    LetGo(LetGo),
}

/// What to do for a template. After any number of its writes the process may stop, and the next pass goes on from there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Claims to read live before the plan is made again.
    pub reads: Vec<String>,
    /// Whether claims and objects are to be listed before the plan is made again.
    pub list: bool,
    /// Writes that follow one another. Chains do not depend on each other.
    pub chains: Vec<Vec<Action>>,
    /// The write to the template, when all else is done.
    pub last: Option<Action>,
    /// Numbers that the status has no room for.
    pub unpublished: usize,
}

impl Plan {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.last.is_none()
    }
}

/// What to do for a template.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    if facts
        .template
        .is_some_and(|template| pause::is_reconcile_skipped(&template.metadata))
    {
        return Plan::default();
    }
    if let Some(patch) = facts.template.and_then(protected) {
        return Plan {
            last: Some(Action::PatchTemplate(patch)),
            ..Plan::default()
        };
    }
    let nameless = Metal3DataTemplate {
        metadata: ObjectMeta {
            name: Some(facts.key.name.clone()),
            namespace: Some(facts.key.namespace.clone()),
            ..ObjectMeta::default()
        },
        ..Metal3DataTemplate::default()
    };
    let template = facts.template.unwrap_or(&nameless);
    let rests = |claim: &Metal3DataClaim| {
        let name = name_of(&claim.metadata);
        pause::is_reconcile_skipped(&claim.metadata) || facts.resting.iter().any(|resting| resting == name)
    };
    let allocation = allocate(template, facts.objects, facts.claims, rests);
    let mut plan = Plan {
        unpublished: allocation.unpublished,
        ..Plan::default()
    };
    let by_name: BTreeMap<&str, &Metal3DataClaim> = facts
        .claims
        .iter()
        .map(|claim| (name_of(&claim.metadata), *claim))
        .collect();
    let mut is_early = false;
    for (name, answer) in &allocation.claims {
        let Some(claim) = by_name.get(name.as_str()) else {
            continue;
        };
        let chain = answered(facts, claim, answer);
        is_early |= matches!(chain.as_slice(), [Action::PatchClaim(..)]) && !is_leaving(&claim.metadata);
        plan.chains.extend((!chain.is_empty()).then_some(chain));
    }
    orphans(facts, &mut plan);
    if !is_early {
        plan.last = facts
            .template
            .and_then(|template| finished(facts, template, &allocation, &mut plan.list));
    }
    plan
}

/// The finalizer of a template that is new.
fn protected(template: &Metal3DataTemplate) -> Option<MergePatch> {
    if is_leaving(&template.metadata) {
        return None;
    }
    let present = template.metadata.finalizers.as_deref().unwrap_or_default();
    add_finalizer(present, DATA_TEMPLATE_FINALIZER, &version(&template.metadata)?)
}

fn answered(facts: &Facts<'_>, claim: &Metal3DataClaim, answer: &Answer) -> Vec<Action> {
    let object = |name: &String| facts.objects.iter().find(|object| name_of(&object.metadata) == *name);
    let let_go = |names: &[String]| -> Vec<Action> {
        names
            .iter()
            .filter_map(object)
            .filter_map(|object| released(object, true))
            .collect()
    };
    match answer {
        Answer::Release(names) => {
            let mut actions = let_go(names);
            actions.extend(unguarded(claim));
            actions
        }
        // Without the template nothing is answered; it may come again.
        _ if facts.template.is_none() => Vec::new(),
        Answer::Surplus(names) => let_go(names),
        Answer::Wait(_) => Vec::new(),
        // differs (`data-claim-unowned`): the Go manager puts its finalizer on a claim that it then cannot answer.
        Answer::Refuse(error) => named(claim, None, Some(error)).into_iter().collect(),
        Answer::Adopt(_) | Answer::Create(_) if !has_finalizer(claim, DATA_CLAIM_FINALIZER) => {
            guarded(claim).into_iter().collect()
        }
        Answer::Adopt(name) => named(claim, Some(name), None).into_iter().collect(),
        // What cannot be read may be the answer to this claim.
        Answer::Create(_) if facts.is_obscured => Vec::new(),
        Answer::Create(object) => {
            let name = name_of(&object.metadata).to_owned();
            let create = Action::Create(object.clone());
            std::iter::once(create).chain(named(claim, Some(&name), None)).collect()
        }
    }
}

fn guarded(claim: &Metal3DataClaim) -> Option<Action> {
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = add_finalizer(present, DATA_CLAIM_FINALIZER, &version(&claim.metadata)?)?;
    Some(Action::PatchClaim(name_of(&claim.metadata).to_owned(), patch))
}

fn unguarded(claim: &Metal3DataClaim) -> Option<Action> {
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = remove_finalizer(present, DATA_CLAIM_FINALIZER, &version(&claim.metadata)?)?;
    Some(Action::PatchClaim(name_of(&claim.metadata).to_owned(), patch))
}

/// The status of a claim, if it does not say so already.
fn named(claim: &Metal3DataClaim, data: Option<&str>, error: Option<&DataError>) -> Option<Action> {
    let mut after = claim.clone();
    after.status.rendered_data = data.map(|name| Metal3ObjectRef {
        name: Some(name.to_owned()),
        namespace: claim.metadata.namespace.clone(),
    });
    after.status.error_message = error.map(|error| shortened(&error.to_string()));
    let patch = changes(claim, &after)
        .status?
        .with_precondition(&version(&claim.metadata)?);
    Some(Action::PatchClaimStatus(name_of(&claim.metadata).to_owned(), patch))
}

/// Lets go of an object that is held for a claim. `delete`: and sees to it that it goes.
fn released(object: &Metal3Data, delete: bool) -> Option<Action> {
    LetGo::of(object, DATA_CLAIM_FINALIZER, delete).map(Action::LetGo)
}

/// Objects that are going and are held for a claim that is not there any more.
fn orphans(facts: &Facts<'_>, plan: &mut Plan) {
    let held = facts.objects.iter().filter(|object| {
        referred(object.spec.template.as_ref()) == facts.key.name
            && is_leaving(&object.metadata)
            && has_finalizer(**object, DATA_CLAIM_FINALIZER)
            && !pause::is_reconcile_skipped(&object.metadata)
    });
    for object in held {
        let claim = referred(object.spec.claim.as_ref());
        let made_for = owner::first::<Metal3DataClaim>(&object.metadata).map(|owner| owner.uid.as_str());
        let is_made_for = |uid: Option<&str>| made_for.is_none_or(|made_for| uid == Some(made_for));
        let lives = facts
            .claims
            .iter()
            .any(|found| name_of(&found.metadata) == claim && is_made_for(found.metadata.uid.as_deref()));
        if lives {
            continue;
        }
        match facts.read.get(claim) {
            None if claim.is_empty() => plan.chains.extend(released(object, false).map(|action| vec![action])),
            None => plan.reads.push(claim.to_owned()),
            Some(Some(uid)) if is_made_for(Some(uid)) => {}
            Some(_) => plan.chains.extend(released(object, false).map(|action| vec![action])),
        }
    }
}

/// The write to a template whose claims are answered: the numbers in use, or, when it goes and none is left, the
/// finalizer.
fn finished(
    facts: &Facts<'_>,
    template: &Metal3DataTemplate,
    allocation: &Allocation,
    list: &mut bool,
) -> Option<Action> {
    let version = version(&template.metadata)?;
    let is_used = |object: &&Metal3Data| referred(object.spec.template.as_ref()) == facts.key.name;
    let is_free = facts.claims.is_empty() && !facts.objects.iter().any(is_used) && !facts.is_obscured;
    if is_leaving(&template.metadata) && is_free {
        let present = template.metadata.finalizers.as_deref().unwrap_or_default();
        let patch = remove_finalizer(present, DATA_TEMPLATE_FINALIZER, &version)?;
        *list = !facts.listed;
        return facts.listed.then_some(Action::PatchTemplate(patch));
    }
    if template.status.indexes == allocation.published {
        return None;
    }
    let mut after = template.clone();
    after.status = Metal3DataTemplateStatus {
        indexes: allocation.published.clone(),
        last_updated: Some(facts.now),
    };
    let patch = changes(template, &after).status?.with_precondition(&version);
    Some(Action::PatchTemplateStatus(patch))
}

const fn is_leaving(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// A message as long as a status may hold in every version.
pub(crate) fn shortened(message: &str) -> String {
    const LONGEST: usize = 512;
    message.chars().take(LONGEST).collect()
}
