//! Removes what a bond left on a host whose consumer was removed or replaced by hand: the annotations that hold it off or pause it at
//! once, the contents of copies, what its HardwareData got, and the record when nothing of the claim runs any more. It removes the time
//! for which a released host was kept, too, when that has passed.
//!
//! Nothing is erased by it, and no other annotation of the host is changed.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::names::{
    CLAIM_KEPT_ANNOTATION, CLAIM_RECORD_ANNOTATION, NODE_REUSE_LABEL, PAUSED_ANNOTATION, PAUSED_BY_CLAIM,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::object_reader::Erased;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Category, Fault, Next, Reconciler};
use metal3_runtime::write::{MetadataOf, Writer};

use super::act::{is_refused, patch};
use super::bond::{consumer, has_ended};
use super::choice::{is_clean, kept_until, was_kept};
use super::copies::{self, Use};
use super::plan::apply::is_referenced;
use super::plan::metadata::without;
use super::plan::reboot::is_hold;
use super::{Parts, RECHECK};
use crate::names::claim_reason::NOT_SYNCED;
use crate::needs::Claims;
use crate::plan::object::is_moving;

/// What is left on a host.
#[derive(Debug, PartialEq)]
pub(super) enum Left {
    Nothing,
    /// The host is kept until then.
    Kept(DateTime<Utc>),
    /// The host without it.
    Marks(Box<BareMetalHost>),
    /// The same; what else is left goes before.
    All(Box<BareMetalHost>),
}

/// Whether an annotation holds a host off, or pauses it, for a claim.
fn is_mark(name: &str, value: &str) -> bool {
    is_hold(name) || (name == PAUSED_ANNOTATION && value == PAUSED_BY_CLAIM)
}

/// What a host has of a bond that ended.
pub(super) fn left(host: &BareMetalHost, now: DateTime<Utc>) -> Left {
    let is_bound = consumer(host).is_some() && !has_ended(host);
    let is_paused_by_others = host
        .annotation(PAUSED_ANNOTATION)
        .is_some_and(|by| by != PAUSED_BY_CLAIM);
    if is_bound || is_paused_by_others || is_moving(host) || host.metadata.deletion_timestamp.is_some() {
        return Left::Nothing;
    }
    let mut changed = host.clone();
    if let Some(annotations) = &mut changed.metadata.annotations {
        annotations.retain(|name, value| !is_mark(name, value));
        if was_kept(host, now) {
            annotations.remove(CLAIM_KEPT_ANNOTATION);
        }
    }
    if let Some(labels) = changed.metadata.labels.as_mut().filter(|_| was_kept(host, now)) {
        labels.remove(NODE_REUSE_LABEL);
    }
    // Without any consumer what runs may still be of the claim.
    let is_asked = host.spec.image.is_some() || host.spec.custom_deploy.is_some();
    if has_ended(host) && (host.spec.consumer_ref.is_some() || (is_clean(host) && !is_asked)) {
        if let Some(annotations) = &mut changed.metadata.annotations {
            annotations.remove(CLAIM_RECORD_ANNOTATION);
        }
        if host.spec.consumer_ref.is_none() {
            drop_references(&mut changed);
        }
        return Left::All(Box::new(changed));
    }
    if changed.metadata != host.metadata {
        return Left::Marks(Box::new(changed));
    }
    kept_until(host).map_or(Left::Nothing, Left::Kept)
}

/// Removes the references to copies, which no image uses any more.
fn drop_references(host: &mut BareMetalHost) {
    let key = Key::of(host);
    let names = Use::ALL.map(|which| which.name(&key));
    let spec = &mut host.spec;
    for data in [&mut spec.user_data, &mut spec.network_data, &mut spec.meta_data] {
        let name = data.as_ref().and_then(|data| data.name.as_ref());
        if name.is_some_and(|name| names.contains(name)) {
            *data = None;
        }
    }
}

/// The host, if a claim may have left something on it.
pub(super) fn of_host(change: &Change<'_, BareMetalHost>) -> Option<Key> {
    let marks = [CLAIM_RECORD_ANNOTATION, CLAIM_KEPT_ANNOTATION];
    let annotations = change.object()?.metadata.annotations.as_ref()?;
    let is_left = |(name, value): (&String, &String)| marks.contains(&name.as_str()) || is_mark(name, value);
    annotations.iter().any(is_left).then(|| change.key())?
}

/// The reconciler of hosts with something that a claim left.
pub(super) struct EndedReconciler {
    hosts: SharedCache<BareMetalHost>,
    hardware: SharedCache<HardwareData>,
    secrets: SharedCache<PartialObjectMeta<Secret>>,
    clock: Arc<dyn Clock>,
}

