//! Performs one action.

use kube_core::ResourceExt as _;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::plan::{Observed, PlannedEvent};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{Writable, WriteError, WriteErrorKind, WriteTarget, Writer};

use super::caches::Caches;
use crate::action::{Action, NewAddress};
use crate::claim::{ClaimKind, ObjectId};
use crate::index::key;
use crate::needs::Ipam;

/// Performs the actions of one reconcile.
pub(super) struct Executor<'a> {
    pub(super) pool: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) writer: &'a Writer<Ipam>,
    pub(super) events: &'a EventRecorder,
}

/// The reason why a chain ends early.
pub(super) enum ActError {
    /// The API server rejects the address object of this claim.
    Rejected(ObjectId, WriteError),
    /// The object differs from the one in the plan. This is no fault: the next reconcile plans with the new state.
    Stale,
    /// A request failed, or its result is unknown.
    Failed(Fault),
}

impl From<WriteError> for ActError {
    fn from(error: WriteError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Fault> for ActError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl Executor<'_> {
    pub(super) async fn act(&self, action: &Action) -> Result<(), ActError> {
        let (writer, caches) = (self.writer, self.caches);
        match action {
            Action::PatchPool(patch) => drop(writer.patch(&caches.pools, self.pool, patch.clone()).await?),
            Action::PatchPoolStatus(patch) => {
                drop(writer.patch_status(&caches.pools, self.pool, patch.clone()).await?);
            }
            Action::PatchClaim(claim, patch) => {
                let (key, patch) = (self.key_of(claim), patch.clone());
                match claim.kind {
                    ClaimKind::Metal3 => drop(writer.patch(&caches.claims, &key, patch).await?),
                    ClaimKind::ClusterApi => drop(writer.patch(&caches.cluster_claims, &key, patch).await?),
                }
            }
            Action::PatchClaimStatus(claim, patch) => {
                let (key, patch) = (self.key_of(claim), patch.clone());
                match claim.kind {
                    ClaimKind::Metal3 => drop(writer.patch_status(&caches.claims, &key, patch).await?),
                    ClaimKind::ClusterApi => drop(writer.patch_status(&caches.cluster_claims, &key, patch).await?),
                }
            }
            Action::PatchAddress(address, patch) => {
                let (key, patch) = (self.key_of(address), patch.clone());
                match address.kind {
                    ClaimKind::Metal3 => drop(writer.patch(&caches.addresses, &key, patch).await?),
                    ClaimKind::ClusterApi => drop(writer.patch(&caches.cluster_addresses, &key, patch).await?),
                }
            }
            Action::CreateAddress(new) => match new {
                NewAddress::Metal3(object) => {
                    self.create(
                        &caches.addresses,
                        new,
                        (&**object, |address| address.spec.address.as_str()),
                    )
                    .await?;
                }
                NewAddress::ClusterApi(object) => {
                    self.create(
                        &caches.cluster_addresses,
                        new,
                        (&**object, |address| &address.spec.address),
                    )
                    .await?;
                }
            },
            Action::DeleteAddress { address, uid, version } => match address.kind {
                ClaimKind::Metal3 => self.delete(&caches.addresses, address, (uid, version)).await?,
                ClaimKind::ClusterApi => self.delete(&caches.cluster_addresses, address, (uid, version)).await?,
            },
        }
        Ok(())
    }

    /// Creates an address object. If one of that name exists, it is read into the cache, and must have the same address
    /// and owners.
    async fn create<K: Writable>(
        &self,
        cache: &SharedCache<K>,
        new: &NewAddress,
        (object, address): (&K, fn(&K) -> &str),
    ) -> Result<(), ActError>
    where
        Ipam: Permits<verb::Create, K> + Permits<verb::Get, K>,
        SharedCache<K>: WriteTarget<K>,
    {
        let Err(error) = self.writer.create(cache, object).await else {
            return Ok(());
        };
        match error.kind {
            WriteErrorKind::AlreadyExists => {
                let existing = self.writer.read(cache, &Key::of(object)).await?;
                let is_same =
                    |existing: &K| address(existing) == address(object) && owners(existing).eq(owners(object));
                existing
                    .as_ref()
                    .is_some_and(is_same)
                    .then_some(())
                    .ok_or(ActError::Stale)
            }
            WriteErrorKind::Invalid => Err(ActError::Rejected(new.claim(), error)),
            _ => Err(error.into()),
        }
    }

    /// Deletes an address object at the version in the plan, if the cache still contains that.
    async fn delete<K: Writable>(
        &self,
        cache: &SharedCache<K>,
        address: &ObjectId,
        (uid, version): (&str, &ResourceVersion),
    ) -> Result<(), ActError>
    where
        Ipam: Permits<verb::Delete, K>,
        SharedCache<K>: WriteTarget<K>,
    {
        let Observed::Present(found) = cache.find(&self.key_of(address)) else {
            return Err(ActError::Stale);
        };
        let last = Identity::of(&*found).map_err(|_| ActError::Stale)?;
        if last.uid != uid || last.version != *version {
            return Err(ActError::Stale);
        }
        self.writer.delete_at(cache, &last).await?;
        Ok(())
    }

    pub(super) fn record(&self, claim: &ObjectId, event: PlannedEvent) {
        let (
            key,
            PlannedEvent {
                importance,
                reason,
                message,
            },
        ) = (self.key_of(claim), event);
        match claim.kind {
            ClaimKind::Metal3 => {
                if let Observed::Present(claim) = self.caches.claims.find(&key) {
                    self.events.record(&*claim, importance, reason, message);
                }
            }
            ClaimKind::ClusterApi => {
                if let Observed::Present(claim) = self.caches.cluster_claims.find(&key) {
                    self.events.record(&*claim, importance, reason, message);
                }
            }
        }
    }

    fn key_of(&self, object: &ObjectId) -> Key {
        key(&self.pool.namespace, &object.name)
    }
}

fn owners<K: kube_core::Resource>(object: &K) -> impl Iterator<Item = &str> {
    object.owner_references().iter().map(|owner| owner.uid.as_str())
}
