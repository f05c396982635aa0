//! The server as a state machine: it takes a request and the time, returns an answer and appends to the log.
//!
//! Every write gets the next resource version and exactly one entry in the log, so versions compare across all
//! resources, and any state that is still in the log can be shown again: that is what paging, exact lists, watches
//! and stale reads need. No I/O, no clock, no tasks; names and uids follow from the seed.

mod admission;
mod aggregated;
mod apply;
mod builtin;
mod collect;
mod create;
mod definitions;
mod delete;
mod discovery;
mod golang;
mod grouping;
mod kind;
mod managed_fields;
mod metadata;
mod names;
mod object;
mod openapi;
mod options;
mod owners;
mod patch;
mod read;
mod refusal;
mod represent;
mod request;
mod review;
mod roles;
mod route;
mod scale;
mod selector;
mod strategic;
mod update;
mod user;
mod watch;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_sim_faults::Random;
use serde_json::Value;

pub use admission::{Admission, Denial, Operation};
pub use admission::{Convert, Mutate, Validate};
pub(crate) use aggregated::MEDIA_TYPE as GROUPS_MEDIA_TYPE;
pub use builtin::TAKEN_AS_GIVEN;
pub use owners::{Access, May};
pub use refusal::Refusal;
pub use request::{Request, Target, Verb};
pub use user::Identity;
pub(crate) use watch::{Next, Watch};

use admission::Hooks;
use kind::Kind;
use managed_fields::{StoredManagers, TextPool};
use owners::OwnerPermissions;

/// Group and plural.
pub(crate) type ResourceKey = (String, String);
/// Namespace and name.
type ObjectKey = (String, String);
type Objects = BTreeMap<ObjectKey, Arc<Stored>>;

/// A stored object: the document and, apart from it, the managed fields that responses add.
#[derive(Debug)]
pub(crate) struct Stored {
    document: Value,
    managers: StoredManagers,
}

impl Deref for Stored {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.document
    }
}

/// A successful answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A document.
    Document {
        code: u16,
        body: Value,
        warnings: Vec<String>,
    },
    /// All groups in one document.
    Groups(Value),
    /// Plain text.
    Text(&'static str),
    /// A stream of events.
    Watch(Box<Watch>),
}

impl Answer {
    fn ok(body: Value) -> Self {
        Self::Document {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }
}

/// One write. `old` is `None` for a create.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) resource: ResourceKey,
    pub(crate) key: ObjectKey,
    pub(crate) old: Option<Arc<Stored>>,
    /// The new object; for a delete the last state, with the version of the deletion.
    pub(crate) new: Arc<Stored>,
    pub(crate) deleted: bool,
}

/// All objects, their kinds and the log of writes.
#[derive(Clone)]
pub(crate) struct Store {
    kinds: BTreeMap<ResourceKey, Arc<Kind>>,
    objects: BTreeMap<ResourceKey, Objects>,
    log: VecDeque<Entry>,
    /// The newest write.
    version: u64,
    /// Entries kept in the log.
    history: usize,
    random: Random,
    hooks: Hooks,
    owner_permissions: OwnerPermissions,
    texts: TextPool,
    /// Whether a write since the last pass of the garbage collector may have left work for it.
    may_have_garbage: bool,
}

impl Store {
    /// A server with the built-in kinds and the namespaces every cluster has.
    pub(crate) fn new(seed: u64, history: usize, now: DateTime<Utc>) -> Self {
        let kinds = builtin::built_in().into_iter();
        let mut store = Self {
            kinds: kinds.map(|kind| (resource_key(&kind), Arc::new(kind))).collect(),
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            version: 1,
            history,
            random: Random::seeded(seed),
            hooks: Hooks::default(),
            owner_permissions: OwnerPermissions::default(),
            texts: TextPool::default(),
            may_have_garbage: true,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let request = Request {
                method: "POST".into(),
                path: "/api/v1/namespaces".into(),
                body: body.to_string().into_bytes(),
                ..Request::default()
            };
            // The store is empty and the body is well-formed, so the request succeeds.
            drop(store.handle(&request, now));
        }
        // As on a real server, version 1 is compacted before the first client connects.
        store.compact();
        store
    }

    pub(crate) fn hooks(&mut self) -> &mut Hooks {
        &mut self.hooks
    }

