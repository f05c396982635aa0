//! The controller of Metal3DataTemplates: assigns indexes to claims, and releases them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate};
use metal3_api::kind::Kind as _;
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::plan::{Action, Chain, Facts, Plan, Reads, plan};
use crate::cluster::reconciler::is_served;
use crate::data::reason;
use crate::data::reconciler::caches::Caches;
use crate::data::reconciler::related_keys::{SharedRelatedKeys, sibling};
use crate::data::reconciler::writes::{Created, create, release_object};
use crate::needs::Data;

/// Plans per reconcile: one live read for the claims of orphans, and one list when a template is in deletion.
const ROUNDS: usize = 4;
/// Concurrent sequences of writes.
const CONCURRENCY: usize = 16;

/// Reconciles one template at a time.
pub struct Templates {
    pub(in crate::data) caches: Caches,
    pub(in crate::data) related: SharedRelatedKeys,
    pub(in crate::data) clock: Arc<dyn Clock>,
    pub(in crate::data) events: EventRecorder,
    pub(in crate::data) watch_filter: Option<String>,
}

/// The results of live reads in one reconcile.
#[derive(Default)]
struct LiveReads {
    claims: BTreeMap<String, Option<String>>,
    listed: bool,
}

impl Reconciler for Templates {
    type Key = Key;
    type Role = Data;

    async fn reconcile(&self, key: &Key, writer: &Writer<Data>) -> Result<Next, Fault> {
        let mut live_reads = LiveReads::default();
        for _ in 0..ROUNDS {
            let filter = self.watch_filter.as_deref();
            let (template, unreadable) = match self.caches.templates.find(key) {
                Observed::Present(template) => (Some(template), None),
                Observed::Absent => (None, None),
                // Claims are released without it. With a filter it may be another manager's.
                Observed::Unknown(UnknownReason::Unreadable(why)) if filter.is_none() => (None, Some(why)),
                Observed::Unknown(why) => return Ok(reason::unreadable(Metal3DataTemplate::KIND, key, &why)),
            };
            let template = template.as_deref();
            if template.is_some_and(|template| !is_served(&template.metadata, filter)) {
                return Ok(Next::Done);
            }
            let plan = self.plan(key, (template, unreadable.as_deref()), &live_reads);
            if plan.reads == Reads::default() {
                return self.act(key, template, plan, writer).await;
            }
            self.read(key, plan.reads, &mut live_reads, writer).await?;
        }
        Ok(Next::Requeue)
    }
}

impl Templates {
    /// The plan for a template, or for why it cannot be read.
    fn plan(
        &self,
        key: &Key,
        (template, unreadable): (Option<&Metal3DataTemplate>, Option<&str>),
        live_reads: &LiveReads,
    ) -> Plan {
        let claims: Vec<Key> = self.related.lock().claims_on.get(key).cloned().collect();
        let claims: Vec<Arc<Metal3DataClaim>> = self.caches.claims.read(|cache| {
            claims
                .iter()
                .filter_map(|claim| cache.get(claim).into_present().cloned())
                .collect()
        });
        let objects: Vec<Arc<Metal3Data>> = self.caches.data.read(|cache| {
            let near = cache.objects().filter(|(object, _)| object.namespace == key.namespace);
            near.map(|(_, object)| Arc::clone(object)).collect()
        });
        let paused: Vec<String> = claims
            .iter()
            .filter(|claim| self.is_paused(claim))
            .filter_map(|claim| claim.metadata.name.clone())
            .collect();
        plan(&Facts {
            key,
            template,
            unreadable,
            objects: &objects.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            claims: &claims.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            unreadable_object: self.unreadable_object(key, template),
            paused: &paused,
            read: &live_reads.claims,
            listed: live_reads.listed,
            now: Time::new(self.clock.now()),
        })
    }

