//! The facts about one Metal3Data, from the caches.
//!
//! Owners are compared by UID, so that no machine gets the data of an earlier one of its name.

use std::collections::BTreeSet;
use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::kind::Kind;
use metal3_capi::owner;
use metal3_domain::derived::RenderedPart;
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::{Cache, Indexes, Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

use super::Objects;
use crate::data::index::referred;
use crate::data::object::facts::{Facts, PoolClaim, Rendering, Responses};
use crate::data::object::plan::{is_complete, is_named, wanted};
use crate::data::pools::PoolRef;
use crate::data::reason;
use crate::data::reconciler::grants::{self, find};
use crate::data::reconciler::related_keys::sibling;
use crate::data::secrets;
use crate::data::subject::{is_uid_match, name_of};
use crate::machine::facts::associated;

impl Objects {
    pub(super) fn observe<'a>(
        &self,
        key: &'a Key,
        data: Option<&'a Metal3Data>,
        responses: &'a Responses,
    ) -> Facts<'a> {
        let cluster = data.and_then(|data| owner::cluster_of(&data.metadata));
        let claim = data.map_or("", |data| referred(data.spec.claim.as_ref()));
        let mut facts = Facts {
            key,
            data,
            cluster: cluster.map_or(Observed::Absent, |name| self.caches.clusters.find(&key.sibling(name))),
            rendering: Rendering {
                naming: self.naming,
                ..Rendering::default()
            },
            claim: self.caches.claims.find(&key.sibling(claim)),
            owned: Vec::new(),
            unreadable: None,
            responses,
        };
        let live = data.filter(|data| data.metadata.deletion_timestamp.is_none());
        let read = match live {
            Some(data) => self.read_rendering(key, data, &mut facts.rendering),
            None => self.read_owned(key, &mut facts.owned),
        };
        facts.unreadable = read.err();
        facts
    }

    /// Reads what the rendering needs, up to the first object that is missing or cannot be read.
    fn read_rendering(&self, key: &Key, data: &Metal3Data, rendering: &mut Rendering) -> Result<(), Next> {
        let caches = &self.caches;
        if data.status.ready == Some(true) {
            for reference in [&data.spec.meta_data, &data.spec.network_data].into_iter().flatten() {
                self.read_secret(key, reference.name.as_deref().unwrap_or_default(), rendering)?;
            }
        }
        let template = referred(data.spec.template.as_ref());
        if template.is_empty() || is_complete(data, rendering) {
            return Ok(());
        }
        rendering.template = find(&caches.templates, &key.sibling(template))?;
        let claim = referred(data.spec.claim.as_ref());
        if !claim.is_empty() {
            rendering.claim = find(&caches.claims, &key.sibling(claim))?;
        }
        if rendering
            .claim
            .as_ref()
            .is_some_and(|claim| is_named(data, claim).is_err())
        {
            return Ok(());
        }
        rendering.metal3_machine = owned_by(rendering.claim.as_deref(), &caches.machines)?;
        rendering.machine = owned_by(rendering.metal3_machine.as_deref(), &caches.owners)?;
        let Some(metal3_machine) = rendering.metal3_machine.clone() else {
            return Ok(());
        };
        if let Some(host) = associated(&metal3_machine) {
            rendering.host = find(&caches.hosts, &key.sibling(host))?;
        }
        for part in [RenderedPart::MetaData, RenderedPart::NetworkData] {
            // The plan reports an invalid name.
            if let Ok(name) = secrets::name(data, part, name_of(&metal3_machine.metadata)) {
                self.read_secret(key, name.as_str(), rendering)?;
            }
        }
        self.read_claims(key, data, rendering)
    }

    fn read_secret(&self, key: &Key, name: &str, rendering: &mut Rendering) -> Result<(), Next> {
        let key = key.sibling(name);
        match self.caches.secrets.find(&key) {
            Observed::Present(found) => {
                rendering.secrets.insert(key.name, found.metadata.clone());
            }
            Observed::Absent => {}
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => {
                let message = format!("Secret {key}: the first list is not complete");
                return Err(Next::waiting(reason::OBJECT_NOT_LISTED, message));
            }
            Observed::Unknown(why) => return Err(reason::unreadable("Secret", &key, &why)),
        }
        Ok(())
    }

    fn read_claims(&self, key: &Key, data: &Metal3Data, rendering: &mut Rendering) -> Result<(), Next> {
        let (Some(template), Some(subject)) = (&rendering.template, rendering.subject(data)) else {
            return Ok(());
        };
        // The plan reports errors in the template.
        let wanted = wanted(data, template, &subject, rendering.naming).unwrap_or_default();
        let names = wanted.iter().flat_map(|(_, names)| &names.known);
        let names: BTreeSet<Key> = names.map(|name| key.sibling(name.as_str())).collect();
        // Registered before the read, so that a later change enqueues the key.
        self.related.lock().await_claims(key, names);
        for (pool, names) in &wanted {
            for name in &names.known {
                self.read_claim(data, pool, name, rendering)?;
            }
        }
        Ok(())
    }

    fn read_claim(
        &self,
        data: &Metal3Data,
        pool: &PoolRef,
        name: &ObjectName,
        rendering: &mut Rendering,
    ) -> Result<(), Next> {
        let (caches, key, owner) = (&self.caches, sibling(data, name.as_str()), &data.metadata);
        let claim = if pool.is_metal3() {
            find(&caches.metal3_claims, &key)?.map(PoolClaim::Metal3)
        } else {
            find(&caches.general_claims, &key)?.map(PoolClaim::General)
        };
        let Some(claim) = claim else { return Ok(()) };
        let (known, state) = match &claim {
            PoolClaim::Metal3(claim) => (&mut rendering.claims.metal3, grants::of_metal3(caches, owner, claim)?),
            PoolClaim::General(claim) => (&mut rendering.claims.general, grants::of_general(caches, owner, claim)?),
        };
        known.insert(name.clone(), state);
        let is_deleting = claim.metadata().deletion_timestamp.is_some();
        rendering.deleting.extend(is_deleting.then_some(claim));
        Ok(())
    }

    /// Reads the claims on pools that a Metal3Data of this name owns.
    fn read_owned(&self, key: &Key, owned: &mut Vec<PoolClaim>) -> Result<(), Next> {
        require_permission(&self.caches.metal3_claims, key)?;
        require_permission(&self.caches.general_claims, key)?;
        let (metal3, general): (Vec<Key>, Vec<Key>) = {
            let related = self.related.lock();
            (
                related.metal3_of.get(key).cloned().collect(),
                related.general_of.get(key).cloned().collect(),
            )
        };
        for claim in metal3 {
            owned.extend(find(&self.caches.metal3_claims, &claim)?.map(PoolClaim::Metal3));
        }
        for claim in general {
            owned.extend(find(&self.caches.general_claims, &claim)?.map(PoolClaim::General));
        }
        Ok(())
    }
}

/// Requires that claims of a kind are known: an empty index proves nothing while they may not be listed.
fn require_permission<K: Kind, I: Indexes<K>>(claims: &SharedCache<K, I>, key: &Key) -> Result<(), Next> {
    if claims.read(Cache::is_permitted) {
        return Ok(());
    }
    Err(reason::unreadable(K::KIND, key, &UnknownReason::NotPermitted))
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
