//! One pass over a template: its claims get their numbers, and give them back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt as _;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate};
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Found, Key};
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::work::{Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::caches::Caches;
use super::needs::Data;
use super::ties::{SharedTies, near};
use super::writes::{Created, create, let_go};
use super::{known, reason};
use crate::controller::clusters::is_served;
use crate::data::allot::{Action, Facts, Plan, plan};

/// Rounds of live reads in one pass: one for the claims of orphans, one for what is left when a template goes.
const ROUNDS: usize = 4;
/// Claims that are worked on at once.
const AT_ONCE: usize = 16;

/// Plans and acts for one template at a time.
pub struct Templates {
    pub(super) caches: Caches,
    pub(super) ties: SharedTies,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: EventRecorder,
    pub(super) watch_filter: Option<String>,
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
}

/// What live reads said in one pass.
#[derive(Default)]
struct Evidence {
    claims: BTreeMap<String, Option<String>>,
    listed: bool,
}

impl Reconciler for Templates {
    type Key = Key;
    type Role = Data;

    async fn reconcile(&self, key: &Key, writer: &Writer<Data>) -> Result<Next, Fault> {
        let mut evidence = Evidence::default();
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
            let plan = self.plan(key, template.as_deref(), &evidence);
            if plan.reads.is_empty() && !plan.list {
                return self.perform(key, template.as_deref(), plan, writer).await;
            }
            for name in &plan.reads {
                let claim = Key {
                    namespace: key.namespace.clone(),
                    name: name.clone(),
                };
                let found = writer.read(&self.caches.claims, &claim).await?;
                evidence
                    .claims
                    .insert(name.clone(), found.and_then(|claim| claim.metadata.uid));
            }
            if plan.list {
                writer.list(&self.caches.claims, &key.namespace).await?;
                writer.list(&self.caches.data, &key.namespace).await?;
                evidence.listed = true;
            }
        }
        Ok(Next::Requeue)
    }
}

impl Templates {
    fn plan(&self, key: &Key, template: Option<&Metal3DataTemplate>, evidence: &Evidence) -> Plan {
        let claims: Vec<Key> = self.ties.lock().claims_on.get(key).cloned().collect();
        let claims: Vec<Arc<Metal3DataClaim>> = self.caches.claims.read(|cache| {
            claims
                .iter()
                .filter_map(|claim| live(cache.get(claim).into()))
                .collect()
        });
        let objects: Vec<Arc<Metal3Data>> = self.caches.data.read(|cache| {
            let near = cache.objects().filter(|(object, _)| object.namespace == key.namespace);
            near.map(|(_, object)| Arc::clone(object)).collect()
        });
        let resting: Vec<String> = claims
            .iter()
            .filter(|claim| self.rests(claim))
            .filter_map(|claim| claim.metadata.name.clone())
            .collect();
        plan(&Facts {
            key,
            template,
            objects: &objects.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            claims: &claims.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            is_obscured: self.is_obscured(key, template),
            resting: &resting,
            read: &evidence.claims,
            listed: evidence.listed,
            now: Time::new(self.clock.now()),
        })
    }

    /// Whether a claim rests with its Cluster, or because nobody can say whether that rests.
    fn rests(&self, claim: &Metal3DataClaim) -> bool {
        let Some(name) = owner::cluster_of(&claim.metadata) else {
            return false;
        };
        match self.caches.clusters.find(&near(claim, name)) {
            Found::Live(cluster) => pause::is_cluster_paused(Some(&cluster)),
            Found::Absent => claim.metadata.deletion_timestamp.is_none(),
            Found::Unreadable { .. } | Found::Unknown => true,
        }
    }

    /// Whether something that cannot be read may hold a number of the template, or a claim on one that goes.
    fn is_obscured(&self, key: &Key, template: Option<&Metal3DataTemplate>) -> bool {
        let goes = template.is_some_and(|template| template.metadata.deletion_timestamp.is_some());
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
        self.caches.data.read(|cache| cache.unreadable().any(holds)) || (goes && claims())
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
        let chains = plan.chains.into_iter().map(|chain| self.follow(key, chain, writer));
        let ended: Vec<Result<bool, Fault>> = futures::stream::iter(chains).buffer_unordered(AT_ONCE).collect().await;
        let mut is_done = true;
        for chain in ended {
            is_done &= chain?;
        }
        if let Some(last) = plan.last.filter(|_| is_done) {
            self.write(key, &last, writer).await?;
            if let Some(template) = template.filter(|_| plan.unpublished > 0) {
                let note = format!(
                    "{} more numbers are in use than the status has room for",
                    plan.unpublished
                );
                self.events
                    .record(template, Importance::Normal, reason::INDEXES_TRUNCATED, note);
            }
        }
        Ok(Next::Requeue)
    }

    /// Whether all writes of a chain were made. A lost race is no fault: another pass plans again with what was learnt.
    async fn follow(&self, key: &Key, chain: Vec<Action>, writer: &Writer<Data>) -> Result<bool, Fault> {
        for action in chain {
            if !self.write(key, &action, writer).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&self, key: &Key, action: &Action, writer: &Writer<Data>) -> Result<bool, Fault> {
        let beside = |name: &String| Key {
            namespace: key.namespace.clone(),
            name: name.clone(),
        };
        match action {
            Action::PatchTemplate(patch) => drop(writer.patch(&self.caches.templates, key, patch.clone()).await?),
            Action::PatchTemplateStatus(patch) => {
                drop(writer.patch_status(&self.caches.templates, key, patch.clone()).await?);
            }
            Action::PatchClaim(claim, patch) => {
                drop(writer.patch(&self.caches.claims, &beside(claim), patch.clone()).await?);
            }
            Action::PatchClaimStatus(claim, patch) => {
                drop(
                    writer
                        .patch_status(&self.caches.claims, &beside(claim), patch.clone())
                        .await?,
                );
            }
            Action::Create(object) => match create(writer, &self.caches.data, object).await? {
                Created::Done => {}
                Created::Exists => return Ok(false),
                Created::Refused(error) | Created::Forbidden(error) => return Err(error.into()),
            },
            Action::LetGo(seen) => let_go(writer, &self.caches.data, seen.clone()).await?,
        }
        Ok(true)
    }
}

fn live<K>(found: Found<K>) -> Option<Arc<K>> {
    match found {
        Found::Live(object) => Some(object),
        Found::Unreadable { .. } | Found::Absent | Found::Unknown => None,
    }
}
