//! A small API server for one pool: objects, versions, preconditions, finalizers. It knows nothing of allocation.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::patch;
use serde_json::{Value, json};

use crate::accounts::ClusterFact;
use crate::action::{Action, NewAddress};
use crate::claim::{Claim, ClaimKind, Named};
use crate::held::Held;

pub(super) const NAMESPACE: &str = "metal";
pub(super) const POOL: &str = "pool-a";
const DELETED_AT: &str = "2026-01-01T00:00:00Z";

/// An object as stored and as we read it.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) document: Arc<Value>,
    /// Differs when the content does, whatever the version.
    pub(super) figure: u64,
    read: Read,
}

#[derive(Debug, Clone)]
enum Read {
    Pool(Arc<IPPool>),
    Claim(Arc<Claim>),
    Held(Arc<(String, Held)>),
}

#[derive(Debug, Clone, Copy)]
enum Sort {
    Pool,
    Claim(ClaimKind),
    Address(ClaimKind),
}

impl Stored {
    fn new(sort: Sort, document: Value) -> Self {
        let mut content = document.clone();
        content["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        let mut hasher = DefaultHasher::new();
        content.to_string().hash(&mut hasher);
        let read = match sort {
            Sort::Pool => Read::Pool(Arc::new(serde_json::from_value(document.clone()).unwrap())),
            Sort::Claim(kind) => Read::Claim(Arc::new(claim_of(kind, document.clone()))),
            Sort::Address(kind) => Read::Held(Arc::new(held_of(kind, document.clone()))),
        };
        Self {
            document: Arc::new(document),
            figure: hasher.finish(),
            read,
        }
    }

    /// The same object with other content.
    fn with(&self, document: Value) -> Self {
        let sort = match &self.read {
            Read::Pool(_) => Sort::Pool,
            Read::Claim(claim) => Sort::Claim(claim.id.kind),
            Read::Held(held) => Sort::Address(held.1.id.kind),
        };
        Self::new(sort, document)
    }

    pub(super) fn pool(&self) -> &IPPool {
        let Read::Pool(pool) = &self.read else {
            panic!("not a pool: {self:?}")
        };
        pool
    }

    pub(super) fn claim(&self) -> &Claim {
        let Read::Claim(claim) = &self.read else {
            panic!("not a claim: {self:?}")
        };
        claim
    }

    pub(super) fn held(&self) -> &Held {
        &self.held_from().1
    }

    pub(super) fn held_from(&self) -> &(String, Held) {
        let Read::Held(held) = &self.read else {
            panic!("not an address: {self:?}")
        };
        held
    }

    pub(super) fn meta(&self, member: &str) -> &Value {
        &self.document["metadata"][member]
    }

    pub(super) fn uid(&self) -> &str {
        self.meta("uid").as_str().unwrap()
    }

    pub(super) fn version(&self) -> &str {
        self.meta("resourceVersion").as_str().unwrap()
    }

    /// Which object, and how new.
    pub(super) fn exactly(&self) -> (&str, &str) {
        (self.uid(), self.version())
    }

    pub(super) fn finalizers(&self) -> Vec<String> {
        serde_json::from_value(self.meta("finalizers").clone()).unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        !self.meta("deletionTimestamp").is_null()
    }
}

/// What exists, or what a cache shows of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) pool: Option<Stored>,
    pub(super) claims: BTreeMap<Named, Stored>,
    pub(super) addresses: BTreeMap<Named, Stored>,
    pub(super) clusters: BTreeMap<String, ClusterFact>,
}

/// By content and version: another history may have given the same version another content.
impl Hash for Objects {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pool.as_ref().map(|pool| (pool.figure, pool.version())).hash(state);
        self.claims.len().hash(state);
        for (id, stored) in self.claims.iter().chain(&self.addresses) {
            (id, stored.figure, stored.version()).hash(state);
        }
    }
}

