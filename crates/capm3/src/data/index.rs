//! Which number a claim gets, and the Metal3Data that stands for it.
//!
//! The truth is the Metal3Data objects: the table in the template's status is written from them and never read. A claim
//! gets the lowest number that no object uses, one that is being deleted included, whatever its template or claim. One
//! claim never blocks another.
//!
//! Invariant: an answer never gives one number to two claims, and asking again after acting answers the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::infrastructure::names::{DATA_CLAIM_FINALIZER, DATA_FINALIZER};
use metal3_api::infrastructure::v1beta2::{
    IndexGrant, Metal3Data, Metal3DataClaim, Metal3DataSpec, Metal3DataTemplate, Metal3Machine, Metal3ObjectRef,
};
use metal3_capi::owner;
use metal3_domain::derived::data_object;
use metal3_domain::names::ObjectName;

use super::subject::name_of;
use super::{DataError, Problem};

/// Entries that the status of a template has room for.
pub const PUBLISHED: usize = 512;

/// What is to be done for the claims on one template, and what its status is to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The claims for which something is to be done, by name.
    pub claims: Vec<(String, Answer)>,
    /// The numbers in use, lowest first, as many as the status has room for.
    pub published: Vec<IndexGrant>,
    /// How many numbers are in use beyond those.
    pub unpublished: usize,
}

/// What is to be done for a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Say in its status that this Metal3Data answers it.
    Adopt(String),
    /// Create this Metal3Data, then say so in its status.
    Create(Box<Metal3Data>),
    /// Delete these Metal3Data: somebody made them for the claim at the same time as the one that its status names.
    Surplus(Vec<String>),
    /// Nothing yet: the Metal3Data of an earlier claim of this name is being deleted.
    Wait(String),
    /// It is being deleted: delete these Metal3Data, taking the claim's finalizer off them, then off the claim.
    Release(Vec<String>),
    /// It cannot be answered; its status says why.
    Refuse(DataError),
}

/// What is to be done for the claims on a template. `objects` and `claims` are all of the namespace; `is_paused` tells
/// the claims that are left alone.
#[must_use]
pub fn allocate(
    template: &Metal3DataTemplate,
    objects: &[&Metal3Data],
    claims: &[&Metal3DataClaim],
    is_paused: impl Fn(&Metal3DataClaim) -> bool,
) -> Allocation {
    let mut table = Table::read(name_of(&template.metadata), objects);
    let mut claims: Vec<&Metal3DataClaim> = claims.iter().copied().filter(|claim| table.is_for(claim)).collect();
    claims.sort_by_key(|claim| name_of(&claim.metadata));
    let mut answers = Vec::new();
    for claim in claims {
        if !is_paused(claim)
            && let Some(answer) = table.answer(template, claim)
        {
            answers.push((name_of(&claim.metadata).to_owned(), answer));
        }
    }
    let unpublished = table.used.len().saturating_sub(PUBLISHED);
    let grant = |(index, name): (i32, String)| IndexGrant { name, index };
    Allocation {
        claims: answers,
        published: table.used.into_iter().take(PUBLISHED).map(grant).collect(),
        unpublished,
    }
}

/// The numbers of one template.
struct Table<'a> {
    template: &'a str,
    /// Objects made from the template, by the claim they answer.
    by_claim: BTreeMap<&'a str, Vec<&'a Metal3Data>>,
    /// Numbers that cannot be given to a claim.
    taken: BTreeSet<i32>,
    /// Where the search for a free number goes on.
    cursor: i32,
    /// Numbers in use, with the claim each belongs to.
    used: BTreeMap<i32, String>,
}