    pub(crate) fn owner_permissions(&mut self) -> &mut OwnerPermissions {
        &mut self.owner_permissions
    }

    /// Restarts the generator of uids and generated names.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.random = Random::seeded(seed);
    }

    /// The version of the newest write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version that the log can reconstruct.
    pub(crate) fn oldest(&self) -> u64 {
        self.log
            .front()
            .map_or(self.version, |entry| entry.version.saturating_sub(1))
    }

    /// Drops the history, as etcd compaction does every few minutes.
    pub(crate) fn compact(&mut self) {
        self.log.clear();
    }

    /// Entries after a version, oldest first.
    pub(crate) fn since(&self, version: u64) -> impl Iterator<Item = &Entry> {
        let skipped = version.saturating_sub(self.oldest());
        self.log.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }

    fn stored(&self, kind: &Kind, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(&resource_key(kind))?.get(key)
    }

    /// The objects of a kind at a version that the log can reconstruct.
    fn objects_at(&self, kind: &Kind, version: u64) -> Objects {
        let resource = resource_key(kind);
        let mut objects = self.objects.get(&resource).cloned().unwrap_or_default();
        for entry in self.log.iter().rev().take_while(|entry| entry.version > version) {
            if entry.resource == resource {
                match &entry.old {
                    Some(old) => drop(objects.insert(entry.key.clone(), Arc::clone(old))),
                    None => drop(objects.remove(&entry.key)),
                }
            }
        }
        objects
    }

    /// Stores an object under the next version; its field managers stay.
    fn commit(&mut self, kind: &Kind, key: &ObjectKey, object: Value) -> Arc<Stored> {
        let stored_managers = self.stored_managers(kind, key);
        self.commit_with_managers(kind, key, object, stored_managers)
    }

    fn stored_managers(&self, kind: &Kind, key: &ObjectKey) -> StoredManagers {
        let stored = self.stored(kind, key);
        stored.map(|stored| stored.managers.clone()).unwrap_or_default()
    }

    /// Stores an object and its field managers under the next version.
    fn commit_with_managers(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        object: Value,
        stored_managers: StoredManagers,
    ) -> Arc<Stored> {
        self.write(kind, key, (object, stored_managers), false)
    }

    /// Removes an object under the next version. `last` is its final state.
    fn expunge(&mut self, kind: &Kind, key: &ObjectKey, last: Value) {
        let stored_managers = self.stored_managers(kind, key);
        self.write(kind, key, (last, stored_managers), true);
        self.after_write(kind, key);
    }

    fn write(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        (mut document, managers): (Value, StoredManagers),
        deleted: bool,
    ) -> Arc<Stored> {
        self.version = self.version.saturating_add(1);
        object::set(&mut document, "resourceVersion", self.version.to_string());
        let new = Arc::new(Stored { document, managers });
        let resource = resource_key(kind);
        let objects = self.objects.entry(resource.clone()).or_default();
        let old = if deleted {
            objects.remove(key)
        } else {
            objects.insert(key.clone(), Arc::clone(&new))
        };
        self.may_have_garbage |= collect::is_reason(old.as_deref(), &new, deleted);
        self.log.push_back(Entry {
            version: self.version,
            resource,
            key: key.clone(),
            old,
            new: Arc::clone(&new),
            deleted,
        });
        while self.log.len() > self.history {
            self.log.pop_front();
        }
        new
    }

    /// Converts a stored object to a version and adds its managed fields.
    fn shown(&self, kind: &Kind, stored: &Stored, version: &str) -> Result<Value, Refusal> {
        let mut object = self.hooks.converted(kind, stored, version)?;
        stored.managers.show(&mut object);
        Ok(object)
    }

    /// An object as it is stored: in the storage version, with that version's defaults.
    fn to_storage(&self, kind: &Kind, object: &Value) -> Result<Value, Refusal> {
        let mut stored = self.hooks.converted(kind, object, &kind.storage)?;
        if let Some(schema) = kind.version(&kind.storage).and_then(|version| version.schema.as_ref()) {
            metadata::with_separate_metadata(&mut stored, |stored| schema.default(stored));
        }
        Ok(stored)
    }
}

fn resource_key(kind: &Kind) -> ResourceKey {
    (kind.group.clone(), kind.plural.clone())
}
