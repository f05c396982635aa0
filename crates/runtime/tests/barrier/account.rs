//! Who looked how often, and what is wrong in the end.

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

use crate::flow::{AnswerContent, Stage, claim_of};
use crate::server::Server;

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) claims: u32,
    /// Children beyond the first of a claim.
    pub(crate) duplicates: u32,
    /// Writes refused with 409. Nobody else writes these objects, so all are self-inflicted.
    pub(crate) conflicts: u32,
    /// Passes that neither a foreign change nor a failed pass nor a crash explains.
    pub(crate) extra: u32,
    pub(crate) writes: u32,
    pub(crate) passes: u32,
    pub(crate) failed: u32,
    pub(crate) restarts: u32,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} claims: {} duplicates, {} conflicts, {} extra passes; {} writes, {} passes, {} of them failed, {} crashes",
            self.claims,
            self.duplicates,
            self.conflicts,
            self.extra,
            self.writes,
            self.passes,
            self.failed,
            self.restarts
        )
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    passes: u32,
    explained: u32,
}

/// Counts while a flow runs; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    looks: Arc<Mutex<BTreeMap<(Stage, String), Looks>>>,
    pub(crate) writes: Arc<AtomicU32>,
    pub(crate) conflicts: Arc<AtomicU32>,
    pub(crate) crashes: watch::Sender<u32>,
    /// Requests that the server still works on.
    pub(crate) sent: TaskTracker,
    failed: Arc<AtomicU32>,
    restarts: Arc<AtomicU32>,
}

impl Account {
    pub(crate) fn pass(&self, stage: Stage, key: &str) {
        let mut looks = self.looks.lock();
        looks.entry((stage, key.to_owned())).or_default().passes += 1;
    }

    pub(crate) fn failure(&self, stage: Stage, key: &str) {
        let mut looks = self.looks.lock();
        looks.entry((stage, key.to_owned())).or_default().explained += 1;
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A program takes longer to start than the server needs for what the last one sent. Everything that was looked at
    /// before is looked at again.
    pub(crate) async fn restart(&self) {
        self.sent.close();
        self.sent.wait().await;
        self.sent.reopen();
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.looks.lock().values_mut().for_each(|looks| looks.explained += 1);
    }

    pub(crate) async fn close(&self, server: &Server, claims: u32) -> Tally {
        let looks = self.looks.lock().clone();
        let of = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let extra = |((stage, _), looks): (&(Stage, String), &Looks)| {
            looks.passes.saturating_sub(stage.passes() + looks.explained)
        };
        Tally {
            claims,
            duplicates: duplicates::<Metal3Data>(server).await + duplicates::<IPAddress>(server).await,
            conflicts: of(&self.conflicts),
            extra: looks.iter().map(extra).sum(),
            writes: of(&self.writes),
            passes: looks.values().map(|looks| looks.passes).sum(),
            failed: of(&self.failed),
            restarts: of(&self.restarts),
        }
    }
}

async fn all<K: AnswerContent>(server: &Server) -> Vec<K> {
    let api: Api<K> = Api::all(server.client("judge"));
    api.list(&ListParams::default()).await.unwrap().items
}

async fn duplicates<K: AnswerContent>(server: &Server) -> u32 {
    let mut made = BTreeMap::<String, u32>::new();
    for object in all::<K>(server).await {
        *made.entry(claim_of(&object).unwrap()).or_default() += 1;
    }
    made.values().map(|count| count - 1).sum()
}

/// Whether everything is done that was asked for.
pub(crate) async fn finished(server: &Server) -> bool {
    all::<Metal3DataClaim>(server).await.iter().all(AnswerContent::done)
        && all::<Metal3Data>(server).await.iter().all(AnswerContent::done)
        && all::<IPClaim>(server).await.iter().all(AnswerContent::done)
}
