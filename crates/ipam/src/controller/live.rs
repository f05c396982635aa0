//! Live reads: the answers that no cache can give.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use metal3_runtime::cache::Key;
use metal3_runtime::work::Fault;
use metal3_runtime::write::Writer;

use super::caches::Caches;
use crate::claim::{ClaimKind, Named};
use crate::facts::{Evidence, Reads, Seen};
use crate::needs::Ipam;

/// Reads of one process. What is read enters the caches.
pub(super) struct Live {
    caches: Caches,
    /// Counts the beginnings of passes and of lists, so that it can be told which came first.
    turn: Mutex<u64>,
    /// When the last list of a namespace began. Held while one is under way: whoever waits finds it done.
    lists: Mutex<BTreeMap<String, std::sync::Arc<tokio::sync::Mutex<u64>>>>,
}

impl Live {
    pub(super) fn new(caches: Caches) -> Self {
        Self {
            caches,
            turn: Mutex::default(),
            lists: Mutex::default(),
        }
    }

    /// A point in time, later than all before it.
    pub(super) fn now(&self) -> u64 {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn = turn.saturating_add(1);
        *turn
    }

    /// Makes sure that the caches hold every address of the namespace that existed at `since` or later. One list serves
    /// all that wait for it. Waiting until the watches have come as far would do as well, but a quiet watch may take a
    /// minute to say how far it is.
    pub(super) async fn list(&self, writer: &Writer<Ipam>, namespace: &str, since: u64) -> Result<(), Fault> {
        let gate = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.entry(namespace.to_owned()).or_default().clone()
        };
        let mut last = gate.lock().await;
        if *last > since {
            return Ok(());
        }
        let began = self.now();
        writer.list(&self.caches.addresses, namespace).await?;
        writer.list(&self.caches.cluster_addresses, namespace).await?;
        *last = began;
        Ok(())
    }

    /// Gets what a plan asks for.
    pub(super) async fn answer(
        &self,
        writer: &Writer<Ipam>,
        namespace: &str,
        reads: &Reads,
        evidence: &mut Evidence,
    ) -> Result<(), Fault> {
        for claim in &reads.claims {
            let object = Key {
                namespace: namespace.to_owned(),
                name: claim.name.clone(),
            };
            let seen = match claim.kind {
                ClaimKind::Metal3 => {
                    let found = writer.read(&self.caches.claims, &object).await?;
                    found.map(|claim| {
                        seen(
                            claim.metadata.uid,
                            claim.status.address.and_then(|address| address.name),
                        )
                    })
                }
                ClaimKind::ClusterApi => {
                    let found = writer.read(&self.caches.cluster_claims, &object).await?;
                    found.map(|claim| seen(claim.metadata.uid, claim.status.address_ref.map(|address| address.name)))
                }
            };
            evidence.claims.insert(claim.clone(), seen.unwrap_or(Seen::Absent));
        }
        for address in &reads.addresses {
            let exists = self.exists(writer, namespace, address).await?;
            evidence.addresses.insert(address.clone(), exists);
        }
        Ok(())
    }

    async fn exists(&self, writer: &Writer<Ipam>, namespace: &str, address: &Named) -> Result<bool, Fault> {
        let object = Key {
            namespace: namespace.to_owned(),
            name: address.name.clone(),
        };
        Ok(match address.kind {
            ClaimKind::Metal3 => writer.read(&self.caches.addresses, &object).await?.is_some(),
            ClaimKind::ClusterApi => writer.read(&self.caches.cluster_addresses, &object).await?.is_some(),
        })
    }
}

fn seen(uid: Option<String>, names: Option<String>) -> Seen {
    match uid {
        Some(uid) => Seen::Live {
            uid,
            names: names.filter(|name| !name.is_empty()),
        },
        None => Seen::Unreadable,
    }
}
