//! The controller of HostClaims, with `--hostclaims`: hosts for tenants who see no BareMetalHost.
//!
//! | Step | Where |
//! |---|---|
//! | map changes of claims, policies, namespaces, hosts and Secrets | `watches` |
//! | observe: caches, live reads | `observe` |
//! | plan | `plan`, with `policy`, `choice`, `bond` and `copies` |
//! | act | `act` |
//!
//! Nothing is polled. This controller sends nothing to Ironic: it writes the spec of hosts, and the controller of hosts acts.
//!
//! What a bond leaves on a host whose consumer was removed by hand is removed by `ended`.
//!
//! Invariants: the claim names a host before the host is bound, and nothing of the claim goes to a host without an identifier on both
//! sides (`bond`); a host is changed for a claim only after live reads of the claim, its namespace, a HostDeployPolicy that permits it,
//! and the host, in the same reconcile, whatever the consumer of the host says; without such a policy nothing is changed and nothing
//! erased; a host is bound by a patch of the version that was read; it is another claim's only after what was deployed on it was
//! removed, and cleaned unless its owner had forbidden that before it was bound; a claim is not let go while the host that it names may be
//! bound to it; a Secret that the host does not control is neither
//! written nor used; the status of a claim contains no text of a host.

mod act;
pub(crate) mod bond;
mod choice;
mod copies;
mod deletions;
mod ended;
mod facts;
mod observe;
mod plan;
mod policy;
mod refusals;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::{EventRecorder, Importance};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::names::claim_reason::{CLAIM_ABSENT, OBJECT_UNREADABLE};
use crate::needs::Claims;
use crate::reconciler::caches::Caches as HostCaches;
use crate::switches::SecretsOfSwitches;
use act::Act;
use deletions::Deletions;
use observe::Observer;
use plan::{CATCH_UP, Step, plan, strays};
use policy::PolicyBook;
use refusals::Refusals;
use watches::HostBook;
pub use watches::{Caches, ClaimIndexes};

/// Reads and writes per reconcile: more than the longest sequence of steps, which tries ten hosts and reads 32 policies.
const STEPS: usize = 256;
/// How often one change of an object is made in a reconcile: what is changed back by something else would be changed without end.
const MOST_TIMES: usize = 3;
const WORKERS: usize = 4;
/// How often an Event says that nothing releases a host: an API server keeps Events for an hour.
const REMINDER: Duration = Duration::from_hours(1);
/// How soon a refused change is tried again: rights and policies of the API server are not watched.
const RECHECK: Duration = Duration::from_mins(5);

/// The dependencies of the controller.
pub struct Parts {
    /// Reads the API server.
    pub client: kube::Client,
    /// The claims, not listed yet.
    pub caches: Caches,
    /// The only namespace that is watched; `None`: all are, and the metadata of namespaces, too.
    pub only: Option<String>,
    /// The caches of the controller of hosts: hosts, HardwareData and Secrets.
    pub of_hosts: HostCaches,
    /// The Secrets of switches, if switches are configured.
    pub switches: Option<SecretsOfSwitches>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The controllers of claims, and of what they left on hosts.
pub struct Controllers {
    claims: Controller<ClaimReconciler>,
    ended: Controller<ended::EndedReconciler>,
}

impl Controllers {
    /// Runs until `stop`, then lets running reconciles finish.
    pub async fn run(self, stop: CancellationToken) {
        futures::future::join(self.claims.run(stop.clone()), self.ended.run(stop)).await;
    }
}

/// The reconciler of claims.
struct ClaimReconciler {
    observer: Observer,
    secrets: ObjectReader<Claims, Secret>,
    events: EventRecorder,
    clock: Arc<dyn Clock>,
    /// The hosts about which an Event says that nothing releases them, and its time.
    notified: Mutex<BTreeMap<Key, DateTime<Utc>>>,
}

/// Creates the controllers. They subscribe to the caches at once.
pub fn controllers(parts: Parts, writer: Writer<Claims>) -> Controllers {
    let of_ended = ended::EndedReconciler::new(&parts);
    let ended = Controller::new("hostclaim-ended", Arc::clone(&parts.clock), writer.clone(), of_ended)
        .watches(&parts.of_hosts.hosts, ended::of_host)
        .metrics(&parts.metrics);
    Controllers {
        claims: controller(parts, writer),
        ended,
    }
}

fn controller(parts: Parts, writer: Writer<Claims>) -> Controller<ClaimReconciler> {
    let (caches, of_hosts) = (parts.caches.clone(), parts.of_hosts.clone());
    let book = HostBook::following(&of_hosts.hosts);
    let reconciler = ClaimReconciler {
        observer: Observer {
            policies: PolicyBook::following(&parts.caches.policies),
            refusals: Refusals::default(),
            deletions: Deletions::default(),
            caches: parts.caches,
            book: book.clone(),
            hosts: parts.of_hosts.hosts,
            hardware: parts.of_hosts.hardware,
            secret_names: parts.of_hosts.secrets.clone(),
            switches: parts.switches,
            only: parts.only,
        },
        secrets: ObjectReader::new(parts.client, &parts.of_hosts.secrets),
        events: parts.events,
        clock: Arc::clone(&parts.clock),
        notified: Mutex::default(),
    };
    let [of_claim, of_host, of_policy, of_secret, of_namespace] = [(); 5].map(|()| caches.claims.indexes());
    let (of_hardware, of_hosts_of_policy) = (book.clone(), book.clone());
    let watches_namespaces = reconciler.observer.only.is_none();
    let controller = Controller::new("hostclaim", parts.clock, writer, reconciler)
        .watches(&caches.claims, move |change| watches::of_claim(change, &of_claim))
        .watches(&of_hosts.hosts, move |change| watches::of_host(change, &of_host))
        .watches(&caches.policies, move |change| {
            let policy = change.key();
            policy.map_or_else(Vec::new, |policy| {
                watches::of_policy(&policy, &of_policy, &of_hosts_of_policy)
            })
        })
        .watches(&of_hosts.hardware, move |change| of_hardware.claim_of(&change.key()?))
        .watches(&of_hosts.secrets, move |change| {
            let secret = change.key();
            secret.map_or_else(Vec::new, |secret| watches::of_secret(&secret, &of_secret, &book))
        })
        .workers(WORKERS)
        .metrics(&parts.metrics);
    match watches_namespaces {
        true => controller.watches(&caches.namespaces, move |change| {
            let namespace = change.key().filter(|_| watches::has_other_labels(change));
            let claims = |namespace: Key| of_namespace.read(|indexes| indexes.in_namespace(&namespace.name));
            namespace.map_or_else(Vec::new, claims)
        }),
        false => controller,
    }
}

impl Reconciler for ClaimReconciler {
    type Key = Key;
    type Role = Claims;

