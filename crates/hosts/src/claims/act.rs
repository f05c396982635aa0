//! Performs one step. It decides nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube_core::Resource;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim};
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::events::Importance;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Category, Fault, Next};
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer};
use serde::Serialize;
use serde_json::Value;

use super::ClaimReconciler;
use super::bond::{Record, consumer};
use super::copies::{self, Copy, Source, Use};
use super::facts::Facts;
use super::plan::{Action, BIND, End, Report};
use crate::names::claim_reason::{ASSOCIATED, NOT_SYNCED};
use crate::needs::Claims;

/// One reconcile of one claim.
pub(super) struct Act<'a> {
    pub(super) reconciler: &'a ClaimReconciler,
    pub(super) writer: &'a Writer<Claims>,
}

fn bug(key: &Key, error: &dyn std::error::Error) -> Fault {
    Fault::bug(format!("{key}: {error}"))
}

fn document<K: Serialize>(key: &Key, object: &K) -> Result<Value, Fault> {
    serde_json::to_value(object).map_err(|error| bug(key, &error))
}

/// The difference in anything but the status, for the version of `from`.
pub(super) fn patch<K: Resource<DynamicType = ()> + Serialize>(
    key: &Key,
    from: &K,
    to: &K,
) -> Result<Option<MergePatch>, Fault> {
    let at = Identity::of(from).map_err(|error| bug(key, &error))?;
    let changes = Changes::between(&document(key, from)?, &document(key, to)?);
    Ok(changes.main.map(|patch| patch.with_precondition(&at.version)))
}

pub(super) const fn is_refused(error: &WriteError) -> bool {
    matches!(error.kind, WriteErrorKind::Invalid | WriteErrorKind::Forbidden)
}

