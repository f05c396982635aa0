//! The controller of Metal3DataTemplates: assigns indexes to claims, and releases them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt as _;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate};
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::caches::Caches;
use super::related_keys::{SharedRelatedKeys, sibling};
use super::writes::{Created, create, release_object};
use super::{known, reason};
use crate::cluster::reconciler::is_served;
use crate::data::template_plan::{Action, Facts, Plan, plan};
use crate::needs::Data;

/// Plans per reconcile: one live read for the claims of orphans, and one list when a template is in deletion.
const ROUNDS: usize = 4;
/// Concurrent sequences of writes.
const CONCURRENCY: usize = 16;

/// Reconciles one template at a time.
pub struct Templates {
    pub(super) caches: Caches,
    pub(super) related: SharedRelatedKeys,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: EventRecorder,
    pub(super) watch_filter: Option<String>,
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
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
            let template = match known(self.caches.templates.find(key), key) {
                Ok(template) => template,
                Err(waiting) => return Ok(waiting),
            };
            let filter = self.watch_filter.as_deref();
            if template
                .as_ref()
                .is_some_and(|template| !is_served(&template.metadata, filter))
            {
                return Ok(Next::Done);
            }
            let plan = self.plan(key, template.as_deref(), &live_reads);
            if plan.reads.is_empty() && !plan.list {
                return self.perform(key, template.as_deref(), plan, writer).await;
            }
            for name in &plan.reads {
                let claim = Key {
                    namespace: key.namespace.clone(),
                    name: name.clone(),
                };
                let found = writer.read(&self.caches.claims, &claim).await?;
                live_reads
                    .claims
                    .insert(name.clone(), found.and_then(|claim| claim.metadata.uid));
            }
            if plan.list {
                writer.list(&self.caches.claims, &key.namespace).await?;
                writer.list(&self.caches.data, &key.namespace).await?;
                live_reads.listed = true;
            }
        }
        Ok(Next::Requeue)
    }
}

impl Templates {
    fn plan(&self, key: &Key, template: Option<&Metal3DataTemplate>, live_reads: &LiveReads) -> Plan {
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
            objects: &objects.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            claims: &claims.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            has_unreadable: self.has_unreadable(key, template),
            paused: &paused,
            read: &live_reads.claims,
            listed: live_reads.listed,
            now: Time::new(self.clock.now()),
        })
    }

    /// Whether a claim is skipped because its Cluster is paused or cannot be read.
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

    /// Whether an unreadable object may use an index of the template, or be a claim on a template in deletion.
    fn has_unreadable(&self, key: &Key, template: Option<&Metal3DataTemplate>) -> bool {
        let is_deleting = template.is_some_and(|template| template.metadata.deletion_timestamp.is_some());
        let claims = || {
            self.caches
                .claims
                .read(|cache| cache.unreadable().any(|claim| claim.namespace == key.namespace))
        };
        let holds = |object: &Key| {
            let number = object
                .name
                .strip_prefix(key.name.as_str())
                .and_then(|rest| rest.strip_prefix('-'));
            object.namespace == key.namespace && number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        self.caches.data.read(|cache| cache.unreadable().any(holds)) || (is_deleting && claims())
    }

    async fn perform(
        &self,
        key: &Key,
        template: Option<&Metal3DataTemplate>,
        plan: Plan,
        writer: &Writer<Data>,
    ) -> Result<Next, Fault> {
        if plan.is_empty() {
            return Ok(Next::Done);
        }
        let chains = plan.chains.into_iter().map(|chain| self.execute(key, chain, writer));
        let ended: Vec<Result<bool, Fault>> = futures::stream::iter(chains)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        let mut is_done = true;
        for chain in ended {
            is_done &= chain?;
        }
        if let Some(last) = plan.last.filter(|_| is_done) {
            self.write(key, &last, writer).await?;
            if let Some(template) = template.filter(|_| plan.unpublished > 0) {
                let note = format!(
                    "{} more indexes are in use than the status can contain",
                    plan.unpublished
                );
                self.events
                    .record(template, Importance::Normal, reason::INDEXES_TRUNCATED, note);
            }
        }
        Ok(Next::Requeue)
    }

    /// Executes a sequence of writes and returns whether all succeeded. After a lost race the next reconcile plans
    /// again.
    async fn execute(&self, key: &Key, chain: Vec<Action>, writer: &Writer<Data>) -> Result<bool, Fault> {
        for action in chain {
            if !self.write(key, &action, writer).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&self, key: &Key, action: &Action, writer: &Writer<Data>) -> Result<bool, Fault> {
        let sibling = |name: &String| Key {
            namespace: key.namespace.clone(),
            name: name.clone(),
        };
        match action {
            Action::PatchTemplate(patch) => drop(writer.patch(&self.caches.templates, key, patch.clone()).await?),
            Action::PatchTemplateStatus(patch) => {
                drop(writer.patch_status(&self.caches.templates, key, patch.clone()).await?);
            }
            Action::PatchClaim(claim, patch) => {
                drop(
                    writer
                        .patch(&self.caches.claims, &sibling(claim), patch.clone())
                        .await?,
                );
            }
            Action::PatchClaimStatus(claim, patch) => {
                drop(
                    writer
                        .patch_status(&self.caches.claims, &sibling(claim), patch.clone())
                        .await?,
                );
            }
            Action::Create(object) => match create(writer, &self.caches.data, object).await? {
                Created::Done => {}
                Created::Exists => return Ok(false),
                Created::Rejected(error) | Created::Forbidden(error) => return Err(error.into()),
            },
            Action::Release(release) => release_object(writer, &self.caches.data, release.clone()).await?,
        }
        Ok(true)
    }
}
