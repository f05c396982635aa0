//! The controller of Metal3Data: claims on pools, Secrets, and their release.

use std::fmt;
use std::sync::Arc;

use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_capi::{owner, pause};
use metal3_runtime::cache::Key;
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::patch::{has_finalizer, remove_finalizer};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Fault, Next, Reconciler};
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer};

use super::caches::Caches;
use super::related_keys::{SharedRelatedKeys, sibling};
use super::writes::{Created, create, release_object};
use super::{known, reason};
use crate::cluster::reconciler::is_served;
use crate::data::claims::{Naming, NewClaim};
use crate::data::index::referred;
use crate::data::release::{self, Release};
use crate::data::secrets::NewSecret;
use crate::data::step::Step;
use crate::data::template_plan::truncated;
use crate::data::{DataError, step};
use crate::diff::changes;
use crate::diff::version;
use crate::needs::Data;

mod inputs;

use inputs::Inputs;

/// Reconciles one Metal3Data at a time.
pub struct Objects {
    pub(super) caches: Caches,
    pub(super) related: SharedRelatedKeys,
    pub(super) events: EventRecorder,
    pub(super) naming: Naming,
    pub(super) watch_filter: Option<String>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Reconciler for Objects {
    type Key = Key;
    type Role = Data;

    async fn reconcile(&self, key: &Key, writer: &Writer<Data>) -> Result<Next, Fault> {
        let data = match known(self.caches.data.find(key), key) {
            Ok(Some(data)) => data,
            Ok(None) => return self.orphans(key, None, writer).await,
            Err(waiting) => return Ok(waiting),
        };
        if pause::is_reconcile_skipped(&data.metadata) || !is_served(&data.metadata, self.watch_filter.as_deref()) {
            return Ok(Next::Done);
        }
        if let Some(next) = self.cluster_pause(&data) {
            return Ok(next);
        }
        if data.metadata.deletion_timestamp.is_some() {
            self.release(key, &data, writer).await
        } else {
            self.render(key, &data, writer).await
        }
    }
}

impl Objects {
    /// The result when the Cluster is paused or its state is unknown.
    fn cluster_pause(&self, data: &Metal3Data) -> Option<Next> {
        let key = sibling(data, owner::cluster_of(&data.metadata)?);
        match known(self.caches.clusters.find(&key), &key) {
            Ok(Some(cluster)) => pause::is_cluster_paused(Some(&cluster)).then_some(Next::Done),
            // A deletion does not need the Cluster.
            Ok(None) if data.metadata.deletion_timestamp.is_some() => None,
            Ok(None) => Some(Next::waiting(
                reason::CLUSTER_NOT_FOUND,
                format!("waiting for Cluster {key}"),
            )),
            Err(waiting) => Some(waiting),
        }
    }

    async fn render(&self, key: &Key, data: &Metal3Data, writer: &Writer<Data>) -> Result<Next, Fault> {
        let inputs = match Inputs::of(self, key, data) {
            Ok(inputs) => inputs,
            Err(next) => return Ok(next),
        };
        let Some(at) = version(&data.metadata) else {
            return Err(Fault::bug(format!("{key} has no version")));
        };
        if let Some(patch) = changes(data, &inputs.with_finalizer_and_secrets()).main {
            writer
                .patch(&self.caches.data, key, patch.with_precondition(&at))
                .await?;
            return Ok(Next::Requeue);
        }
        let step = match step::next(&inputs.facts()) {
            Ok(step) => step,
            Err(error) => return self.fail(key, data, &error, writer).await,
        };
        match step {
            Step::Idle => Ok(Next::Done),
            Step::Wait(waiting) => {
                let error = waiting.needs_user_action().then(|| waiting.to_string());
                self.update_status(key, data, false, error, writer).await?;
                Ok(Next::waiting(reason::WAITING, waiting.to_string()))
            }
            Step::Claim(new) => self.claim(key, data, new, writer).await,
            Step::ReleaseClaim { pool, claim } => {
                let claim = sibling(data, claim.as_str());
                self.release_claim(pool.is_metal3(), &claim, writer).await
            }
            Step::Write(new, error) => {
                let cluster = inputs.cluster_name();
                for secret in &new {
                    if let Some(error) = self.write(data, cluster, secret, writer).await? {
                        self.update_status(key, data, false, Some(error), writer).await?;
                        return Ok(Next::Done);
                    }
                }
                match error {
                    Some(error) => self.fail(key, data, &error, writer).await,
                    None => Ok(Next::Requeue),
                }
            }
            Step::Ready { .. } => {
                self.related.lock().await_claims(key, std::collections::BTreeSet::new());
                if self.update_status(key, data, true, None, writer).await? {
                    let note = "metadata and network data are rendered".to_owned();
                    self.events.record(data, Importance::Normal, reason::RENDERED, note);
                }
                Ok(Next::Done)
            }
        }
    }