    /// Whether a claim is skipped: its Cluster is paused or cannot be read, or does not exist while the claim is live.
    fn is_paused(&self, claim: &Metal3DataClaim) -> bool {
        let Some(name) = owner::cluster_of(&claim.metadata) else {
            return false;
        };
        match self.caches.clusters.find(&sibling(claim, name)) {
            Observed::Present(cluster) => pause::is_cluster_paused(Some(&cluster)),
            Observed::Absent => claim.metadata.deletion_timestamp.is_none(),
            Observed::Unknown(_) => true,
        }
    }

    /// Kind and name of an unreadable object that may use an index of the template, or be a claim on a template in
    /// deletion.
    fn unreadable_object(&self, key: &Key, template: Option<&Metal3DataTemplate>) -> Option<(&'static str, String)> {
        let is_deleting = template.is_some_and(|template| template.metadata.deletion_timestamp.is_some());
        let claim = || {
            let is_near = |claim: &&Key| claim.namespace == key.namespace;
            let found = self
                .caches
                .claims
                .read(|cache| cache.unreadable().find(is_near).cloned());
            found.map(|claim| (Metal3DataClaim::KIND, claim.name))
        };
        let holds = |object: &&Key| {
            let number = object
                .name
                .strip_prefix(key.name.as_str())
                .and_then(|rest| rest.strip_prefix('-'));
            object.namespace == key.namespace && number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let found = self.caches.data.read(|cache| cache.unreadable().find(holds).cloned());
        let data = found.map(|data| (Metal3Data::KIND, data.name));
        data.or_else(|| is_deleting.then(claim).flatten())
    }

    async fn read(
        &self,
        key: &Key,
        reads: Reads,
        live_reads: &mut LiveReads,
        writer: &Writer<Data>,
    ) -> Result<(), Fault> {
        for name in reads.claims {
            let found = writer.find(&self.caches.claims, &key.sibling(&name)).await?;
            live_reads
                .claims
                .insert(name, found.and_then(|claim| claim.metadata.uid));
        }
        if reads.list {
            writer.list(&self.caches.claims, &key.namespace).await?;
            writer.list(&self.caches.data, &key.namespace).await?;
            live_reads.listed = true;
        }
        Ok(())
    }

    async fn act(
        &self,
        key: &Key,
        template: Option<&Metal3DataTemplate>,
        plan: Plan,
        writer: &Writer<Data>,
    ) -> Result<Next, Fault> {
        let chains = plan.actions.into_iter().map(|chain| self.execute(key, chain, writer));
        let ended: Vec<Result<bool, Fault>> = futures::stream::iter(chains)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        let mut is_done = true;
        for chain in ended {
            is_done &= chain?;
        }
        if let (Some(status), Some(template), true) = (plan.status, template, is_done) {
            writer.patch_status(&self.caches.templates, key, status).await?;
            for event in plan.events {
                self.events
                    .record(template, event.importance, event.reason, event.message);
            }
        }
        Ok(plan.next)
    }

    /// Executes a sequence of writes and returns whether all succeeded. After a lost race the next reconcile plans
    /// again.
    async fn execute(&self, key: &Key, chain: Chain, writer: &Writer<Data>) -> Result<bool, Fault> {
        for action in chain {
            if !self.write(key, action, writer).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&self, key: &Key, action: Action, writer: &Writer<Data>) -> Result<bool, Fault> {
        let caches = &self.caches;
        match action {
            Action::PatchTemplate(patch) => drop(writer.patch(&caches.templates, key, patch).await?),
            Action::PatchClaim(claim, patch) => {
                writer.patch(&caches.claims, &key.sibling(&claim), patch).await?;
            }
            Action::PatchClaimStatus(claim, patch) => {
                writer.patch_status(&caches.claims, &key.sibling(&claim), patch).await?;
            }
            Action::Create(object) => match create(writer, &caches.data, &*object).await? {
                Created::Done => {}
                Created::Exists => return Ok(false),
                Created::Rejected(error) | Created::Forbidden(error) => return Err(error.into()),
            },
            Action::Release(release) => release_object(writer, &caches.data, release).await?,
        }
        Ok(true)
    }
}
