//! The plan for one Metal3DataTemplate and its claims.
//!
//! A claim gets the finalizer first, then its Metal3Data is created, then its status names it. Two rules make any
//! number of replicas safe without leader election: the name of a Metal3Data contains its index, so no index is
//! assigned twice; and a claim's status is written only at the version that has no Metal3Data, so a claim keeps its
//! first one. A Metal3Data that another replica created for the same claim is surplus, and is deleted before it is
//! rendered.
//!
//! Releasing needs no template. The finalizer of a Metal3Data is removed only when its claim is in deletion, or when a
//! live read confirms that the claim does not exist.

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
use metal3_runtime::plan::{self, PlannedEvent};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::data::index::{Allocation, Answer, allocate, referred};
use crate::data::release::Release;
use crate::data::subject::name_of;
use crate::data::{DataError, reason, truncated};
use crate::diff::{changes, version};

/// The inputs of the plan.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Key of the template.
    pub key: &'a Key,
    /// The template; `None` when it does not exist or cannot be read.
    pub template: Option<&'a Metal3DataTemplate>,
    /// Why it cannot be read, until a user corrects it.
    pub unreadable: Option<&'a str>,
    /// Every Metal3Data of the namespace.
    pub objects: &'a [&'a Metal3Data],
    /// The claims on the template.
    pub claims: &'a [&'a Metal3DataClaim],
    /// Kind and name of an unreadable object of the namespace that may be a claim on the template, or use one of its
    /// indexes.
    pub unreadable_object: Option<(&'static str, String)>,
    /// Names of claims that are skipped because their Cluster is paused, missing or unreadable.
    pub paused: &'a [String],
    /// Claims that were read live, with the UID found.
    pub read: &'a BTreeMap<String, Option<String>>,
    /// Whether claims and objects were listed after the template was observed in deletion.
    pub listed: bool,
    /// The time for timestamps.
    pub now: Time,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patches the finalizers of the template.
    PatchTemplate(MergePatch),
    /// Patches the finalizers of a claim.
    PatchClaim(String, MergePatch),
    /// Sets the Metal3Data or the error in a claim's status.
    PatchClaimStatus(String, MergePatch),
    /// Creates a Metal3Data. An existing object of that name is success only if it is the same.
    Create(Box<Metal3Data>),
    /// Removes the finalizer of a Metal3Data held for a claim, and deletes it if required.
    Release(Release),
}

/// Live reads that a plan requires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Claims to read.
    pub claims: Vec<String>,
    /// Whether to list claims and objects.
    pub list: bool,
}

/// A sequence of writes, independent of the others.
pub type Chain = Vec<Action>;

/// What one reconcile of a template does. Its status contains the indexes in use and is written only when all chains
/// have succeeded.
pub type Plan = plan::Plan<Reads, Chain>;

/// The plan for a template.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    if facts
        .template
        .is_some_and(|template| pause::is_reconcile_skipped(&template.metadata))
    {
        return Plan::default();
    }
    if let Some(patch) = facts.template.and_then(add_template_finalizer) {
        return Plan {
            actions: vec![vec![Action::PatchTemplate(patch)]],
            next: Next::Requeue,
            ..Plan::default()
        };
    }
    let placeholder = Metal3DataTemplate {
        metadata: ObjectMeta {
            name: Some(facts.key.name.clone()),
            namespace: Some(facts.key.namespace.clone()),
            ..ObjectMeta::default()
        },
        ..Metal3DataTemplate::default()
    };
    let template = facts.template.unwrap_or(&placeholder);
    let is_paused = |claim: &Metal3DataClaim| {
        let name = name_of(&claim.metadata);
        pause::is_reconcile_skipped(&claim.metadata) || facts.paused.iter().any(|paused| paused == name)
    };
    let allocation = allocate(template, facts.objects, facts.claims, is_paused);
    let mut plan = Plan::default();
    let by_name: BTreeMap<&str, &Metal3DataClaim> = facts
        .claims
        .iter()
        .map(|claim| (name_of(&claim.metadata), *claim))
        .collect();
    let mut has_new_finalizer = false;
    for (name, answer) in &allocation.claims {
        let Some(claim) = by_name.get(name.as_str()) else {
            continue;
        };
        let chain = claim_actions(facts, claim, answer);
        has_new_finalizer |= matches!(chain.as_slice(), [Action::PatchClaim(..)]) && !is_deleting(&claim.metadata);
        plan.actions.extend((!chain.is_empty()).then_some(chain));
    }
    orphans(facts, &mut plan);
    let is_blocked = facts.unreadable_object.is_some() && allocation.claims.iter().any(|(_, answer)| is_create(answer));
    // The indexes of claims that are not served are not in use.
    if let Some(template) = facts.template.filter(|_| !has_new_finalizer && !is_blocked) {
        finish(facts, template, &allocation, &mut plan);
    }
    if plan.reads != Reads::default() {
        return Plan::reading(plan.reads);
    }
    plan.next = next(facts, &plan, is_blocked || is_deleting(&template.metadata));
    plan
}