impl Objects {
    /// Differs when the content does, or when an object is as new as in `truth` here and older there. Versions beside
    /// that do not matter: one that is no more current never becomes it again.
    pub(super) fn figure(&self, truth: &Self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let is_new = |mine: &Stored, theirs: Option<&Stored>| theirs.is_some_and(|one| one.exactly() == mine.exactly());
        if let Some(pool) = &self.pool {
            (pool.figure, is_new(pool, truth.pool.as_ref())).hash(&mut hasher);
        }
        for (id, one) in &self.claims {
            (id, one.figure, is_new(one, truth.claims.get(id))).hash(&mut hasher);
        }
        self.claims.len().hash(&mut hasher);
        for (id, one) in &self.addresses {
            (id, one.figure, is_new(one, truth.addresses.get(id))).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Preconditions that the server is told to overlook, to see what they are good for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overlooks {
    pub(super) pool_version: bool,
    pub(super) claim_version: bool,
    pub(super) address_version: bool,
    pub(super) whose_exists: bool,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Absent,
    Conflict,
    Exists,
}

/// The server.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) objects: Arc<Objects>,
    pub(super) overlooks: Overlooks,
    births: Arc<BTreeMap<String, u32>>,
    pub(super) writes: usize,
}

impl World {
    /// A world with a pool of that spec.
    pub(super) fn with_pool(spec: Value) -> Self {
        let mut world = Self::default();
        world.put_pool(json!({ "metadata": { "name": POOL, "namespace": NAMESPACE }, "spec": spec }));
        world
    }

    pub(super) fn put_pool(&mut self, document: Value) {
        let pool = self.born("pool", Sort::Pool, document);
        self.change().pool = Some(pool);
    }

    /// Creates a claim; members of `extra` join its metadata.
    pub(super) fn claim(&mut self, kind: ClaimKind, name: &str, extra: Value) {
        let spec = match kind {
            ClaimKind::Metal3 => json!({ "pool": { "name": POOL } }),
            ClaimKind::ClusterApi => {
                json!({ "poolRef": { "name": POOL, "kind": "IPPool", "apiGroup": "ipam.metal3.io" } })
            }
        };
        let mut document = json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec });
        patch::apply(&json!({ "metadata": extra }), &mut document);
        let id = Named::new(kind, name);
        let born = self.born(&id.to_string(), Sort::Claim(kind), document);
        self.change().claims.insert(id, born);
    }

    /// Creates an address object that nobody planned.
    pub(super) fn address(&mut self, kind: ClaimKind, document: Value) {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let id = Named::new(kind, &name);
        let born = self.born(&format!("address {id}"), Sort::Address(kind), document);
        self.change().addresses.insert(id, born);
    }

    pub(super) fn change(&mut self) -> &mut Objects {
        Arc::make_mut(&mut self.objects)
    }

    fn born(&mut self, what: &str, sort: Sort, mut document: Value) -> Stored {
        let birth = Arc::make_mut(&mut self.births).entry(what.to_owned()).or_default();
        *birth += 1;
        document["metadata"]["uid"] = json!(format!("{what}.{birth}"));
        document["metadata"]["resourceVersion"] = json!((*birth * 1000).to_string());
        document["metadata"]["generation"] = json!(1);
        Stored::new(sort, document)
    }

    /// A user deletes a claim.
    pub(super) fn delete_claim(&mut self, id: &Named) {
        delete(&mut self.change().claims, id, |_| true).unwrap();
    }

    /// A user deletes the pool.
    pub(super) fn delete_pool(&mut self) {
        let mut slot: BTreeMap<(), Stored> = self.change().pool.take().map(|pool| ((), pool)).into_iter().collect();
        delete(&mut slot, &(), |_| true).unwrap();
        self.change().pool = slot.remove(&());
    }

    /// A user changes an object without asking for its version.
    pub(super) fn edit_pool(&mut self, change: &Value) {
        let pool = self.change().pool.take().unwrap();
        self.change().pool = changed(&pool, change);
    }

    pub(super) fn edit_claim(&mut self, id: &Named, change: &Value) {
        patched(&mut self.change().claims, id, change).unwrap();
    }

    pub(super) fn edit_address(&mut self, id: &Named, change: &Value) {
        patched(&mut self.change().addresses, id, change).unwrap();
    }

    /// Performs one write.
    pub(super) fn perform(&mut self, action: &Action) -> Result<(), Refused> {
        self.writes += 1;
        match action {
            Action::PatchPool(patch) | Action::PatchPoolStatus(patch) => {
                let pool = self.objects.pool.clone().ok_or(Refused::Absent)?;
                let change = guarded(&pool, patch.clone().into_document(), self.overlooks.pool_version)?;
                self.change().pool = changed(&pool, &change);
                Ok(())
            }
            Action::PatchClaim(id, patch) | Action::PatchClaimStatus(id, patch) => {
                let claim = self.objects.claims.get(id).ok_or(Refused::Absent)?;
                let change = guarded(claim, patch.clone().into_document(), self.overlooks.claim_version)?;
                patched(&mut self.change().claims, id, &change)
            }
            Action::PatchAddress(id, patch) => {
                let held = self.objects.addresses.get(id).ok_or(Refused::Absent)?;
                let change = guarded(held, patch.clone().into_document(), self.overlooks.address_version)?;
                patched(&mut self.change().addresses, id, &change)
            }
            Action::DeleteAddress { address, uid, version } => {
                let any = self.overlooks.address_version;
                delete(&mut self.change().addresses, address, |held| {
                    any || (held.uid() == uid && held.version() == version.as_str())
                })
            }
            Action::CreateAddress(new) => self.create(new),
        }
    }