impl EndedReconciler {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            hosts: parts.of_hosts.hosts.clone(),
            hardware: parts.of_hosts.hardware.clone(),
            secrets: parts.of_hosts.secrets.clone(),
            clock: Arc::clone(&parts.clock),
        }
    }

    /// Empties the copies that a claim left, unless the host will use one. Returns whether none is filled.
    async fn empty(&self, key: &Key, host: &BareMetalHost, writer: &Writer<Claims>) -> Result<bool, Fault> {
        let target = MetadataOf(&self.secrets);
        for which in Use::ALL {
            let name = which.name(key);
            let copy = key.sibling(&name);
            let is_filled = match self.secrets.find(&copy) {
                Observed::Present(meta) => {
                    copies::is_of(&meta.metadata, host) && copies::of_what(&meta.metadata).is_some()
                }
                Observed::Absent => false,
                Observed::Unknown(_) => return Ok(false),
            };
            if is_filled && is_referenced(host, &name) {
                return Ok(false);
            }
            if !is_filled {
                continue;
            }
            let found = match writer.read::<Secret>(&target, &copy).await {
                Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => return Ok(false),
                found => found?.map(Erased::new),
            };
            let Some(found) = found.filter(|found| copies::is_of(&found.metadata, host)) else {
                continue;
            };
            // Read after the copy: the next claim of the host writes the copy, so that the version read before is refused then.
            let now = writer.read::<BareMetalHost>(&self.hosts, key).await?;
            if !now.is_some_and(|now| has_ended(&now)) {
                return Ok(false);
            }
            let emptied = Erased::new(copies::emptied(which, &found));
            let Some(patch) = patch(&copy, &*found, &*emptied)? else {
                continue;
            };
            match writer.patch::<Secret>(&target, &copy, patch).await {
                Err(error) if is_refused(&error) => return Ok(false),
                written => drop(written?.object().map(Erased::new)),
            }
        }
        Ok(true)
    }

    /// Removes what the HardwareData got. Returns whether nothing is left.
    async fn clear(&self, key: &Key, writer: &Writer<Claims>) -> Result<bool, Fault> {
        let Observed::Present(hardware) = self.hardware.find(key) else {
            return Ok(true);
        };
        let Some(patch) = patch(key, &*hardware, &without(&hardware))? else {
            return Ok(true);
        };
        match writer.patch::<HardwareData>(&self.hardware, key, patch).await {
            Err(error) if is_refused(&error) => Ok(false),
            written => written.map(|_| true).map_err(Fault::from),
        }
    }
}

impl Reconciler for EndedReconciler {
    type Key = Key;
    type Role = Claims;

    async fn reconcile(&self, key: &Key, writer: &Writer<Claims>) -> Result<Next, Fault> {
        let now = self.clock.now();
        let Observed::Present(cached) = self.hosts.find(key) else {
            return Ok(Next::Done);
        };
        match left(&cached, now) {
            Left::Nothing => return Ok(Next::Done),
            Left::Kept(until) => {
                let pause = until.signed_duration_since(now).to_std().unwrap_or_default();
                return Ok(Next::RequeueAfter(pause));
            }
            Left::Marks(_) | Left::All(_) => {}
        }
        let Some(host) = writer.read::<BareMetalHost>(&self.hosts, key).await? else {
            return Ok(Next::Done);
        };
        let changed = match left(&host, now) {
            Left::Nothing | Left::Kept(_) => return Ok(Next::Requeue),
            Left::Marks(changed) => changed,
            Left::All(changed) => {
                if !self.empty(key, &changed, writer).await? || !self.clear(key, writer).await? {
                    let why = "what a HostClaim left in copies of its Secrets or in the HardwareData of the host cannot be removed; the API \
                               server refuses it, or they cannot be read";
                    return Ok(Next::waiting_with_recheck(NOT_SYNCED, why, RECHECK));
                }
                changed
            }
        };
        let Some(patch) = patch(key, &host, &*changed)? else {
            return Ok(Next::Done);
        };
        match writer.patch::<BareMetalHost>(&self.hosts, key, patch).await {
            Err(error) if is_refused(&error) => {
                let why = "the API server refuses to remove what a HostClaim left on the host";
                return Ok(Next::waiting_with_recheck(NOT_SYNCED, why, RECHECK));
            }
            written => drop(written?),
        }
        tracing::info!(host = %key, "removed what a HostClaim left on the host");
        Ok(Next::Requeue)
    }
}
