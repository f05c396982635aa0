//! Performs the writes of a plan. What to do when one fails is decided by the plan's shape: its chain ends, the others
//! go on; without the write to the pool nothing goes on.

use futures::StreamExt as _;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_runtime::cache::{Found, Identity, Key, SharedCache};
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{WriteError, WriteErrorKind, Writer, Written};

use super::caches::{Caches, SharedAccounts};
use crate::accounts::key;
use crate::action::{Action, Chain, Event, NewAddress, Plan};
use crate::choice::Refusal;
use crate::claim::{ClaimKind, Named};
use crate::documents::{Answer, answered};
use crate::names::message;
use crate::needs::Ipam;

/// Chains under way at once. No more creates than these can be late when the process dies.
pub(super) const AT_ONCE: usize = 16;

/// Performs plans of one pass.
pub(super) struct Act<'a> {
    pub(super) pool: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) accounts: &'a SharedAccounts,
    pub(super) writer: &'a Writer<Ipam>,
    pub(super) events: &'a EventRecorder,
    pub(super) now: metal3_api::meta::Time,
}

/// Why a chain ended early.
enum Broken {
    /// The server refused, or nobody knows.
    Write(WriteError),
    /// Something that was to be deleted or created is not what the plan saw.
    Stale,
    /// A read failed.
    Read(Fault),
}

impl From<WriteError> for Broken {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Read(fault)
    }
}

impl Act<'_> {
    /// Performs a plan.
    ///
    /// # Errors
    /// The first fault that is more than a lost race. All chains were tried.
    pub(super) async fn perform(&self, plan: Plan) -> Result<(), Fault> {
        if let Some(first) = &plan.first {
            match self.write(first).await {
                Ok(()) => {}
                Err(broken) => return fault(broken).map_or(Ok(()), Err),
            }
        }
        let chains = futures::stream::iter(plan.chains.into_iter().map(|chain| self.follow(chain)));
        let ended: Vec<Option<Fault>> = chains.buffer_unordered(AT_ONCE).collect().await;
        ended.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    async fn follow(&self, chain: Chain) -> Option<Fault> {
        for action in &chain.actions {
            if let Err(broken) = self.write(action).await {
                return fault(broken);
            }
        }
        if let Some(event) = &chain.event {
            self.tell(event);
        }
        None
    }

    async fn write(&self, action: &Action) -> Result<(), Broken> {
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
                let (object, patch) = (self.near(&address.name), patch.clone());
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
                let object = self.near(&address.name);
                match address.kind {
                    ClaimKind::Metal3 => {
                        let held = meant(&self.caches.addresses, &object, uid, version)?;
                        self.writer.delete(&self.caches.addresses, &held).await?;
                    }
                    ClaimKind::ClusterApi => {
                        let held = meant(&self.caches.cluster_addresses, &object, uid, version)?;
                        self.writer.delete(&self.caches.cluster_addresses, &held).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn patch_claim(&self, claim: &Named, patch: MergePatch) -> Result<(), WriteError> {
        let object = self.near(&claim.name);
        match claim.kind {
            ClaimKind::Metal3 => drop(self.writer.patch(&self.caches.claims, &object, patch).await?),
            ClaimKind::ClusterApi => drop(self.writer.patch(&self.caches.cluster_claims, &object, patch).await?),
        }
        Ok(())
    }

    async fn patch_claim_status(&self, claim: &Named, patch: MergePatch) -> Result<(), WriteError> {
        let object = self.near(&claim.name);
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

    async fn create(&self, new: &NewAddress) -> Result<(), Broken> {
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
            WriteErrorKind::AlreadyExists => self.is_ours(new).await,
            WriteErrorKind::Invalid => {
                self.refuse(new, &error).await?;
                Err(error.into())
            }
            _ => Err(error.into()),
        }
    }

    /// An object of that name exists: a success if it is the one that was to be created. Either way the cache learns of it.
    async fn is_ours(&self, new: &NewAddress) -> Result<(), Broken> {
        let same = match new {
            NewAddress::Metal3(object) => {
                let there = self.writer.read(&self.caches.addresses, &Key::of(&**object)).await?;
                there.is_some_and(|there| {
                    there.spec.address == object.spec.address && owners(&there.metadata) == owners(&object.metadata)
                })
            }
            NewAddress::ClusterApi(object) => {
                let there = self
                    .writer
                    .read(&self.caches.cluster_addresses, &Key::of(&**object))
                    .await?;
                there.is_some_and(|there| {
                    there.spec.address == object.spec.address && owners(&there.metadata) == owners(&object.metadata)
                })
            }
        };
        if same { Ok(()) } else { Err(Broken::Stale) }
    }

    /// Tells the claim that the server does not take its address object.
    async fn refuse(&self, new: &NewAddress, error: &WriteError) -> Result<(), WriteError> {
        let claim = match new {
            NewAddress::Metal3(object) => {
                Named::new(ClaimKind::Metal3, object.spec.claim.name.as_deref().unwrap_or_default())
            }
            NewAddress::ClusterApi(object) => Named::new(ClaimKind::ClusterApi, &object.spec.claim_ref.name),
        };
        let why = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let refusal = Refusal::failed(format!("{}: {why}", message::NOT_CREATED));
        let patch = {
            let accounts = self.accounts.lock();
            let claim = accounts.pool(self.pool).and_then(|pool| pool.claim(&claim));
            claim.and_then(|claim| answered(claim, &self.pool.namespace, Answer::Refused(&refusal), self.now))
        };
        match patch {
            Some(patch) => self.patch_claim_status(&claim, patch).await,
            None => Ok(()),
        }
    }

    fn tell(&self, event: &Event) {
        let importance = if event.is_warning {
            Importance::Warning
        } else {
            Importance::Normal
        };
        let object = self.near(&event.claim.name);
        match event.claim.kind {
            ClaimKind::Metal3 => {
                if let Found::Live(claim) = self.caches.claims.find(&object) {
                    self.events
                        .record(&*claim, importance, event.reason, event.message.clone());
                }
            }
            ClaimKind::ClusterApi => {
                if let Found::Live(claim) = self.caches.cluster_claims.find(&object) {
                    self.events
                        .record(&*claim, importance, event.reason, event.message.clone());
                }
            }
        }
    }

    fn near(&self, name: &str) -> Key {
        key(&self.pool.namespace, name)
    }
}

/// The object that the plan saw, if it still is what the cache shows: a delete carries its UID and version.
fn meant<K>(cache: &SharedCache<K>, object: &Key, uid: &str, version: &ResourceVersion) -> Result<K, Broken>
where
    K: kube_core::Resource + Clone,
{
    let Found::Live(found) = cache.find(object) else {
        return Err(Broken::Stale);
    };
    let same = Identity::of(&*found).is_ok_and(|seen| seen.uid == uid && seen.version == *version);
    if same { Ok((*found).clone()) } else { Err(Broken::Stale) }
}

fn owners(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Vec<&str> {
    meta.owner_references
        .iter()
        .flatten()
        .map(|owner| owner.uid.as_str())
        .collect()
}

/// What the pass makes of it. A lost race is no fault: another pass plans again with what was learnt.
fn fault(broken: Broken) -> Option<Fault> {
    match broken {
        Broken::Stale => None,
        Broken::Write(error) => Some(error.into()),
        Broken::Read(fault) => Some(fault),
    }
}
