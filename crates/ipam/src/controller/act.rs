//! Executes plans. The shape of the plan decides what a failure affects: its chain ends, the others continue; without
//! the write to the pool nothing else is written.

use futures::StreamExt as _;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{WriteError, WriteErrorKind, Writer, Written};

use super::caches::{Caches, SharedPoolIndex};
use crate::action::{Action, Chain, Event, NewAddress, Plan};
use crate::allocator::Refusal;
use crate::claim::{ClaimKind, ObjectId};
use crate::documents::{ClaimOutcome, claim_status_patch};
use crate::index::key;
use crate::names::message;
use crate::needs::Ipam;

/// Concurrent chains. This also limits the creates in flight when the process stops.
pub(super) const AT_ONCE: usize = 16;

/// Executes the plan of one reconcile.
pub(super) struct Executor<'a> {
    pub(super) pool: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) index: &'a SharedPoolIndex,
    pub(super) writer: &'a Writer<Ipam>,
    pub(super) events: &'a EventRecorder,
    pub(super) now: metal3_api::meta::Time,
}

/// The reason why a chain ended early.
enum ActError {
    /// A write failed, or its result is unknown.
    Write(WriteError),
    /// The object differs from the one in the plan.
    Stale,
    /// A read failed.
    Read(Fault),
}

impl From<WriteError> for ActError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Fault> for ActError {
    fn from(fault: Fault) -> Self {
        Self::Read(fault)
    }
}

