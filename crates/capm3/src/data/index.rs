//! Assigns an index, and so a Metal3Data, to each claim.
//!
//! The Metal3Data objects are the only source: the table in the template's status is written from them and never read.
//! A claim gets the lowest index that no object uses, including objects in deletion. One claim never blocks another.
//!
//! Invariant: one index is never assigned to two claims, and the result is the same after its actions are executed.

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

/// The limit of entries in the status of a template.
pub const PUBLISHED_LIMIT: usize = 512;

/// The actions for the claims on one template, and its status.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The claims that need an action, by name.
    pub claims: Vec<(String, Answer)>,
    /// The indexes in use, lowest first, up to the limit of the status.
    pub published: Vec<IndexGrant>,
    /// The number of indexes in use beyond the limit.
    pub unpublished: usize,
}

/// The action for a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Set this Metal3Data in its status.
    Adopt(String),
    /// Create this Metal3Data, then set it in its status.
    Create(Box<Metal3Data>),
    /// Delete these Metal3Data: another replica created them for the same claim.
    Surplus(Vec<String>),
    /// Wait: the Metal3Data of an earlier claim of this name is in deletion.
    Wait(String),
    /// The claim is in deletion: delete these Metal3Data and remove the claim's finalizer from them, then from the
    /// claim.
    Release(Vec<String>),
    /// The claim cannot be served; its status gets the error.
    Refuse(DataError),
}

/// The actions for the claims on a template. `objects` and `claims` are all of the namespace; claims for which
/// `is_paused` is true are skipped.
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
    let mut serves = Vec::new();
    for claim in claims {
        if !is_paused(claim)
            && let Some(answer) = table.answer(template, claim)
        {
            serves.push((name_of(&claim.metadata).to_owned(), answer));
        }
    }
    let unpublished = table.used.len().saturating_sub(PUBLISHED_LIMIT);
    let grant = |(index, name): (i32, String)| IndexGrant { name, index };
    Allocation {
        claims: serves,
        published: table.used.into_iter().take(PUBLISHED_LIMIT).map(grant).collect(),
        unpublished,
    }
}

struct Table<'a> {
    template: &'a str,
    /// Objects of the template, by claim.
    by_claim: BTreeMap<&'a str, Vec<&'a Metal3Data>>,
    /// Indexes that cannot be assigned.
    used_indexes: BTreeSet<i32>,
    /// The start of the search for a free index.
    cursor: i32,
    /// Indexes in use, with their claim.
    used: BTreeMap<i32, String>,
}