impl Act<'_> {
    /// Returns how the reconcile ends, if it does.
    pub(super) async fn perform(&self, action: Action, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        match action {
            Action::Claim(claim) => self.claim(&claim, facts).await,
            Action::Status(report) => self.status(&report, facts).await,
            Action::Host(host, what) => self.host(&host, what, facts).await,
            Action::Hardware(hardware) => self.hardware(&hardware, facts).await,
            Action::Fill(which, host) => self.fill(which, &host, facts).await,
            Action::Empty(which, host) => self.empty(which, &host, facts).await,
        }
    }

    async fn claim(&self, to: &HostClaim, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let Some(patch) = patch(&facts.key, &*facts.claim, to)? else {
            return Err(Fault::bug("a change of a claim that changes nothing"));
        };
        let cache = &self.reconciler.observer.caches.claims;
        let written = match self.writer.patch::<HostClaim>(cache, &facts.key, patch).await {
            Err(error) if is_refused(&error) => return self.stuck(facts).await.map(Some),
            written => written?,
        };
        let Some(claim) = written.object() else {
            return Ok(Some(Next::Done));
        };
        facts.wrote_claim(claim);
        Ok(None)
    }

    async fn status(&self, report: &Report, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        match self.report(report, facts).await? {
            Some(claim) => facts.wrote_status(claim),
            None => return Ok(Some(Next::Done)),
        }
        Ok(None)
    }

    async fn host(&self, to: &BareMetalHost, what: &str, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let key = Key::of(to);
        let from = facts
            .hosts
            .get(&key)
            .ok_or_else(|| Fault::bug("a change of a host that was not read"))?;
        let Some(patch) = patch(&key, &**from, to)? else {
            return Err(Fault::bug("a change of a host that changes nothing"));
        };
        let version = from.metadata.resource_version.clone().unwrap_or_default();
        let is_new = what == BIND;
        let cache = &self.reconciler.observer.hosts;
        let written = match self.writer.patch::<BareMetalHost>(cache, &key, patch).await {
            Err(error) if is_refused(&error) && is_new => {
                tracing::warn!(claim = %facts.key, host = %key, "the API server refuses to bind the host to the claim");
                self.reconciler.observer.refusals.note(&facts.key, &key, facts.now);
                facts.refused.insert(key);
                return Ok(None);
            }
            Err(error) if is_refused(&error) => return self.refused(&key, facts).await.map(Some),
            written => written?,
        };
        let Some(host) = written.object() else {
            return Ok(Some(Next::Done));
        };
        tracing::info!(claim = %facts.key, host = %key, version, what, "changed a host for a claim");
        if is_new {
            let note = format!("the host {key} is bound to the claim");
            self.reconciler
                .events
                .record(&*facts.claim, Importance::Normal, ASSOCIATED, note);
        }
        facts.hosts.insert(key.clone(), Arc::new(host));
        facts.fresh.end_permission();
        facts.fresh.hosts.insert(key);
        Ok(None)
    }

    /// Its text may name anything, so that the status has none of it.
    async fn refused(&self, key: &Key, facts: &Facts) -> Result<Next, Fault> {
        tracing::warn!(claim = %facts.key, host = %key, "the API server refuses a change of the host for the claim");
        let Some(host) = facts.hosts.get(key) else {
            return Ok(Next::Requeue);
        };
        self.report(&Report::refused(facts, key, host), facts).await?;
        let why = "the API server refuses a change of the host";
        Ok(Next::waiting_with_recheck(NOT_SYNCED, why, super::RECHECK))
    }

    /// The same change was made too often in one reconcile: something changes the object back. `None`: the decision goes on without it.
    pub(super) async fn changed_back(&self, action: &Action, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        match action {
            Action::Host(host, _) => {
                let key = Key::of(&**host);
                tracing::warn!(claim = %facts.key, host = %key, "something changes the host back");
                self.report(&Report::changed_back(facts, &key, host), facts).await?;
                let why = "something in the cluster of the hosts changes the host back";
                Ok(Some(Next::waiting_with_recheck(NOT_SYNCED, why, super::RECHECK)))
            }
            Action::Hardware(_) => {
                facts.is_hardware_refused = true;
                Ok(None)
            }
            Action::Claim(_) | Action::Status(_) | Action::Fill(..) | Action::Empty(..) => {
                self.stuck(facts).await.map(Some)
            }
        }
    }

    /// The API server refuses a change of the claim's metadata.
    async fn stuck(&self, facts: &Facts) -> Result<Next, Fault> {
        self.report(&Report::stuck(facts), facts).await?;
        let why = "the API server refuses a change of the metadata of the claim";
        Ok(Next::waiting_with_recheck(NOT_SYNCED, why, super::RECHECK))
    }

    async fn hardware(&self, to: &HardwareData, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let key = Key::of(to);
        let from = facts
            .hardware
            .get(&key)
            .ok_or_else(|| Fault::bug("a change of HardwareData that was not read"))?;
        let Some(patch) = patch(&key, &**from, to)? else {
            return Err(Fault::bug("a change of HardwareData that changes nothing"));
        };
        let cache = &self.reconciler.observer.hardware;
        let written = match self.writer.patch::<HardwareData>(cache, &key, patch).await {
            Err(error) if is_refused(&error) => {
                facts.is_hardware_refused = true;
                return Ok(None);
            }
            written => written?,
        };
        let Some(hardware) = written.object() else {
            return Ok(Some(Next::Done));
        };
        facts.hardware.insert(key, Arc::new(hardware));
        facts.fresh.end_permission();
        Ok(None)
    }

    /// The Secret under the name of the copy, read now: `None` if the facts changed and the decision has to be made again.
    async fn former(&self, which: Use, host: &Key, facts: &mut Facts) -> Result<Option<Option<Erased<Secret>>>, Fault> {
        let target = MetadataOf(&self.reconciler.observer.secret_names);
        let key = host.sibling(&which.name(host));
        let found = match self.writer.read::<Secret>(&target, &key).await {
            Ok(found) => found.map(Erased::new),
            Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => {
                facts.set_copy(which, host, Copy::Refused);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let object = facts
            .hosts
            .get(host)
            .ok_or_else(|| Fault::bug("a copy without its host"))?;
        let is_foreign = found
            .as_ref()
            .is_some_and(|found| !copies::is_of(&found.metadata, object));
        if is_foreign {
            facts.set_copy(which, host, Copy::Foreign);
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// Whether the host still has the bond of this decision, read after the copy was: its next claim writes the copy, so that the version
    /// which was read before is refused then. A process that was stopped meanwhile would write one tenant's Secret for another one's host.
    async fn is_still_bound(&self, host: &Key, facts: &mut Facts) -> Result<bool, Fault> {
        let cache = &self.reconciler.observer.hosts;
        let Some(found) = self.writer.read::<BareMetalHost>(cache, host).await? else {
            return Ok(false);
        };
        let id = |host: &BareMetalHost| (consumer(host), Record::of(host).map(|record| record.id));
        let is_same = facts.hosts.get(host).is_some_and(|known| id(known) == id(&found));
        facts.hosts.insert(host.clone(), Arc::new(found));
        Ok(is_same)
    }

    async fn fill(&self, which: Use, host: &Key, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let Some(Source::Secret { name, .. }) = facts.pair(which, host).map(|pair| pair.source.clone()) else {
            return Err(Fault::bug("a copy of no Secret"));
        };
        let read = self.reconciler.secrets.get(&facts.key.sibling(&name)).await?;
        let source = match read {
            Observed::Present(source) if copies::is_source(&source.metadata) => source,
            // It became one since its metadata were looked at.
            Observed::Present(_) => {
                facts.set_source(which, host, Source::OtherUse);
                return Ok(None);
            }
            Observed::Absent => {
                facts.set_source(which, host, Source::Absent);
                return Ok(None);
            }
            Observed::Unknown(_) => {
                facts.set_source(which, host, Source::Unknown);
                return Ok(None);
            }
        };
        let Some(former) = self.former(which, host, facts).await? else {
            return Ok(None);
        };
        if !self.is_still_bound(host, facts).await? {
            return Ok(Some(Next::RequeueAfter(super::CATCH_UP)));
        }
        let object = facts
            .hosts
            .get(host)
            .ok_or_else(|| Fault::bug("a copy without its host"))?;
        let Some(copy) = copies::filled(which, object, &source, former.as_deref()).map(Erased::new) else {
            facts.set_source(which, host, Source::OtherType);
            return Ok(None);
        };
        let version = copies::version(&source.metadata).unwrap_or_default();
        facts.set_source(
            which,
            host,
            Source::Secret {
                name,
                version: version.clone(),
            },
        );
        let done = Copy::Own(Some(version));
        self.write_copy((which, host), (former.as_deref(), &copy), done, facts)
            .await
    }

    async fn empty(&self, which: Use, host: &Key, facts: &mut Facts) -> Result<Option<Next>, Fault> {
        let Some(former) = self.former(which, host, facts).await? else {
            return Ok(None);
        };
        let Some(former) = former else {
            facts.set_copy(which, host, Copy::Absent);
            return Ok(None);
        };
        if !self.is_still_bound(host, facts).await? {
            return Ok(Some(Next::RequeueAfter(super::CATCH_UP)));
        }
        let copy = Erased::new(copies::emptied(which, &former));
        self.write_copy((which, host), (Some(&*former), &copy), Copy::Own(None), facts)
            .await
    }

    async fn write_copy(
        &self,
        (which, host): (Use, &Key),
        (from, to): (Option<&Secret>, &Secret),
        done: Copy,
        facts: &mut Facts,
    ) -> Result<Option<Next>, Fault> {
        let target = MetadataOf(&self.reconciler.observer.secret_names);
        let key = host.sibling(&which.name(host));
        let patch = from.map(|from| patch(&key, from, to)).transpose()?;
        let written = match patch {
            None => self.writer.create::<Secret>(&target, to).await,
            Some(Some(patch)) => self.writer.patch::<Secret>(&target, &key, patch).await,
            Some(None) => {
                facts.set_copy(which, host, done);
                return Ok(None);
            }
        };
        match written {
            Err(error) if is_refused(&error) => facts.set_copy(which, host, Copy::Refused),
            written => {
                if written?.object().map(Erased::new).is_none() {
                    return Ok(Some(Next::Done));
                }
                facts.set_copy(which, host, done);
                facts.fresh.end_permission();
            }
        }
        Ok(None)
    }

    /// Ends the reconcile.
    pub(super) async fn end(&self, end: End, facts: &Facts) -> Result<Next, Fault> {
        if let Some(report) = &end.report {
            self.report(report, facts).await?;
        }
        Ok(end.next)
    }

    /// Writes the status, if it changes. Returns the claim then.
    async fn report(&self, report: &Report, facts: &Facts) -> Result<Option<HostClaim>, Fault> {
        let claim = &facts.claim;
        let status = report.status(claim, Time::new(facts.now));
        if status == claim.status {
            return Ok(None);
        }
        let at = Identity::of(&**claim).map_err(|error| bug(&facts.key, &error))?;
        let before = document(&facts.key, &claim.status)?;
        let changes = Changes::of_status(Some(before), Some(document(&facts.key, &status)?));
        let Some(patch) = changes.status else { return Ok(None) };
        let cache = &self.reconciler.observer.caches.claims;
        let patch = patch.with_precondition(&at.version);
        let written = self.writer.patch_status::<HostClaim>(cache, &facts.key, patch).await?;
        Ok(written.object())
    }
}