    async fn reconcile(&self, key: &Key, writer: &Writer<Claims>) -> Result<Next, Fault> {
        // A host may name a claim of any namespace, which another program serves.
        if !self.observer.is_watched(&key.namespace) {
            return Ok(Next::Done);
        }
        let claim = match self.observer.caches.claims.find(key) {
            Observed::Present(claim) => claim,
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(OBJECT_UNREADABLE, why)),
            // The kind need not be installed, and may not be permitted.
            Observed::Unknown(_) => return Ok(Next::Done),
            Observed::Absent => {
                self.observer.deletions.remove(key);
                return self.without_claim(key, writer).await;
            }
        };
        let mut facts = self.observer.observe(key, claim, &*self.clock);
        let act = Act {
            reconciler: self,
            writer,
        };
        let mut made = BTreeMap::new();
        for _ in 0..STEPS {
            match plan(&facts) {
                Step::Read(read) => {
                    if !self.observer.read(read, &mut facts, writer).await? {
                        // The claim is another one now, and the watch does not show it yet.
                        return Ok(Next::RequeueAfter(CATCH_UP));
                    }
                }
                Step::Do(action) => {
                    let times: &mut usize = made.entry(action.subject()).or_default();
                    *times += 1;
                    let end = match *times > MOST_TIMES {
                        true => act.changed_back(&action, &mut facts).await?,
                        false => act.perform(action, &mut facts).await?,
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
                Step::End(end) => {
                    for (host, object) in strays(&facts) {
                        self.notify(key, host, object);
                    }
                    return act.end(end, &facts).await;
                }
            }
        }
        Err(Fault::bug("a decision about a HostClaim does not end"))
    }
}

impl ClaimReconciler {
    /// A host that names a claim which does not exist is left as it is: the claim may be moved or restored, and what runs on the host is
    /// not erased because of an absence. An Event says so.
    async fn without_claim(&self, key: &Key, writer: &Writer<Claims>) -> Result<Next, Fault> {
        let hosts = self.observer.book.of_claim(key);
        let Some(first) = hosts.first() else {
            return Ok(Next::Done);
        };
        match writer.read::<HostClaim>(&self.observer.caches.claims, key).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(Next::RequeueAfter(CATCH_UP)),
            // The kind is not installed.
            Err(fault) if fault.category() == Category::NOT_FOUND.as_str() => return Ok(Next::Done),
            Err(fault) => return Err(fault),
        }
        for host in &hosts {
            if let Observed::Present(object) = self.observer.hosts.find(host) {
                self.notify(key, host, &object);
            }
        }
        let why = format!(
            "the host {first} names a HostClaim that does not exist, so it is left as it is; create the claim again, or remove \
             spec.consumerRef of the host"
        );
        Ok(Next::waiting_with_recheck(CLAIM_ABSENT, why, REMINDER))
    }

    /// Records for the administrators of a host that the claim which it names does not release it.
    fn notify(&self, claim: &Key, key: &Key, host: &BareMetalHost) {
        let now = self.clock.now();
        let period = TimeDelta::from_std(REMINDER).unwrap_or_default();
        {
            let mut notified = self.notified.lock();
            notified.retain(|_, at| now.signed_duration_since(*at).abs() < period);
            if notified.contains_key(key) {
                return;
            }
            notified.insert(key.clone(), now);
        }
        let note = format!(
            "the host is bound to the HostClaim {claim}, which does not exist or is not bound to it, so nothing releases it; remove \
             spec.consumerRef when nothing on it is used any more, and spec.image to have it deprovisioned"
        );
        self.events.record(host, Importance::Warning, CLAIM_ABSENT, note);
    }
}
