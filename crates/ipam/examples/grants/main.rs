//! Counts the instructions of allocating an address to every claim of a pool: caches, index, plans, documents. The API
//! server is a map, so that nothing else is counted.

#[path = "../../../proof/harness/examples/instructions/callgrind.rs"]
mod callgrind;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use kube_core::Resource;
use metal3_api::meta::Time;
use metal3_ipam::action::{Action, NewAddress};
use metal3_ipam::claim::{ClaimKind, ObjectId};
use metal3_ipam::facts::{Facts, LiveReads};
use metal3_ipam::index::key;
use metal3_ipam::plan::{BATCH, decide};
use metal3_ipam::reconciler::caches::Caches;
use metal3_runtime::cache::{Indexes, Item, SharedCache};
use metal3_runtime::patch::{self, MergePatch};
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use callgrind::{Bench, counted_work};

const BENCH: Bench = Bench {
    paths: &["grant"],
    // Both sizes take many batches: with few, the first and the last reconcile, which serve less than a batch, hide the
    // cost of a claim.
    sizes: [4_000, 10_000],
    // Searches in trees take more steps with more entries.
    steepest: 1.02,
    baseline: concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grants/baseline.txt"),
    run,
};
const NAMESPACE: &str = "metal";
const POOL: &str = "pool";
/// Writes per claim: finalizer, address object, status.
const CLAIM_WRITES: u32 = 3;

fn main() -> Result<()> {
    BENCH.main()
}

fn run(path: &str, size: u32) -> Result<()> {
    ensure!(path == "grant", "no path {path:?}");
    let (mut server, mut granted) = (Server::new(size), Ok(()));
    counted_work(&mut || granted = server.grant());
    granted?;
    ensure!(
        server.objects.len() == usize::try_from(2 * size)?,
        "{} objects of {size} claims",
        server.objects.len()
    );
    ensure!(
        server.claim_writes == CLAIM_WRITES * size,
        "{} writes",
        server.claim_writes
    );
    // The finalizer, and two per batch: its record, and its completion with the next one.
    let most = 3 + 2 * size / u32::try_from(BATCH)?;
    ensure!(server.pool_writes <= most, "{} writes to the pool", server.pool_writes);
    Ok(())
}

/// ID of an object other than the pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Claim(ObjectId),
    Address(ObjectId),
}

/// The objects of an API server, and the caches of them.
struct Server {
    caches: Caches,
    pool: Value,
    objects: BTreeMap<Place, Value>,
    version: u32,
    claim_writes: u32,
    pool_writes: u32,
}

fn kind_of(number: u32) -> ClaimKind {
    if number.is_multiple_of(2) {
        ClaimKind::Metal3
    } else {
        ClaimKind::ClusterApi
    }
}

fn claim(number: u32) -> (Place, Value) {
    let name = format!("claim-{number}");
    let kind = kind_of(number);
    let spec = match kind {
        ClaimKind::Metal3 => json!({ "pool": { "name": POOL } }),
        ClaimKind::ClusterApi => {
            json!({ "poolRef": { "name": POOL, "kind": "IPPool", "apiGroup": "ipam.metal3.io" } })
        }
    };
    let document = json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "uid": format!("of-{name}"), "resourceVersion": "2" },
        "spec": spec,
    });
    (Place::Claim(ObjectId::new(kind, &name)), document)
}

impl Server {
    fn new(claims: u32) -> Self {
        let spec = json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.255.254" }] });
        Self {
            caches: Caches::default(),
            pool: json!({
                "metadata": { "name": POOL, "namespace": NAMESPACE, "uid": "pool", "resourceVersion": "1" },
                "spec": spec,
            }),
            objects: (0..claims).map(claim).collect(),
            version: 2,
            claim_writes: 0,
            pool_writes: 0,
        }
    }

    /// Runs from the first lists until nothing is left.
    fn grant(&mut self) -> Result<()> {
        let index = self.caches.index();
        self.list()?;
        let key = key(NAMESPACE, POOL);
        loop {
            let Observed::Present(pool) = self.caches.pools.find(&key) else {
                bail!("the pool is not in its cache")
            };
            let (plan, _) = decide(&Facts {
                key: &key,
                pool: Some(&pool),
                index: &index.lock(),
                identity: "bench",
                listed: true,
                live_reads: &LiveReads::default(),
                now: Time::default(),
            });
            ensure!(plan.reads.is_empty(), "nothing needs to be read: {:?}", plan.reads);
            if plan.actions.is_empty() {
                return Ok(());
            }
            for action in plan.actions.into_iter().flat_map(|chain| chain.actions) {
                self.perform(action)?;
            }
        }
    }