impl<'a> Table<'a> {
    fn read(template: &'a str, objects: &[&'a Metal3Data]) -> Self {
        let mut table = Self {
            template,
            by_claim: BTreeMap::new(),
            used_indexes: BTreeSet::new(),
            cursor: 0,
            used: BTreeMap::new(),
        };
        let prefixes = shared_prefixes(template, objects);
        for object in objects {
            // differs (`data-name-taken`): with an object name in use the Go manager waits for ever.
            table.used_indexes.extend(
                numbered(object)
                    .filter(|(prefix, _)| prefixes.contains(prefix))
                    .map(|(_, index)| index),
            );
            if referred(object.spec.template.as_ref()) != template {
                continue;
            }
            // differs (`data-number-kept`): the Go manager assigns the index of an object without claim again.
            table.used_indexes.extend(object.spec.index);
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

    /// Whether a claim names the template. Claims of any namespace reference count: older managers served them with the
    /// template of the claim's own namespace, and they must be released.
    fn is_for(&self, claim: &Metal3DataClaim) -> bool {
        referred(claim.spec.template.as_ref()) == self.template
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
        // After a move an object that was rendered is the one that the claim named before.
        let candidates = || own.iter().filter(|object| serves(object, claim));
        if let Some(object) = candidates().find(|object| was_named(object)).or(candidates().next()) {
            return Some(Answer::Adopt(object_name(object)));
        }
        if let Some(object) = own.first() {
            return Some(Answer::Wait(object_name(object)));
        }
        Some(self.create(template, claim).unwrap_or_else(Answer::Refuse))
    }

    fn create(&mut self, template: &Metal3DataTemplate, claim: &Metal3DataClaim) -> Result<Answer, DataError> {
        // differs (`data-namespaces`): the Go managers up to 1.12 serve it with the template of the claim's namespace.
        check_namespace(claim)?;
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
            // Not the template: the object is deleted with its claim.
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
        self.used_indexes.insert(index);
        self.used.insert(index, name_of(&claim.metadata).to_owned());
        Ok(Answer::Create(Box::new(Metal3Data {
            metadata,
            spec,
            ..Metal3Data::default()
        })))
    }

    fn free(&mut self) -> Option<i32> {
        while self.used_indexes.contains(&self.cursor) {
            self.cursor = self.cursor.checked_add(1)?;
        }
        Some(self.cursor)
    }
}

/// The prefixes of names whose numbers a template must not use: its own name, and those of its objects. Go managers up
/// to 1.10 name the objects of templates that share a `templateReference` after it, and count them together.
fn shared_prefixes<'a>(template: &'a str, objects: &[&'a Metal3Data]) -> BTreeSet<&'a str> {
    let own = objects
        .iter()
        .filter(|object| referred(object.spec.template.as_ref()) == template);
    own.filter_map(|object| numbered(object))
        .map(|(prefix, _)| prefix)
        .chain([template])
        .collect()
}

/// The prefix and the number of an object's name.
fn numbered(object: &Metal3Data) -> Option<(&str, i32)> {
    let (prefix, number) = name_of(&object.metadata).rsplit_once('-')?;
    Some((prefix, number.parse().ok()?))
}

fn check_namespace(claim: &Metal3DataClaim) -> Result<(), DataError> {
    let own = claim.metadata.namespace.as_deref().unwrap_or_default();
    let template = claim.spec.template.as_ref();
    match template.and_then(|template| template.namespace.as_deref()) {
        Some(found) if !found.is_empty() && found != own => Err(Problem::ForeignNamespace {
            found: found.to_owned(),
            own: own.to_owned(),
        }
        .of("spec.template.namespace")),
        _ => Ok(()),
    }
}

fn data_name(template: &str, index: i32) -> Result<ObjectName, DataError> {
    let number = u32::try_from(index).unwrap_or_default();
    ObjectName::parse(template)
        .and_then(|template| data_object(&template, number))
        .map_err(|error| {
            let field = format!("Metal3DataTemplate {template} metadata.name");
            DataError::made_name(format!("{template}-{index}"), error, field)
        })
}

/// Whether an object serves a claim: it is not in deletion, and belongs to this claim and not to an earlier one of that
/// name.
fn serves(object: &Metal3Data, claim: &Metal3DataClaim) -> bool {
    let owner = owner::first::<Metal3DataClaim>(&object.metadata);
    let same = owner.is_none_or(|owner| Some(owner.uid.as_str()) == claim.metadata.uid.as_deref());
    object.metadata.deletion_timestamp.is_none() && same
}

/// Whether a claim has named the object before, so that it may be rendered.
fn was_named(object: &Metal3Data) -> bool {
    let finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|name| name == DATA_FINALIZER)
}

/// The objects of a claim other than the one in its status. They are not rendered, because the claim does not name
/// them.
fn surplus(own: &[&Metal3Data], claim: &Metal3DataClaim) -> Option<Vec<String>> {
    let named = referred(claim.status.rendered_data.as_ref());
    let is_named = |object: &&&Metal3Data| name_of(&object.metadata) == named;
    own.iter().find(is_named)?;
    let surplus = own.iter().filter(|object| {
        let is_owned = owner::is_owned_by(&object.metadata, claim.metadata.uid.as_deref());
        is_owned && !is_named(object) && !was_named(object) && object.metadata.deletion_timestamp.is_none()
    });
    let names: Vec<String> = surplus.map(|object| name_of(&object.metadata).to_owned()).collect();
    (!names.is_empty()).then_some(names)
}

/// The name in a reference; empty when unset.
pub(crate) fn referred(reference: Option<&Metal3ObjectRef>) -> &str {
    reference
        .and_then(|reference| reference.name.as_deref())
        .unwrap_or_default()
}
