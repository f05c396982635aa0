//! Looks at the workload cluster of a Metal3Cluster whose control plane another provider runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::cluster::names::MANAGED_BY_ANNOTATION;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_capi::workload::join::{JoinChecks, JoinQuestion};
use metal3_capi::workload::{BUSY_POLL, is_busy, kubeconfig};
use metal3_capi::{owner, pause, progress};
use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Fault;
use parking_lot::Mutex;

use super::Clusters;
use crate::cluster::join::{
    Answer, Bootstraps, Cause, Due, JoinFacts, Looked, due, has_control_plane, has_foreign_control_plane, is_final,
};

/// Access to workload clusters, and the last look at each.
pub(super) struct Joins {
    checks: Arc<dyn JoinChecks>,
    looked: Mutex<BTreeMap<Key, Looked>>,
}

impl Joins {
    pub(super) fn new(checks: Arc<dyn JoinChecks>) -> Self {
        Self {
            checks,
            looked: Mutex::default(),
        }
    }

    /// Removes what is remembered of an object.
    pub(super) fn remove(&self, key: &Key) {
        self.looked.lock().remove(key);
        // One that waits for its place has no answer yet.
        self.checks.remove_waiter(key);
    }

    async fn look(&self, key: &Key, cluster: &Key, cause: &Cause) -> Result<Answer, Fault> {
        let question = JoinQuestion {
            cluster: cluster.clone(),
            endpoint: cause.endpoint.clone(),
            is_kubeadm: cause.bootstraps.has_kubeadm,
        };
        let _reconciled = self.checks.reconciled(key);
        Ok(Answer {
            report: self.checks.look(&question, key).await?,
            endpoint: question.endpoint.clone(),
            bootstraps: cause.bootstraps.clone(),
        })
    }

    /// Remembers an answer, and when the next look is due.
    fn keep(&self, key: &Key, (cause, count, at): (Cause, u32, Monotonic), answer: Answer) -> JoinFacts {
        let looked = Looked {
            cause,
            count,
            at,
            is_final: is_final(&answer),
            answer: Arc::new(answer),
        };
        // An answer that changes nothing is followed by no other reconcile.
        let recheck = match due(Some(&looked), &looked.cause, at) {
            Due::Later(delay) => Some(delay),
            Due::Now(_) | Due::Settled => None,
        };
        let facts = JoinFacts::last(Some(&looked), recheck);
        self.looked.lock().insert(key.clone(), looked);
        facts
    }
}

/// Whether nothing is asked about a cluster: it is deleted, paused, moved or managed by another program, or has no control
/// plane yet.
fn is_skipped(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let is_deleting = object.metadata.deletion_timestamp.is_some() || cluster.metadata.deletion_timestamp.is_some();
    let is_paused = pause::why_paused(Some(cluster), "Metal3Cluster", &object.metadata).is_some();
    let annotations = object.metadata.annotations.as_ref();
    let is_managed = annotations.is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION));
    is_deleting || is_paused || is_managed || pause::is_moved_away(&object.metadata) || !has_control_plane(cluster)
}

impl Clusters {
    /// What is known of the workload cluster. It is asked when an answer is due.
    pub(super) async fn join(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        cluster: Option<&Cluster>,
    ) -> Result<JoinFacts, Fault> {
        let Some(joins) = &self.joins else {
            return Ok(JoinFacts::default());
        };
        let Some(cluster) = cluster.filter(|cluster| has_foreign_control_plane(object, cluster)) else {
            joins.remove(key);
            return Ok(JoinFacts::default());
        };
        if is_skipped(object, cluster) {
            return Ok(JoinFacts::unchanged(None));
        }
        let cause = self.cause(key, cluster);
        if cause.bootstraps.is_empty() {
            // Nothing joins: the next machine is a new question.
            joins.remove(key);
            return Ok(JoinFacts::default());
        }
        let now = self.parts.clock.monotonic();
        let looked = joins.looked.lock().get(key).cloned();
        // The condition of the last answer may not be written yet.
        let last = |recheck| JoinFacts::last(looked.as_ref(), recheck);
        match due(looked.as_ref(), &cause, now) {
            Due::Now(count) => match joins.look(key, &Key::of(cluster), &cause).await {
                Ok(answer) => Ok(joins.keep(key, (cause, count, now), answer)),
                Err(fault) if is_busy(&fault) => Ok(last(Some(BUSY_POLL))),
                Err(fault) => Err(fault),
            },
            Due::Later(rest) => Ok(last(Some(rest))),
            Due::Settled => Ok(last(None)),
        }
    }

    fn cause(&self, key: &Key, cluster: &Cluster) -> Cause {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let secret = self
            .parts
            .pools
            .secrets
            .find(&key.sibling(&format!("{name}{}", kubeconfig::SUFFIX)));
        let endpoint = progress::endpoint(cluster);
        Cause {
            secret: match secret {
                Observed::Present(found) => Some((found.metadata.uid.clone(), found.metadata.resource_version.clone())),
                Observed::Absent | Observed::Unknown(_) => None,
            },
            endpoint: endpoint.and_then(|(host, port)| Some((host.to_owned(), u16::try_from(port).ok()?))),
            bootstraps: self.bootstraps(&key.sibling(name)),
        }
    }

    /// The bootstrap providers of the Metal3Machines of a Cluster.
    fn bootstraps(&self, cluster: &Key) -> Bootstraps {
        let caches = &self.parts.caches;
        let machines: Vec<Key> = caches
            .metal3_machines
            .indexes()
            .read(|indexes| indexes.by_cluster.get(cluster).cloned().collect());
        let mut all = Bootstraps::default();
        for key in machines {
            let Observed::Present(machine) = caches.metal3_machines.find(&key) else {
                continue;
            };
            let Some(owner) = owner::first::<Machine>(&machine.metadata) else {
                continue;
            };
            if let Observed::Present(owner) = caches.machines.find(&key.sibling(&owner.name)) {
                all.add(&owner);
            }
        }
        all
    }
}