impl Executor<'_> {
    /// Executes a plan.
    ///
    /// # Errors
    /// The first fault other than a lost race. All chains are attempted.
    pub(super) async fn perform(&self, plan: Plan) -> Result<(), Fault> {
        if let Some(first) = &plan.first {
            match self.write(first).await {
                Ok(()) => {}
                Err(error) => return into_fault(error).map_or(Ok(()), Err),
            }
        }
        let chains = futures::stream::iter(plan.chains.into_iter().map(|chain| self.run_chain(chain)));
        let ended: Vec<Option<Fault>> = chains.buffer_unordered(AT_ONCE).collect().await;
        ended.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    async fn run_chain(&self, chain: Chain) -> Option<Fault> {
        for action in &chain.actions {
            if let Err(error) = self.write(action).await {
                return into_fault(error);
            }
        }
        if let Some(event) = &chain.event {
            self.record_event(event);
        }
        None
    }

    async fn write(&self, action: &Action) -> Result<(), ActError> {
        match action {
            Action::PatchPool(patch) => {
                self.writer
                    .patch::<IPPool>(&self.caches.pools, self.pool, patch.clone())
                    .await?;
            }
            Action::PatchPoolStatus(patch) => {
                self.writer
                    .patch_status::<IPPool>(&self.caches.pools, self.pool, patch.clone())
                    .await?;
            }
            Action::PatchClaim(claim, patch) => self.patch_claim(claim, patch.clone()).await?,
            Action::PatchClaimStatus(claim, patch) => self.patch_claim_status(claim, patch.clone()).await?,
            Action::PatchAddress(address, patch) => {
                let (object, patch) = (self.key_of(&address.name), patch.clone());
                match address.kind {
                    ClaimKind::Metal3 => drop(self.writer.patch(&self.caches.addresses, &object, patch).await?),
                    ClaimKind::ClusterApi => {
                        drop(
                            self.writer
                                .patch(&self.caches.cluster_addresses, &object, patch)
                                .await?,
                        );
                    }
                }
            }
            Action::CreateAddress(new) => self.create(new).await?,
            Action::DeleteAddress { address, uid, version } => {
                let object = self.key_of(&address.name);
                match address.kind {
                    ClaimKind::Metal3 => {
                        let expected = expected_object(&self.caches.addresses, &object, uid, version)?;
                        self.writer.delete(&self.caches.addresses, &expected).await?;
                    }
                    ClaimKind::ClusterApi => {
                        let expected = expected_object(&self.caches.cluster_addresses, &object, uid, version)?;
                        self.writer.delete(&self.caches.cluster_addresses, &expected).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn patch_claim(&self, claim: &ObjectId, patch: MergePatch) -> Result<(), WriteError> {
        let object = self.key_of(&claim.name);
        match claim.kind {
            ClaimKind::Metal3 => drop(self.writer.patch(&self.caches.claims, &object, patch).await?),
            ClaimKind::ClusterApi => drop(self.writer.patch(&self.caches.cluster_claims, &object, patch).await?),
        }
        Ok(())
    }

    async fn patch_claim_status(&self, claim: &ObjectId, patch: MergePatch) -> Result<(), WriteError> {
        let object = self.key_of(&claim.name);
        match claim.kind {
            ClaimKind::Metal3 => drop(self.writer.patch_status(&self.caches.claims, &object, patch).await?),
            ClaimKind::ClusterApi => drop(
                self.writer
                    .patch_status(&self.caches.cluster_claims, &object, patch)
                    .await?,
            ),
        }
        Ok(())
    }

    async fn create(&self, new: &NewAddress) -> Result<(), ActError> {
        let created = match new {
            NewAddress::Metal3(object) => self
                .writer
                .create(&self.caches.addresses, &**object)
                .await
                .map(Written::object)
                .map(drop),
            NewAddress::ClusterApi(object) => self
                .writer
                .create(&self.caches.cluster_addresses, &**object)
                .await
                .map(Written::object)
                .map(drop),
        };
        let Err(error) = created else { return Ok(()) };
        match error.kind {
            WriteErrorKind::AlreadyExists => self.check_existing(new).await,
            WriteErrorKind::Invalid => {
                self.report_rejected(new, &error).await?;
                Err(error.into())
            }
            _ => Err(error.into()),
        }
    }

    /// Checks an existing object of that name: a success if it equals the object to create. The read updates the cache.
    async fn check_existing(&self, new: &NewAddress) -> Result<(), ActError> {
        let is_same = match new {
            NewAddress::Metal3(object) => {
                let existing = self.writer.read(&self.caches.addresses, &Key::of(&**object)).await?;
                existing.is_some_and(|existing| {
                    existing.spec.address == object.spec.address
                        && owners(&existing.metadata) == owners(&object.metadata)
                })
            }
            NewAddress::ClusterApi(object) => {
                let existing = self
                    .writer
                    .read(&self.caches.cluster_addresses, &Key::of(&**object))
                    .await?;
                existing.is_some_and(|existing| {
                    existing.spec.address == object.spec.address
                        && owners(&existing.metadata) == owners(&object.metadata)
                })
            }
        };
        if is_same { Ok(()) } else { Err(ActError::Stale) }
    }

    /// Records in the claim that the API server rejects its address object.
    async fn report_rejected(&self, new: &NewAddress, error: &WriteError) -> Result<(), WriteError> {
        let claim = match new {
            NewAddress::Metal3(object) => {
                ObjectId::new(ClaimKind::Metal3, object.spec.claim.name.as_deref().unwrap_or_default())
            }
            NewAddress::ClusterApi(object) => ObjectId::new(ClaimKind::ClusterApi, &object.spec.claim_ref.name),
        };
        let why = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let refusal = Refusal::failed(format!("{}: {why}", message::NOT_CREATED));
        let patch = {
            let index = self.index.lock();
            let claim = index.pool(self.pool).and_then(|pool| pool.claim(&claim));
            claim.and_then(|claim| {
                claim_status_patch(claim, &self.pool.namespace, ClaimOutcome::Refused(&refusal), self.now)
            })
        };
        match patch {
            Some(patch) => self.patch_claim_status(&claim, patch).await,
            None => Ok(()),
        }
    }

    fn record_event(&self, event: &Event) {
        let importance = if event.is_warning {
            Importance::Warning
        } else {
            Importance::Normal
        };
        let object = self.key_of(&event.claim.name);
        match event.claim.kind {
            ClaimKind::Metal3 => {
                if let Observed::Present(claim) = self.caches.claims.find(&object) {
                    self.events
                        .record(&*claim, importance, event.reason, event.message.clone());
                }
            }
            ClaimKind::ClusterApi => {
                if let Observed::Present(claim) = self.caches.cluster_claims.find(&object) {
                    self.events
                        .record(&*claim, importance, event.reason, event.message.clone());
                }
            }
        }
    }

    fn key_of(&self, name: &str) -> Key {
        key(&self.pool.namespace, name)
    }
}

/// The object at the version in the plan, if the cache still contains it: a delete carries its UID and version.
fn expected_object<K>(cache: &SharedCache<K>, object: &Key, uid: &str, version: &ResourceVersion) -> Result<K, ActError>
where
    K: kube_core::Resource + Clone,
{
    let Observed::Present(found) = cache.find(object) else {
        return Err(ActError::Stale);
    };
    let is_same = Identity::of(&*found).is_ok_and(|identity| identity.uid == uid && identity.version == *version);
    if is_same {
        Ok((*found).clone())
    } else {
        Err(ActError::Stale)
    }
}

fn owners(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Vec<&str> {
    meta.owner_references
        .iter()
        .flatten()
        .map(|owner| owner.uid.as_str())
        .collect()
}

/// Converts an error. A lost race is no fault: the next reconcile plans with the new state.
fn into_fault(error: ActError) -> Option<Fault> {
    match error {
        ActError::Stale => None,
        ActError::Write(error) => Some(error.into()),
        ActError::Read(fault) => Some(fault),
    }
}
