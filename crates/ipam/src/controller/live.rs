//! Live reads: the answers that no cache can give.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kube::Api;
use kube::api::ListParams;
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_runtime::access::{May, verb};
use metal3_runtime::hub::{Key, SharedHub};
use metal3_runtime::watch::PAGE;
use metal3_runtime::work::{Fault, read_fault};
use serde::de::DeserializeOwned;

use super::hubs::Hubs;
use crate::claim::{ClaimKind, Named};
use crate::facts::{Evidence, Reads, Seen};
use crate::needs::Ipam;

/// What can be read live.
pub(super) trait Readable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync
{
}

impl<K> Readable for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + Sync
{
}

/// Reads of one process. What is read enters the hubs.
pub(super) struct Live {
    client: kube::Client,
    hubs: Hubs,
    /// Counts the beginnings of passes and of lists, so that it can be told which came first.
    turn: Mutex<u64>,
    /// When the last list of a namespace began. Held while one is under way: whoever waits finds it done.
    lists: Mutex<BTreeMap<String, std::sync::Arc<tokio::sync::Mutex<u64>>>>,
}

impl Live {
    pub(super) fn new(client: kube::Client, hubs: Hubs) -> Self {
        Self {
            client,
            hubs,
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

    /// Makes sure that the hubs hold every address of the namespace that existed at `since` or later. One list serves
    /// all that wait for it.
    pub(super) async fn list(&self, namespace: &str, since: u64) -> Result<(), Fault> {
        let gate = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.entry(namespace.to_owned()).or_default().clone()
        };
        let mut last = gate.lock().await;
        if *last > since {
            return Ok(());
        }
        let began = self.now();
        self.fill::<IPAddress>(namespace, &self.hubs.addresses).await?;
        self.fill::<cluster::IPAddress>(namespace, &self.hubs.cluster_addresses)
            .await?;
        *last = began;
        Ok(())
    }

    /// Lists live and puts what the hub does not know yet into it. Waiting until the watch has come as far would do as
    /// well, but a quiet watch may take a minute to say how far it is. What the hub shows and the list does not is gone
    /// or about to go: until the watch says so, it only keeps an address from being granted.
    async fn fill<K>(&self, namespace: &str, hub: &SharedHub<K>) -> Result<(), Fault>
    where
        Ipam: May<verb::List, K>,
        K: Readable,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let op = || format!("list {} of {namespace}", K::plural(&()));
            let page = api.list(&params).await.map_err(|error| read_fault(op(), error))?;
            for object in page.items {
                hub.wrote(object)
                    .map_err(|error| Fault::bug(format!("{}: {error}", op())))?;
            }
            match page.metadata.continue_.filter(|rest| !rest.is_empty()) {
                Some(rest) => params = params.continue_token(&rest),
                None => return Ok(()),
            }
        }
    }

    /// Gets what a plan asks for.
    pub(super) async fn answer(&self, namespace: &str, reads: &Reads, evidence: &mut Evidence) -> Result<(), Fault> {
        for claim in &reads.claims {
            let object = Key {
                namespace: namespace.to_owned(),
                name: claim.name.clone(),
            };
            let seen = match claim.kind {
                ClaimKind::Metal3 => {
                    let found = self.get::<IPClaim>(&object).await?;
                    found.map(|claim| {
                        seen(
                            claim.metadata.uid,
                            claim.status.address.and_then(|address| address.name),
                        )
                    })
                }
                ClaimKind::ClusterApi => {
                    let found = self.get::<IPAddressClaim>(&object).await?;
                    found.map(|claim| seen(claim.metadata.uid, claim.status.address_ref.map(|address| address.name)))
                }
            };
            evidence.claims.insert(claim.clone(), seen.unwrap_or(Seen::Absent));
        }
        for address in &reads.addresses {
            let exists = self.exists(namespace, address).await?;
            evidence.addresses.insert(address.clone(), exists);
        }
        Ok(())
    }

    async fn exists(&self, namespace: &str, address: &Named) -> Result<bool, Fault> {
        let object = Key {
            namespace: namespace.to_owned(),
            name: address.name.clone(),
        };
        Ok(match address.kind {
            ClaimKind::Metal3 => self.get::<IPAddress>(&object).await?.is_some(),
            ClaimKind::ClusterApi => self.get::<cluster::IPAddress>(&object).await?.is_some(),
        })
    }

    /// One object as it is now; nothing when the server says that there is none.
    pub(super) async fn get<K>(&self, object: &Key) -> Result<Option<K>, Fault>
    where
        Ipam: May<verb::Get, K>,
        K: Readable,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &object.namespace);
        let found = api.get_opt(&object.name).await;
        found.map_err(|error| read_fault(format!("get {} {object}", K::plural(&())), error))
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