    async fn fail(
        &self,
        key: &Key,
        data: &Metal3Data,
        error: &DataError,
        writer: &Writer<Data>,
    ) -> Result<Next, Fault> {
        let message = error.to_string();
        if self
            .update_status(key, data, false, Some(message.clone()), writer)
            .await?
        {
            self.events
                .record(data, Importance::Warning, reason::RENDERING_FAILED, message.clone());
        }
        Ok(Next::waiting(reason::RENDERING_FAILED, message))
    }

    /// Writes the status, if it changes, and returns whether it did.
    async fn update_status(
        &self,
        key: &Key,
        data: &Metal3Data,
        ready: bool,
        error: Option<String>,
        writer: &Writer<Data>,
    ) -> Result<bool, Fault> {
        let mut after = data.clone();
        if ready != data.status.ready.unwrap_or_default() {
            after.status.ready = Some(ready);
        }
        after.status.error_message = error.map(|error| truncated(&error));
        let patch = changes(data, &after).status.zip(version(&data.metadata));
        let Some((patch, at)) = patch else { return Ok(false) };
        writer
            .patch_status(&self.caches.data, key, patch.with_precondition(&at))
            .await?;
        Ok(true)
    }

    async fn claim(
        &self,
        key: &Key,
        data: &Metal3Data,
        new: Vec<NewClaim>,
        writer: &Writer<Data>,
    ) -> Result<Next, Fault> {
        for claim in new {
            let created = match claim {
                NewClaim::Metal3(claim) => create(writer, &self.caches.metal3_claims, &*claim).await?,
                NewClaim::General(claim) => create(writer, &self.caches.general_claims, &*claim).await?,
            };
            match created {
                Created::Done | Created::Exists => {}
                Created::Rejected(error) => {
                    self.update_status(key, data, false, Some(rejection(&error)), writer)
                        .await?;
                    return Ok(Next::Done);
                }
                Created::Forbidden(error) => return Err(error.into()),
            }
        }
        Ok(Next::Requeue)
    }

    /// Creates a Secret. Returns the API server's message if it rejects the Secret.
    async fn write(
        &self,
        data: &Metal3Data,
        cluster: &str,
        secret: &NewSecret,
        writer: &Writer<Data>,
    ) -> Result<Option<String>, Fault> {
        let object = secret.to_object(data, cluster);
        match writer.create(&MetadataOf(&self.caches.secrets), &object).await {
            Ok(_) => Ok(None),
            Err(error) if error.kind == WriteErrorKind::Invalid => Ok(Some(rejection(&error))),
            Err(error) => Err(error.into()),
        }
    }

    async fn release_claim(&self, is_metal3: bool, claim: &Key, writer: &Writer<Data>) -> Result<Next, Fault> {
        if is_metal3 {
            if let Observed::Present(object) = self.caches.metal3_claims.find(claim)
                && let Some(release) = Release::of(&*object, DATA_FINALIZER, false)
            {
                release_object(writer, &self.caches.metal3_claims, release).await?;
                return Ok(Next::Requeue);
            }
        } else if let Observed::Present(object) = self.caches.general_claims.find(claim)
            && let Some(release) = Release::of(&*object, DATA_FINALIZER, false)
        {
            release_object(writer, &self.caches.general_claims, release).await?;
            return Ok(Next::Requeue);
        }
        // The claim is held by another finalizer.
        Ok(Next::waiting(
            reason::WAITING,
            format!("waiting for the claim {claim} to be deleted"),
        ))
    }

