//! Live reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Fault;
use metal3_runtime::write::Writer;
use parking_lot::Mutex;

use super::caches::Caches;
use crate::claim::{ClaimKind, ObjectId};
use crate::facts::{LiveClaim, LiveReads, RequiredReads};
use crate::index::key;
use crate::needs::Ipam;

/// Performs the live reads of one process. Results enter the caches.
pub(super) struct LiveReader {
    caches: Caches,
    /// Logical clock of reconciles and lists, to order them.
    sequence: AtomicU64,
    /// Start of the last list per namespace. Locked during a list, so that waiting callers share its result.
    lists: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<u64>>>>,
}

impl LiveReader {
    pub(super) fn new(caches: Caches) -> Self {
        Self {
            caches,
            sequence: AtomicU64::default(),
            lists: Mutex::default(),
        }
    }

    /// The next tick of the logical clock.
    pub(super) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::SeqCst).saturating_add(1)
    }

    /// Ensures that the caches contain every address of the namespace that existed at `since`. Concurrent callers share
    /// a list. Waiting for a bookmark of the watches would be enough, but may take a minute.
    pub(super) async fn list(&self, writer: &Writer<Ipam>, namespace: &str, since: u64) -> Result<(), Fault> {
        let lock = self.lock_of(namespace);
        let mut last = lock.lock().await;
        if *last > since {
            return Ok(());
        }
        let began = self.next_sequence();
        writer.list(&self.caches.addresses, namespace).await?;
        writer.list(&self.caches.cluster_addresses, namespace).await?;
        *last = began;
        Ok(())
    }

    fn lock_of(&self, namespace: &str) -> Arc<tokio::sync::Mutex<u64>> {
        self.lists.lock().entry(namespace.to_owned()).or_default().clone()
    }

    /// Drops what is kept of a namespace without pools. A list that is under way is then not shared.
    pub(super) fn forget(&self, namespace: &str) {
        self.lists.lock().remove(namespace);
    }

    /// Performs the reads that a plan requires.
    pub(super) async fn read(
        &self,
        writer: &Writer<Ipam>,
        namespace: &str,
        reads: &RequiredReads,
        live_reads: &mut LiveReads,
    ) -> Result<(), Fault> {
        for claim in &reads.claims {
            let object = key(namespace, &claim.name);
            let found = match claim.kind {
                ClaimKind::Metal3 => {
                    let found = writer.read(&self.caches.claims, &object).await?;
                    found.map(|claim| {
                        live_claim(
                            claim.metadata.uid,
                            claim.status.address.and_then(|address| address.name),
                        )
                    })
                }
                ClaimKind::ClusterApi => {
                    let found = writer.read(&self.caches.cluster_claims, &object).await?;
                    found.map(|claim| {
                        live_claim(claim.metadata.uid, claim.status.address_ref.map(|address| address.name))
                    })
                }
            };
            live_reads
                .claims
                .insert(claim.clone(), found.unwrap_or(Observed::Absent));
        }
        for address in &reads.addresses {
            let exists = self.exists(writer, namespace, address).await?;
            live_reads.addresses.insert(address.clone(), exists);
        }
        Ok(())
    }

    async fn exists(&self, writer: &Writer<Ipam>, namespace: &str, address: &ObjectId) -> Result<bool, Fault> {
        let object = key(namespace, &address.name);
        Ok(match address.kind {
            ClaimKind::Metal3 => writer.read(&self.caches.addresses, &object).await?.is_some(),
            ClaimKind::ClusterApi => writer.read(&self.caches.cluster_addresses, &object).await?.is_some(),
        })
    }
}

fn live_claim(uid: Option<String>, address_name: Option<String>) -> Observed<LiveClaim> {
    match uid {
        Some(uid) => Observed::Present(LiveClaim {
            uid,
            address_name: address_name.filter(|name| !name.is_empty()),
        }),
        None => Observed::Unknown(UnknownReason::Unreadable("it has no UID".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_namespace_leaves_nothing() {
        let reader = LiveReader::new(Caches::default());
        for namespace in ["a", "b"] {
            drop(reader.lock_of(namespace));
        }
        reader.forget("a");
        assert_eq!(reader.lists.lock().keys().collect::<Vec<_>>(), ["b"]);
    }
}
