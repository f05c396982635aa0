//! An API server stand-in for one pool: objects, versions, preconditions, finalizers.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::patch;
use serde_json::{Value, json};

use super::program::claim_document;
use crate::action::{Action, NewAddress};
use crate::address::AddressObject;
use crate::claim::{Claim, ClaimKind, ObjectId};
use crate::index::ClusterState;

pub(super) const NAMESPACE: &str = "metal";
pub(super) const POOL: &str = "pool-a";
const DELETED_AT: &str = "2026-01-01T00:00:00Z";

/// An object as stored and as parsed.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) document: Arc<Value>,
    /// Hash of the content without the version.
    pub(super) content_hash: u64,
    read: Read,
}

#[derive(Debug, Clone)]
enum Read {
    Pool(Arc<IPPool>),
    Claim(Arc<Claim>),
    AddressObject(Arc<(String, AddressObject)>),
}

#[derive(Debug, Clone, Copy)]
enum ObjectKind {
    Pool,
    Claim(ClaimKind),
    Address(ClaimKind),
}

impl Stored {
    fn new(object_kind: ObjectKind, document: Value) -> Self {
        let mut content = document.clone();
        content["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        let mut hasher = DefaultHasher::new();
        content.to_string().hash(&mut hasher);
        let read = match object_kind {
            ObjectKind::Pool => Read::Pool(Arc::new(serde_json::from_value(document.clone()).unwrap())),
            ObjectKind::Claim(kind) => Read::Claim(Arc::new(claim_of(kind, document.clone()))),
            ObjectKind::Address(kind) => Read::AddressObject(Arc::new(address_of(kind, document.clone()))),
        };
        Self {
            document: Arc::new(document),
            content_hash: hasher.finish(),
            read,
        }
    }

    /// The same object with other content.
    fn with(&self, document: Value) -> Self {
        let object_kind = match &self.read {
            Read::Pool(_) => ObjectKind::Pool,
            Read::Claim(claim) => ObjectKind::Claim(claim.id.kind),
            Read::AddressObject(object) => ObjectKind::Address(object.1.id.kind),
        };
        Self::new(object_kind, document)
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

    pub(super) fn address_object(&self) -> &AddressObject {
        &self.address_with_pool().1
    }

    pub(super) fn address_with_pool(&self) -> &(String, AddressObject) {
        let Read::AddressObject(object) = &self.read else {
            panic!("not an address: {self:?}")
        };
        object
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

    /// UID and version.
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

impl Borrow<Claim> for Stored {
    fn borrow(&self) -> &Claim {
        self.claim()
    }
}

impl Borrow<AddressObject> for Stored {
    fn borrow(&self) -> &AddressObject {
        self.address_object()
    }
}

/// The stored objects, or those of a cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) pool: Option<Stored>,
    pub(super) claims: BTreeMap<ObjectId, Stored>,
    pub(super) addresses: BTreeMap<ObjectId, Stored>,
    pub(super) clusters: BTreeMap<String, ClusterState>,
}

/// Hashes content and version: another history may give the same version another content.
impl Hash for Objects {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pool
            .as_ref()
            .map(|pool| (pool.content_hash, pool.version()))
            .hash(state);
        self.claims.len().hash(state);
        for (id, stored) in self.claims.iter().chain(&self.addresses) {
            (id, stored.content_hash, stored.version()).hash(state);
        }
    }
}

impl Objects {
    /// Hashes content, and whether each object is current compared with `truth`. Other versions do not matter: an
    /// outdated one never becomes current again.
    pub(super) fn content_hash(&self, truth: &Self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let is_new =
            |cached: &Stored, stored: Option<&Stored>| stored.is_some_and(|one| one.exactly() == cached.exactly());
        if let Some(pool) = &self.pool {
            (pool.content_hash, is_new(pool, truth.pool.as_ref())).hash(&mut hasher);
        }
        for (id, one) in &self.claims {
            (id, one.content_hash, is_new(one, truth.claims.get(id))).hash(&mut hasher);
        }
        self.claims.len().hash(&mut hasher);
        for (id, one) in &self.addresses {
            (id, one.content_hash, is_new(one, truth.addresses.get(id))).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Preconditions that the server ignores, to show that each is necessary.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IgnoredPreconditions {
    pub(super) pool_version: bool,
    pub(super) claim_version: bool,
    pub(super) address_version: bool,
    pub(super) existing_owner: bool,
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Absent,
    Conflict,
    Exists,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ApiServer {
    pub(super) objects: Arc<Objects>,
    pub(super) ignored: IgnoredPreconditions,
    creations: Arc<BTreeMap<String, u32>>,
    pub(super) writes: usize,
}

impl ApiServer {
    pub(super) fn with_pool(spec: Value) -> Self {
        let mut server = Self::default();
        server.put_pool(json!({ "metadata": { "name": POOL, "namespace": NAMESPACE }, "spec": spec }));
        server
    }

    pub(super) fn put_pool(&mut self, document: Value) {
        let pool = self.created("pool", ObjectKind::Pool, document);
        self.change().pool = Some(pool);
    }

    /// Creates a claim; `extra` is merged into its metadata.
    pub(super) fn claim(&mut self, kind: ClaimKind, name: &str, extra: Value) {
        let mut document = claim_document(kind, POOL, json!({ "name": name, "namespace": NAMESPACE }));
        patch::apply(&json!({ "metadata": extra }), &mut document);
        let id = ObjectId::new(kind, name);
        let created = self.created(&id.to_string(), ObjectKind::Claim(kind), document);
        self.change().claims.insert(id, created);
    }

    /// Creates an address object without a plan.
    pub(super) fn address(&mut self, kind: ClaimKind, document: Value) {
        let name = document["metadata"]["name"].as_str().unwrap().to_owned();
        let id = ObjectId::new(kind, &name);
        let created = self.created(&format!("address {id}"), ObjectKind::Address(kind), document);
        self.change().addresses.insert(id, created);
    }

    pub(super) fn change(&mut self) -> &mut Objects {
        Arc::make_mut(&mut self.objects)
    }

    fn created(&mut self, what: &str, object_kind: ObjectKind, mut document: Value) -> Stored {
        let count = Arc::make_mut(&mut self.creations).entry(what.to_owned()).or_default();
        *count += 1;
        document["metadata"]["uid"] = json!(format!("{what}.{count}"));
        document["metadata"]["resourceVersion"] = json!((*count * 1000).to_string());
        document["metadata"]["generation"] = json!(1);
        Stored::new(object_kind, document)
    }

    pub(super) fn delete_claim(&mut self, id: &ObjectId) {
        delete(&mut self.change().claims, id, |_| true).unwrap();
    }

    pub(super) fn delete_pool(&mut self) {
        let mut slot: BTreeMap<(), Stored> = self.change().pool.take().map(|pool| ((), pool)).into_iter().collect();
        delete(&mut slot, &(), |_| true).unwrap();
        self.change().pool = slot.remove(&());
    }

    /// Changes an object without a precondition, as a user.
    pub(super) fn edit_pool(&mut self, change: &Value) {
        let pool = self.change().pool.take().unwrap();
        self.change().pool = changed(&pool, change);
    }

    pub(super) fn edit_claim(&mut self, id: &ObjectId, change: &Value) {
        patched(&mut self.change().claims, id, change).unwrap();
    }

    pub(super) fn edit_address(&mut self, id: &ObjectId, change: &Value) {
        patched(&mut self.change().addresses, id, change).unwrap();
    }

    pub(super) fn perform(&mut self, action: &Action) -> Result<(), Refused> {
        self.writes += 1;
        match action {
            Action::PatchPool(patch) | Action::PatchPoolStatus(patch) => {
                let pool = self.objects.pool.clone().ok_or(Refused::Absent)?;
                let change = check_version(&pool, patch.clone().into_document(), self.ignored.pool_version)?;
                self.change().pool = changed(&pool, &change);
                Ok(())
            }
            Action::PatchClaim(id, patch) | Action::PatchClaimStatus(id, patch) => {
                let claim = self.objects.claims.get(id).ok_or(Refused::Absent)?;
                let change = check_version(claim, patch.clone().into_document(), self.ignored.claim_version)?;
                patched(&mut self.change().claims, id, &change)
            }
            Action::PatchAddress(id, patch) => {
                let object = self.objects.addresses.get(id).ok_or(Refused::Absent)?;
                let change = check_version(object, patch.clone().into_document(), self.ignored.address_version)?;
                patched(&mut self.change().addresses, id, &change)
            }
            Action::DeleteAddress { address, uid, version } => {
                let any = self.ignored.address_version;
                delete(&mut self.change().addresses, address, |object| {
                    any || (object.uid() == uid && object.version() == version.as_str())
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
        let id = ObjectId::new(kind, document["metadata"]["name"].as_str().unwrap());
        let Some(existing) = self.objects.addresses.get(&id) else {
            self.address(kind, document);
            return Ok(());
        };
        let same = existing.meta("ownerReferences")[1]["uid"] == document["metadata"]["ownerReferences"][1]["uid"]
            && existing.document["spec"]["address"] == document["spec"]["address"];
        if same || self.ignored.existing_owner {
            Ok(())
        } else {
            Err(Refused::Exists)
        }
    }

    pub(super) fn pool(&self) -> IPPool {
        self.objects.pool.as_ref().unwrap().pool().clone()
    }

    pub(super) fn claim_of(&self, kind: ClaimKind, name: &str) -> Claim {
        self.objects.claims[&ObjectId::new(kind, name)].claim().clone()
    }

    /// The address of a claim, by the object in its status.
    pub(super) fn granted(&self, kind: ClaimKind, name: &str) -> Option<String> {
        let object = self.claim_of(kind, name).address_name?;
        let object = self.objects.addresses.get(&ObjectId::new(kind, &object))?;
        object.document["spec"]["address"].as_str().map(ToOwned::to_owned)
    }
}

fn check_version(stored: &Stored, mut change: Value, ignore: bool) -> Result<Value, Refused> {
    let version = change["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion")
        .unwrap();
    if ignore || version == stored.version() {
        Ok(change)
    } else {
        Err(Refused::Conflict)
    }
}

/// The changed object at the next version; `None` when its last finalizer is removed during deletion.
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
    is_expected: impl Fn(&Stored) -> bool,
) -> Result<(), Refused> {
    let stored = objects.get(id).ok_or(Refused::Absent)?;
    if !is_expected(stored) {
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

fn address_of(kind: ClaimKind, document: Value) -> (String, AddressObject) {
    let read = match kind {
        ClaimKind::Metal3 => AddressObject::of_metal3(&serde_json::from_value::<IPAddress>(document).unwrap()),
        ClaimKind::ClusterApi => {
            AddressObject::of_cluster_api(&serde_json::from_value::<cluster::IPAddress>(document).unwrap())
        }
    };
    read.unwrap()
}

/// Parsed metadata.
pub(super) fn meta_of(stored: &Stored) -> ObjectMeta {
    serde_json::from_value(stored.document["metadata"].clone()).unwrap()
}