impl<'a> Table<'a> {
    fn read(template: &'a str, objects: &[&'a Metal3Data]) -> Self {
        let mut table = Self {
            template,
            by_claim: BTreeMap::new(),
            taken: BTreeSet::new(),
            cursor: 0,
            used: BTreeMap::new(),
        };
        for object in objects {
            // differs (`data-name-taken`): a name that is in use already makes the Go manager wait for ever.
            let by_name = name_of(&object.metadata).strip_prefix(template);
            let by_name: Option<i32> = by_name.and_then(|rest| rest.strip_prefix('-')?.parse().ok());
            table.taken.extend(by_name);
            if referred(object.spec.template.as_ref()) != template {
                continue;
            }
            // differs (`data-number-kept`): the Go manager gives away the number of an object without claim.
            table.taken.extend(object.spec.index);
            let claim = referred(object.spec.claim.as_ref());
            if !claim.is_empty() {
                table.by_claim.entry(claim).or_default().push(object);
                table
                    .used
                    .extend(object.spec.index.map(|index| (index, claim.to_owned())));
            }
        }
        table
    }

    fn is_for(&self, claim: &Metal3DataClaim) -> bool {
        let template = claim.spec.template.as_ref();
        let namespace = template
            .and_then(|template| template.namespace.as_deref())
            .filter(|name| !name.is_empty());
        referred(template) == self.template
            && namespace.is_none_or(|namespace| Some(namespace) == claim.metadata.namespace.as_deref())
    }

    fn answer(&mut self, template: &Metal3DataTemplate, claim: &Metal3DataClaim) -> Option<Answer> {
        let name = name_of(&claim.metadata);
        let own = self.by_claim.get(name).map_or(&[][..], Vec::as_slice);
        let object_name = |object: &&Metal3Data| name_of(&object.metadata).to_owned();
        if claim.metadata.deletion_timestamp.is_some() {
            return Some(Answer::Release(own.iter().map(object_name).collect()));
        }
        if claim.status.rendered_data.is_some() {
            return surplus(own, claim).map(Answer::Surplus);
        }
        // One that was rendered already is the one that the claim named before it was moved here.
        let candidates = || own.iter().filter(|object| answers(object, claim));
        if let Some(object) = candidates().find(|object| is_worked_on(object)).or(candidates().next()) {
            return Some(Answer::Adopt(object_name(object)));
        }
        if let Some(object) = own.first() {
            return Some(Answer::Wait(object_name(object)));
        }
        Some(self.create(template, claim).unwrap_or_else(Answer::Refuse))
    }

    fn create(&mut self, template: &Metal3DataTemplate, claim: &Metal3DataClaim) -> Result<Answer, DataError> {
        let machine = owner::first::<Metal3Machine>(&claim.metadata)
            .ok_or_else(|| Problem::NoOwner.of("metadata.ownerReferences"))?;
        let index = self
            .free()
            .ok_or_else(|| Problem::Exhausted.of(format!("Metal3DataTemplate {}", self.template)))?;
        let name = data_name(self.template, index)?;
        let machine_reference = OwnerReference {
            controller: None,
            name: machine.name.clone(),
            uid: machine.uid.clone(),
            ..owner::reference::<Metal3Machine>(&ObjectMeta::default())
        };
        let reference = |metadata: &ObjectMeta| Metal3ObjectRef {
            name: metadata.name.clone(),
            namespace: claim.metadata.namespace.clone(),
        };
        let metadata = ObjectMeta {
            name: Some(name.to_string()),
            namespace: claim.metadata.namespace.clone(),
            labels: claim.metadata.labels.clone(),
            finalizers: Some(vec![DATA_CLAIM_FINALIZER.to_owned()]),
            // Not the template: the object goes with its claim, not with what it was made from.
            owner_references: Some(vec![
                owner::reference::<Metal3DataClaim>(&claim.metadata),
                machine_reference,
            ]),
            ..ObjectMeta::default()
        };
        let spec = Metal3DataSpec {
            index: Some(index),
            template: Some(reference(&template.metadata)),
            claim: Some(reference(&claim.metadata)),
            ..Metal3DataSpec::default()
        };
        self.taken.insert(index);
        self.used.insert(index, name_of(&claim.metadata).to_owned());
        Ok(Answer::Create(Box::new(Metal3Data {
            metadata,
            spec,
            ..Metal3Data::default()
        })))
    }

    /// The lowest number that is not taken.
    fn free(&mut self) -> Option<i32> {
        while self.taken.contains(&self.cursor) {
            self.cursor = self.cursor.checked_add(1)?;
        }
        Some(self.cursor)
    }
}

fn data_name(template: &str, index: i32) -> Result<ObjectName, DataError> {
    let unusable = |error| {
        let name = format!("{template}-{index}");
        Problem::MadeName { name, error }.of(format!("Metal3DataTemplate {template} metadata.name"))
    };
    let number = u32::try_from(index).unwrap_or_default();
    ObjectName::parse(template)
        .and_then(|template| data_object(&template, number))
        .map_err(unusable)
}

/// Whether an object answers a claim: it is not being deleted, and was not made for an earlier claim of that name.
fn answers(object: &Metal3Data, claim: &Metal3DataClaim) -> bool {
    let made_for = owner::first::<Metal3DataClaim>(&object.metadata);
    let same = made_for.is_none_or(|owner| Some(owner.uid.as_str()) == claim.metadata.uid.as_deref());
    object.metadata.deletion_timestamp.is_none() && same
}

/// Whether the object was named by its claim once, so that it may be rendered.
fn is_worked_on(object: &Metal3Data) -> bool {
    let finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|name| name == DATA_FINALIZER)
}

/// The objects that were made for a claim beside the one that its status names. Nobody has worked on them: what its
/// claim does not name is not rendered.
fn surplus(own: &[&Metal3Data], claim: &Metal3DataClaim) -> Option<Vec<String>> {
    let named = referred(claim.status.rendered_data.as_ref());
    let is_named = |object: &&&Metal3Data| name_of(&object.metadata) == named;
    own.iter().find(is_named)?;
    let surplus = own.iter().filter(|object| {
        let ours = owner::is_owned_by(&object.metadata, claim.metadata.uid.as_deref());
        ours && !is_named(object) && !is_worked_on(object) && object.metadata.deletion_timestamp.is_none()
    });
    let names: Vec<String> = surplus.map(|object| name_of(&object.metadata).to_owned()).collect();
    (!names.is_empty()).then_some(names)
}

/// Name in a reference; empty where it says nothing.
pub(crate) fn referred(reference: Option<&Metal3ObjectRef>) -> &str {
    reference
        .and_then(|reference| reference.name.as_deref())
        .unwrap_or_default()
}