    fn create(&mut self, new: &NewAddress) -> Result<(), Refused> {
        let (kind, document) = match new {
            NewAddress::Metal3(object) => (ClaimKind::Metal3, serde_json::to_value(object).unwrap()),
            NewAddress::ClusterApi(object) => (ClaimKind::ClusterApi, serde_json::to_value(object).unwrap()),
        };
        let id = Named::new(kind, document["metadata"]["name"].as_str().unwrap());
        let Some(existing) = self.objects.addresses.get(&id) else {
            self.address(kind, document);
            return Ok(());
        };
        let same = existing.meta("ownerReferences")[1]["uid"] == document["metadata"]["ownerReferences"][1]["uid"]
            && existing.document["spec"]["address"] == document["spec"]["address"];
        if same || self.overlooks.whose_exists {
            Ok(())
        } else {
            Err(Refused::Exists)
        }
    }

    pub(super) fn pool(&self) -> IPPool {
        self.objects.pool.as_ref().unwrap().pool().clone()
    }

    pub(super) fn claim_of(&self, kind: ClaimKind, name: &str) -> Claim {
        self.objects.claims[&Named::new(kind, name)].claim().clone()
    }

    /// The address a claim has, in words: through the object its status names.
    pub(super) fn granted(&self, kind: ClaimKind, name: &str) -> Option<String> {
        let object = self.claim_of(kind, name).names?;
        let held = self.objects.addresses.get(&Named::new(kind, &object))?;
        held.document["spec"]["address"].as_str().map(ToOwned::to_owned)
    }
}

fn guarded(stored: &Stored, mut change: Value, overlook: bool) -> Result<Value, Refused> {
    let version = change["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion")
        .unwrap();
    if overlook || version == stored.version() {
        Ok(change)
    } else {
        Err(Refused::Conflict)
    }
}

/// The object with a change in it, one version on; nothing when that was the last finalizer of a deleted one.
fn changed(stored: &Stored, change: &Value) -> Option<Stored> {
    let mut document = (*stored.document).clone();
    patch::apply(change, &mut document);
    if document == *stored.document {
        return Some(stored.clone());
    }
    let version: u64 = stored.version().parse().unwrap();
    document["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    let next = stored.with(document);
    (!next.is_deleting() || !next.finalizers().is_empty()).then_some(next)
}

fn patched<K: Ord + Clone>(objects: &mut BTreeMap<K, Stored>, id: &K, change: &Value) -> Result<(), Refused> {
    let stored = objects.get(id).ok_or(Refused::Absent)?;
    match changed(stored, change) {
        Some(next) => objects.insert(id.clone(), next),
        None => objects.remove(id),
    };
    Ok(())
}

fn delete<K: Ord + Clone>(
    objects: &mut BTreeMap<K, Stored>,
    id: &K,
    meant: impl Fn(&Stored) -> bool,
) -> Result<(), Refused> {
    let stored = objects.get(id).ok_or(Refused::Absent)?;
    if !meant(stored) {
        return Err(Refused::Conflict);
    }
    if stored.finalizers().is_empty() {
        objects.remove(id);
        return Ok(());
    }
    patched(objects, id, &json!({ "metadata": { "deletionTimestamp": DELETED_AT } }))
}

fn claim_of(kind: ClaimKind, document: Value) -> Claim {
    let read = match kind {
        ClaimKind::Metal3 => Claim::of_metal3(&serde_json::from_value::<IPClaim>(document).unwrap()),
        ClaimKind::ClusterApi => {
            Claim::of_cluster_api(&serde_json::from_value::<cluster::IPAddressClaim>(document).unwrap())
        }
    };
    read.unwrap().1
}

fn held_of(kind: ClaimKind, document: Value) -> (String, Held) {
    let read = match kind {
        ClaimKind::Metal3 => Held::of_metal3(&serde_json::from_value::<IPAddress>(document).unwrap()),
        ClaimKind::ClusterApi => Held::of_cluster_api(&serde_json::from_value::<cluster::IPAddress>(document).unwrap()),
    };
    read.unwrap()
}

/// Metadata as the API reads it.
pub(super) fn meta_of(stored: &Stored) -> ObjectMeta {
    serde_json::from_value(stored.document["metadata"].clone()).unwrap()
}