    /// Releases the claims of a Metal3Data in deletion, once the claim it was created for is deleted.
    async fn release(&self, key: &Key, data: &Metal3Data, writer: &Writer<Data>) -> Result<Next, Fault> {
        let uid = data.metadata.uid.as_deref();
        if !has_finalizer(data, DATA_FINALIZER) {
            return self.orphans(key, uid, writer).await;
        }
        let name = referred(data.spec.claim.as_ref());
        if !name.is_empty() && self.is_held(data, &sibling(data, name), writer).await? {
            return Ok(Next::waiting(
                reason::CLAIM_EXISTS,
                format!("waiting for Metal3DataClaim {name} to be deleted"),
            ));
        }
        let (metal3, general) = match self.owned(key) {
            Ok(owned) => owned,
            Err(waiting) => return Ok(waiting),
        };
        let metal3: Vec<Release> = metal3
            .iter()
            .filter_map(|claim| release::of_claim(&**claim, uid))
            .collect();
        let general: Vec<Release> = general
            .iter()
            .filter_map(|claim| release::of_claim(&**claim, uid))
            .collect();
        if self.release_all((metal3, general), writer).await? {
            return Ok(Next::Requeue);
        }
        let present = data.metadata.finalizers.as_deref().unwrap_or_default();
        let at = version(&data.metadata);
        if let Some(patch) = at.and_then(|at| remove_finalizer(present, DATA_FINALIZER, &at)) {
            writer.patch(&self.caches.data, key, patch).await?;
        }
        Ok(Next::Done)
    }

    /// Whether the claim that a Metal3Data was created for exists. Its absence requires a live read.
    async fn is_held(&self, data: &Metal3Data, claim: &Key, writer: &Writer<Data>) -> Result<bool, Fault> {
        match self.caches.claims.find(claim) {
            Observed::Present(found) if release::is_held_by(data, Some(&found.metadata)) => return Ok(true),
            Observed::Unknown(_) => return Ok(true),
            Observed::Present(_) | Observed::Absent => {}
        }
        let found = writer.read(&self.caches.claims, claim).await?;
        Ok(release::is_held_by(data, found.as_ref().map(|claim| &claim.metadata)))
    }

    /// Removes the finalizer from claims of an earlier Metal3Data of this name. `shown`: the UID of the cached one.
    async fn orphans(&self, key: &Key, shown: Option<&str>, writer: &Writer<Data>) -> Result<Next, Fault> {
        let (metal3, general) = match self.owned(key) {
            Ok(owned) => owned,
            Err(waiting) => return Ok(waiting),
        };
        let left = |uid: Option<&str>| {
            let metal3: Vec<Release> = metal3
                .iter()
                .filter_map(|claim| release::of_orphan(&**claim, uid))
                .collect();
            let general: Vec<Release> = general
                .iter()
                .filter_map(|claim| release::of_orphan(&**claim, uid))
                .collect();
            (metal3, general)
        };
        let (some, others) = left(shown);
        if some.is_empty() && others.is_empty() {
            return Ok(Next::Done);
        }
        // The cache may be outdated.
        let there = writer
            .read(&self.caches.data, key)
            .await?
            .and_then(|data| data.metadata.uid);
        let is_written = self.release_all(left(there.as_deref()), writer).await?;
        Ok(if is_written { Next::Requeue } else { Next::Done })
    }

    async fn release_all(
        &self,
        (metal3, general): (Vec<Release>, Vec<Release>),
        writer: &Writer<Data>,
    ) -> Result<bool, Fault> {
        let any = !metal3.is_empty() || !general.is_empty();
        for release in metal3 {
            release_object(writer, &self.caches.metal3_claims, release).await?;
        }
        for release in general {
            release_object(writer, &self.caches.general_claims, release).await?;
        }
        Ok(any)
    }

    /// The claims on pools that a Metal3Data of this name owns.
    fn owned(&self, key: &Key) -> Result<inputs::Owned, Next> {
        let (metal3, general): (Vec<Key>, Vec<Key>) = {
            let related = self.related.lock();
            (
                related.metal3_of.get(key).cloned().collect(),
                related.general_of.get(key).cloned().collect(),
            )
        };
        let metal3 = metal3
            .iter()
            .map(|claim| known(self.caches.metal3_claims.find(claim), claim));
        let general = general
            .iter()
            .map(|claim| known(self.caches.general_claims.find(claim), claim));
        Ok((
            metal3
                .filter_map(Result::transpose)
                .collect::<Result<Vec<Arc<_>>, Next>>()?,
            general
                .filter_map(Result::transpose)
                .collect::<Result<Vec<Arc<_>>, Next>>()?,
        ))
    }
}

/// The API server's message for a rejected object, without the object's content.
fn rejection(error: &WriteError) -> String {
    format!("{error}: the API server rejects it as invalid; correct the template, or the labels of the machine")
}