/// Another reconcile after a write, or the wait for an object that cannot be read, if anything waits for it.
fn next(facts: &Facts<'_>, plan: &Plan, waits: bool) -> Next {
    if !plan.actions.is_empty() || plan.status.is_some() {
        return Next::Requeue;
    }
    match &facts.unreadable_object {
        Some((kind, name)) if waits => {
            let error = DataError::unreadable_object(kind, name);
            Next::waiting(reason::OBJECT_UNREADABLE, error.to_string())
        }
        Some(_) | None => Next::Done,
    }
}

const fn is_create(answer: &Answer) -> bool {
    matches!(answer, Answer::Create(_))
}

/// Adds the finalizer to a new template.
fn add_template_finalizer(template: &Metal3DataTemplate) -> Option<MergePatch> {
    if is_deleting(&template.metadata) {
        return None;
    }
    let present = template.metadata.finalizers.as_deref().unwrap_or_default();
    add_finalizer(present, DATA_TEMPLATE_FINALIZER, &version(&template.metadata)?)
}

fn claim_actions(facts: &Facts<'_>, claim: &Metal3DataClaim, answer: &Answer) -> Vec<Action> {
    let object = |name: &String| facts.objects.iter().find(|object| name_of(&object.metadata) == *name);
    let release_all = |names: &[String]| -> Vec<Action> {
        names
            .iter()
            .filter_map(object)
            .filter_map(|object| release(object, true))
            .collect()
    };
    match answer {
        Answer::Release(names) => {
            let mut actions = release_all(names);
            actions.extend(claim_finalizer(claim, remove_finalizer));
            actions
        }
        // differs (`data-claim-unowned`): the Go manager adds its finalizer to a claim that it cannot serve.
        // Without the template a reference to another namespace is reported all the same: it is never followed.
        Answer::Refuse(error) if facts.template.is_some() || error.is_about_namespace() => {
            claim_status(claim, None, Some(error)).into_iter().collect()
        }
        // Without the template no claim is served; the template may be created again.
        Answer::Adopt(_) | Answer::Create(_) if facts.unreadable.is_some() => {
            let error = facts.unreadable.map(|why| DataError::unreadable(facts.key, why));
            claim_status(claim, None, error.as_ref()).into_iter().collect()
        }
        _ if facts.template.is_none() => Vec::new(),
        Answer::Refuse(_) => Vec::new(),
        Answer::Surplus(names) => release_all(names),
        Answer::Wait(_) => Vec::new(),
        Answer::Adopt(_) | Answer::Create(_) if !has_finalizer(claim, DATA_CLAIM_FINALIZER) => {
            claim_finalizer(claim, add_finalizer).into_iter().collect()
        }
        Answer::Adopt(name) => claim_status(claim, Some(name), None).into_iter().collect(),
        Answer::Create(object) => {
            // An unreadable object may already serve this claim.
            if let Some((kind, name)) = &facts.unreadable_object {
                let error = DataError::unreadable_object(kind, name);
                return claim_status(claim, None, Some(&error)).into_iter().collect();
            }
            let name = name_of(&object.metadata).to_owned();
            let create = Action::Create(object.clone());
            std::iter::once(create)
                .chain(claim_status(claim, Some(&name), None))
                .collect()
        }
    }
}

