//! Counts reconciles, writes and defects of a flow.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::Api;
use kube::api::ListParams;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::flow::{FlowObject, Stage, claim_of};
use crate::server::Server;

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) claims: u32,
    /// Children beyond the first of a claim.
    pub(crate) duplicates: u32,
    /// Writes rejected with 409. The flow is the only writer of these objects, so all are self-inflicted.
    pub(crate) conflicts: u32,
    /// Reconciles that neither a foreign change nor a failed reconcile nor a crash explains.
    pub(crate) extra: u32,
    pub(crate) writes: u32,
    pub(crate) reconciles: u32,
    pub(crate) failed: u32,
    pub(crate) restarts: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} claims: {} duplicates, {} conflicts, {} extra reconciles; {} writes, {} reconciles, {} of them failed, {} crashes",
            self.claims,
            self.duplicates,
            self.conflicts,
            self.extra,
            self.writes,
            self.reconciles,
            self.failed,
            self.restarts
        )
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct KeyCounts {
    reconciles: u32,
    explained: u32,
}

/// Counters of a running flow; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    keys: Arc<Mutex<BTreeMap<(Stage, String), KeyCounts>>>,
    pub(crate) writes: Arc<AtomicU32>,
    pub(crate) conflicts: Arc<AtomicU32>,
    pub(crate) crashes: watch::Sender<u32>,
    /// Requests in progress on the server.
    pub(crate) sent: TaskTracker,
    failed: Arc<AtomicU32>,
    restarts: Arc<AtomicU32>,
}

impl Counters {
    pub(crate) fn reconcile(&self, stage: Stage, key: &str) {
        let mut keys = self.keys.lock();
        keys.entry((stage, key.to_owned())).or_default().reconciles += 1;
    }

    pub(crate) fn failure(&self, stage: Stage, key: &str) {
        let mut keys = self.keys.lock();
        keys.entry((stage, key.to_owned())).or_default().explained += 1;
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the requests of the crashed process, and allows one more reconcile of each key.
    pub(crate) async fn restart(&self) {
        self.sent.close();
        self.sent.wait().await;
        self.sent.reopen();
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.keys.lock().values_mut().for_each(|keys| keys.explained += 1);
    }

    pub(crate) async fn close(&self, server: &Server, claims: u32) -> Counts {
        let keys = self.keys.lock().clone();
        let of = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let extra = |((stage, _), keys): (&(Stage, String), &KeyCounts)| {
            keys.reconciles.saturating_sub(stage.reconciles() + keys.explained)
        };
        Counts {
            claims,
            duplicates: duplicates::<Metal3Data>(server).await + duplicates::<IPAddress>(server).await,
            conflicts: of(&self.conflicts),
            extra: keys.iter().map(extra).sum(),
            writes: of(&self.writes),
            reconciles: keys.values().map(|keys| keys.reconciles).sum(),
            failed: of(&self.failed),
            restarts: of(&self.restarts),
        }
    }
}

async fn all<K: FlowObject>(server: &Server) -> Vec<K> {
    let api: Api<K> = Api::all(server.client("observer"));
    api.list(&ListParams::default()).await.unwrap().items
}

async fn duplicates<K: FlowObject>(server: &Server) -> u32 {
    let mut made = BTreeMap::<String, u32>::new();
    for object in all::<K>(server).await {
        *made.entry(claim_of(&object).unwrap()).or_default() += 1;
    }
    made.values().map(|count| count - 1).sum()
}

/// Whether every object is complete.
pub(crate) async fn finished(server: &Server) -> bool {
    all::<Metal3DataClaim>(server).await.iter().all(FlowObject::done)
        && all::<Metal3Data>(server).await.iter().all(FlowObject::done)
        && all::<IPClaim>(server).await.iter().all(FlowObject::done)
}
