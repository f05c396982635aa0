//! The inputs of the step for one Metal3Data, from the caches.
//!
//! Owners are compared by UID, so that no machine gets the data of an earlier one of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{IPAddressClaim, Machine};
use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_domain::derived::RenderedPart;
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::{Indexes, Key, SharedCache};
use metal3_runtime::patch::with_finalizer;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

use super::Objects;
use crate::data::claims::Naming;
use crate::data::index::referred;
use crate::data::reconciler::grants::{self, find, is_uid_match};
use crate::data::reconciler::reason;
use crate::data::reconciler::related_keys::sibling;
use crate::data::secrets::{self, SecretAction};
use crate::data::step::{self, Facts, KnownClaims};
use crate::data::subject::{Subject, name_of};
use crate::machine::facts::associated;

pub(super) type Owned = (Vec<Arc<IPClaim>>, Vec<Arc<IPAddressClaim>>);

/// The inputs of the step for one Metal3Data that its claim names.
pub(super) struct Inputs<'a> {
    data: &'a Metal3Data,
    template: Option<Arc<Metal3DataTemplate>>,
    claim: Option<Arc<Metal3DataClaim>>,
    metal3_machine: Option<Arc<Metal3Machine>>,
    machine: Option<Arc<Machine>>,
    host: Option<Arc<BareMetalHost>>,
    secrets: BTreeMap<String, ObjectMeta>,
    claims: KnownClaims,
    naming: Naming,
}

impl<'a> Inputs<'a> {
    /// Collects the inputs, or returns why there is nothing to do or what to wait for.
    pub(super) fn of(objects: &Objects, key: &Key, data: &'a Metal3Data) -> Result<Self, Next> {
        let caches = &objects.caches;
        let template = referred(data.spec.template.as_ref());
        if template.is_empty() || is_complete(objects, data)? {
            return Err(Next::Done);
        }
        let template = find(&caches.templates, &sibling(data, template))?;
        let claim = naming_claim(objects, data)?;
        let metal3_machine = owned_by(claim.as_deref(), &caches.machines)?;
        let machine = owned_by(metal3_machine.as_deref(), &caches.owners)?;
        let host = metal3_machine.as_deref().and_then(associated);
        let host = host
            .map(|host| find(&caches.hosts, &sibling(data, host)))
            .transpose()?
            .flatten();
        let mut inputs = Self {
            data,
            template,
            claim,
            metal3_machine,
            machine,
            host,
            secrets: BTreeMap::new(),
            claims: KnownClaims::default(),
            naming: objects.naming,
        };
        inputs.secrets = inputs.known_secrets(objects)?;
        inputs.claims = inputs.known_claims(objects, key)?;
        Ok(inputs)
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            data: self.data,
            template: self.template.as_deref(),
            claim: self.claim.as_deref(),
            metal3_machine: self.metal3_machine.as_deref(),
            machine: self.machine.as_deref(),
            host: self.host.as_deref(),
            secrets: &self.secrets,
            claims: &self.claims,
            naming: self.naming,
        }
    }

    pub(super) fn cluster_name(&self) -> &str {
        self.machine
            .as_ref()
            .map_or("", |machine| machine.spec.cluster_name.as_str())
    }

    /// The Metal3Data as required before any object is created for it: with the finalizer and the names of its Secrets.
    pub(super) fn with_finalizer_and_secrets(&self) -> Metal3Data {
        let mut data = with_finalizer(self.data.clone(), DATA_FINALIZER);
        let (Some(template), Some(machine)) = (&self.template, &self.metal3_machine) else {
            return data;
        };
        let namespace = data.metadata.namespace.clone();
        let reference = |part| {
            let name = secrets::name(self.data, part, name_of(&machine.metadata)).ok()?;
            Some(SecretReference {
                name: Some(name.to_string()),
                namespace: namespace.clone(),
            })
        };
        if template.spec.meta_data.is_some() && data.spec.meta_data.is_none() {
            data.spec.meta_data = reference(RenderedPart::MetaData);
        }
        if template.spec.network_data.is_some() && data.spec.network_data.is_none() {
            data.spec.network_data = reference(RenderedPart::NetworkData);
        }
        data
    }

    fn known_secrets(&self, objects: &Objects) -> Result<BTreeMap<String, ObjectMeta>, Next> {
        let mut known = BTreeMap::new();
        let Some(machine) = &self.metal3_machine else {
            return Ok(known);
        };
        for part in [RenderedPart::MetaData, RenderedPart::NetworkData] {
            // The step reports an invalid name.
            let Ok(name) = secrets::name(self.data, part, name_of(&machine.metadata)) else {
                continue;
            };
            if let Some(found) = secret(objects, &sibling(self.data, name.as_str()))? {
                known.insert(name.to_string(), found);
            }
        }
        Ok(known)
    }

    fn known_claims(&self, objects: &Objects, key: &Key) -> Result<KnownClaims, Next> {
        let mut claims = KnownClaims::default();
        let (Some(template), Some(machine), Some(metal3_machine), Some(host)) =
            (&self.template, &self.machine, &self.metal3_machine, &self.host)
        else {
            return Ok(claims);
        };
        let subject = Subject {
            namespace: &key.namespace,
            index: self.data.spec.index.unwrap_or_default(),
            machine,
            metal3_machine,
            host,
        };
        // The step reports errors in the template.
        let wanted = step::wanted(&self.facts(), template, &subject).unwrap_or_default();
        let names = wanted.iter().flat_map(|(_, names)| &names.known);
        let names: BTreeSet<Key> = names.map(|name| sibling(self.data, name.as_str())).collect();
        // Registered before the read, so that a later change enqueues the key.
        objects.related.lock().await_claims(key, names);
        for (pool, names) in &wanted {
            for name in &names.known {
                let claim = sibling(self.data, name.as_str());
                if pool.is_metal3() {
                    let state = grants::metal3(&objects.caches, &self.data.metadata, &claim)?;
                    claims
                        .metal3
                        .extend(state.map(|state| (ObjectName::clone(name), state)));
                } else {
                    let state = grants::general(&objects.caches, &self.data.metadata, &claim)?;
                    claims
                        .general
                        .extend(state.map(|state| (ObjectName::clone(name), state)));
                }
            }
        }
        Ok(claims)
    }
}