    fn list(&self) -> Result<()> {
        let at = || ResourceVersion::parse("2");
        let of = |kind: ClaimKind| {
            let all = self.objects.iter();
            all.filter(move |(place, _)| matches!(place, Place::Claim(id) if id.kind == kind))
                .map(|(_, document)| document)
        };
        self.caches.pools.listed(items([&self.pool])?, at()?)?;
        self.caches.claims.listed(items(of(ClaimKind::Metal3))?, at()?)?;
        self.caches
            .cluster_claims
            .listed(items(of(ClaimKind::ClusterApi))?, at()?)?;
        self.caches.addresses.listed(Vec::new(), at()?)?;
        self.caches.cluster_addresses.listed(Vec::new(), at()?)?;
        self.caches.clusters.listed(Vec::new(), at()?)?;
        Ok(())
    }

    fn perform(&mut self, action: Action) -> Result<()> {
        self.version = self.version.saturating_add(1);
        let version = self.version.to_string();
        let place = match action {
            Action::PatchPool(change) | Action::PatchPoolStatus(change) => {
                self.pool_writes = self.pool_writes.saturating_add(1);
                patched(&mut self.pool, change, &version)?;
                return show(&self.caches.pools, &self.pool);
            }
            Action::PatchClaim(id, change) | Action::PatchClaimStatus(id, change) => {
                let place = Place::Claim(id);
                let claim = self.objects.get_mut(&place).context("an unknown claim")?;
                patched(claim, change, &version)?;
                place
            }
            Action::CreateAddress(new) => {
                let (kind, mut document) = match new {
                    NewAddress::Metal3(object) => (ClaimKind::Metal3, serde_json::to_value(object)?),
                    NewAddress::ClusterApi(object) => (ClaimKind::ClusterApi, serde_json::to_value(object)?),
                };
                let name = document.pointer("/metadata/name").and_then(Value::as_str);
                let name = name.context("an address without name")?.to_owned();
                let server_fields = json!({ "metadata": { "uid": format!("of-{name}"), "resourceVersion": version } });
                patch::apply(&server_fields, &mut document);
                let place = Place::Address(ObjectId::new(kind, &name));
                self.objects.insert(place.clone(), document);
                place
            }
            Action::PatchAddress(..) | Action::DeleteAddress { .. } => bail!("nothing is corrected: {action:?}"),
        };
        self.claim_writes = self.claim_writes.saturating_add(1);
        self.show(&place)
    }

    /// Updates the cache with a write.
    fn show(&self, place: &Place) -> Result<()> {
        let document = self.objects.get(place).context("no such object")?;
        match place {
            Place::Claim(id) if id.kind == ClaimKind::Metal3 => show(&self.caches.claims, document),
            Place::Claim(_) => show(&self.caches.cluster_claims, document),
            Place::Address(id) if id.kind == ClaimKind::Metal3 => show(&self.caches.addresses, document),
            Place::Address(_) => show(&self.caches.cluster_addresses, document),
        }
    }
}

/// Applies a write with its precondition.
fn patched(document: &mut Value, change: MergePatch, version: &str) -> Result<()> {
    let change = change.into_document();
    let at = |document: &Value| document.pointer("/metadata/resourceVersion").cloned();
    ensure!(at(&change) == at(document), "decided on another version: {change}");
    patch::apply(&change, document);
    patch::apply(&json!({ "metadata": { "resourceVersion": version } }), document);
    Ok(())
}

fn items<'a, K: DeserializeOwned>(documents: impl IntoIterator<Item = &'a Value>) -> Result<Vec<Item<K>>> {
    let read = |document: &Value| Ok(Item::Object(K::deserialize(document)?));
    documents.into_iter().map(read).collect()
}

fn show<K: Resource + DeserializeOwned, I: Indexes<K>>(cache: &SharedCache<K, I>, document: &Value) -> Result<()> {
    Ok(cache.observed(Item::Object(K::deserialize(document)?))?)
}