/// Adds or removes the finalizer of a claim.
fn claim_finalizer(
    claim: &Metal3DataClaim,
    edit: fn(&[String], &str, &ResourceVersion) -> Option<MergePatch>,
) -> Option<Action> {
    let present = claim.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = edit(present, DATA_CLAIM_FINALIZER, &version(&claim.metadata)?)?;
    Some(Action::PatchClaim(name_of(&claim.metadata).to_owned(), patch))
}

/// The status of a claim, if it changes.
fn claim_status(claim: &Metal3DataClaim, data: Option<&str>, error: Option<&DataError>) -> Option<Action> {
    let mut after = claim.clone();
    after.status.rendered_data = data.map(|name| Metal3ObjectRef {
        name: Some(name.to_owned()),
        namespace: claim.metadata.namespace.clone(),
    });
    after.status.error_message = error.map(|error| truncated(&error.to_string()));
    let patch = changes(claim, &after)
        .status?
        .with_precondition(&version(&claim.metadata)?);
    Some(Action::PatchClaimStatus(name_of(&claim.metadata).to_owned(), patch))
}

/// Removes the finalizer that holds an object for a claim. `delete`: also deletes the object.
fn release(object: &Metal3Data, delete: bool) -> Option<Action> {
    Release::of(object, DATA_CLAIM_FINALIZER, delete).map(Action::Release)
}

/// Releases objects in deletion that are held for a claim that does not exist.
fn orphans(facts: &Facts<'_>, plan: &mut Plan) {
    let held = facts.objects.iter().filter(|object| {
        referred(object.spec.template.as_ref()) == facts.key.name
            && is_deleting(&object.metadata)
            && has_finalizer(**object, DATA_CLAIM_FINALIZER)
            && !pause::is_reconcile_skipped(&object.metadata)
    });
    for object in held {
        let claim = referred(object.spec.claim.as_ref());
        let owner_uid = owner::first::<Metal3DataClaim>(&object.metadata).map(|owner| owner.uid.as_str());
        let is_owner = |uid: Option<&str>| owner_uid.is_none_or(|owner_uid| uid == Some(owner_uid));
        let exists = facts
            .claims
            .iter()
            .any(|found| name_of(&found.metadata) == claim && is_owner(found.metadata.uid.as_deref()));
        if exists {
            continue;
        }
        match facts.read.get(claim) {
            None if !claim.is_empty() => plan.reads.claims.push(claim.to_owned()),
            Some(Some(uid)) if is_owner(Some(uid)) => {}
            None | Some(_) => plan.actions.extend(release(object, false).map(|action| vec![action])),
        }
    }
}

/// The last write to a template whose claims are served: the indexes in use, or, in deletion without any, the
/// finalizer.
fn finish(facts: &Facts<'_>, template: &Metal3DataTemplate, allocation: &Allocation, plan: &mut Plan) {
    let Some(version) = version(&template.metadata) else {
        return;
    };
    let is_used = |object: &&Metal3Data| referred(object.spec.template.as_ref()) == facts.key.name;
    let is_free = facts.claims.is_empty() && !facts.objects.iter().any(is_used) && facts.unreadable_object.is_none();
    if is_deleting(&template.metadata) && is_free {
        let present = template.metadata.finalizers.as_deref().unwrap_or_default();
        if let Some(patch) = remove_finalizer(present, DATA_TEMPLATE_FINALIZER, &version) {
            plan.reads.list = !facts.listed;
            // Without claims and objects there is no other chain.
            plan.actions.push(vec![Action::PatchTemplate(patch)]);
        }
        return;
    }
    if template.status.indexes == allocation.published {
        return;
    }
    let mut after = template.clone();
    after.status = Metal3DataTemplateStatus {
        indexes: allocation.published.clone(),
        last_updated: Some(facts.now),
    };
    let patch = changes(template, &after).status;
    plan.status = patch.map(|patch| patch.with_precondition(&version));
    let unpublished = allocation.unpublished;
    if plan.status.is_some() && unpublished > 0 {
        let note = format!("{unpublished} more indexes are in use than the status can contain");
        plan.events.push(PlannedEvent::normal(reason::INDEXES_TRUNCATED, note));
    }
}

const fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}