/// Whether a Metal3Data is ready and its Secrets exist, so that nothing else is read.
fn is_complete(objects: &Objects, data: &Metal3Data) -> Result<bool, Next> {
    if data.status.ready != Some(true) {
        return Ok(false);
    }
    for reference in [&data.spec.meta_data, &data.spec.network_data].into_iter().flatten() {
        let name = reference.name.as_deref().unwrap_or_default();
        let found = secret(objects, &sibling(data, name))?;
        if secrets::action(data, found.as_ref()) != SecretAction::Keep {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The claim of a Metal3Data, which must name it. Two replicas may create two Metal3Data for one claim; only one is
/// named.
fn naming_claim(objects: &Objects, data: &Metal3Data) -> Result<Option<Arc<Metal3DataClaim>>, Next> {
    let name = referred(data.spec.claim.as_ref());
    if name.is_empty() {
        return Ok(None);
    }
    let Some(claim) = find(&objects.caches.claims, &sibling(data, name))? else {
        return Ok(None);
    };
    let waiting = |what: &str| {
        Err(Next::waiting(
            reason::NOT_NAMED,
            format!("Metal3DataClaim {name} {what}"),
        ))
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return waiting("is being deleted");
    }
    let made_for = owner::first::<Metal3DataClaim>(&data.metadata);
    if made_for.is_some_and(|owner| !is_uid_match(owner, &claim.metadata)) {
        return waiting("has another UID than the owner reference");
    }
    if referred(claim.status.rendered_data.as_ref()) != name_of(&data.metadata) {
        return waiting("does not name this Metal3Data");
    }
    Ok(Some(claim))
}

/// The owner of a kind, if its UID matches.
fn owned_by<K: Kind, O: Kind, I: Indexes<O>>(
    object: Option<&K>,
    cache: &SharedCache<O, I>,
) -> Result<Option<Arc<O>>, Next> {
    let Some((object, owner)) = object.and_then(|object| Some((object, owner::first::<O>(object.meta())?))) else {
        return Ok(None);
    };
    let found = find(cache, &sibling(object, &owner.name))?;
    Ok(found.filter(|found| is_uid_match(owner, found.meta())))
}

fn secret(objects: &Objects, key: &Key) -> Result<Option<ObjectMeta>, Next> {
    match objects.caches.secrets.find(key) {
        Observed::Present(found) => Ok(Some(found.metadata.clone())),
        Observed::Absent => Ok(None),
        Observed::Unknown(UnknownReason::Unreadable(why)) => {
            Err(Next::waiting(reason::OBJECT_UNREADABLE, format!("Secret {key}: {why}")))
        }
        Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => Err(Next::waiting(
            reason::OBJECT_UNREADABLE,
            format!("Secret {key}: the first list is not complete"),
        )),
    }
}
