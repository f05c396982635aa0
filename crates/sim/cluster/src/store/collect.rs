//! The garbage collector and the namespace controller: they delete dependents of deleted owners and empty terminating
//! namespaces.
//!
//! One call is one pass. On a real cluster the pass runs some time after the write, so the caller decides when.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::object;
use super::options::{FOREGROUND, ORPHAN};
use super::request::Request;
use super::{ObjectKey, ResourceKey, Store, Stored};

impl Store {
    /// Deletes objects without a remaining owner and objects in terminating namespaces. Returns how many objects it
    /// deleted or released from an owner or a finalizer; 0 means that no work is left.
    pub(crate) fn collect(&mut self, now: DateTime<Utc>) -> usize {
        if !std::mem::take(&mut self.may_have_garbage) {
            return 0;
        }
        let mut deleted = 0;
        for (resource, key, patch) in self.released() {
            let version = self.version;
            self.patch_by_key(&resource, &key, &patch, now);
            let is_done = self.version > version;
            deleted += usize::from(is_done);
            self.may_have_garbage |= !is_done;
        }
        for (resource, key) in self.garbage() {
            let version = self.version;
            self.delete_by_key(&resource, &key, now);
            let is_done = self.version > version;
            deleted += usize::from(is_done);
            // When a hook denies the request, the object stays and the next pass retries, as the real collector does.
            self.may_have_garbage |= !is_done;
        }
        for name in self.empty_namespaces() {
            let key = (String::new(), name);
            let kind = self.kinds.get(&namespaces()).cloned();
            let last = kind
                .as_ref()
                .and_then(|kind| self.stored(kind, &key))
                .map(|last| Value::clone(last));
            if let (Some(kind), Some(last)) = (kind, last) {
                self.expunge(&kind, &key, last);
                deleted += 1;
            }
        }
        deleted
    }

    fn garbage(&self) -> Vec<(ResourceKey, ObjectKey)> {
        let terminating = self.terminating();
        let every = || {
            self.objects
                .iter()
                .flat_map(|(resource, objects)| objects.iter().map(move |entry| (resource, entry)))
        };
        // Dependents of an owner in foreground deletion are deleted before it.
        let stays = |object: &Stored| !is_waiting(object, FOREGROUND);
        let living: BTreeSet<&str> = every()
            .filter(|(_, (_, object))| stays(object))
            .map(|(_, (_, object))| object::text(object, "uid"))
            .collect();
        every()
            .filter(|(_, (key, object))| {
                !object::deleting(object) && (terminating.contains(&key.0) || is_orphan(object, &living))
            })
            .map(|(resource, (key, _))| (resource.clone(), key.clone()))
            .collect()
    }

    /// Changes that finish deletions: dependents lose an owner that orphans them, and owners whose dependents are done lose the
    /// finalizer.
    fn released(&self) -> Vec<(ResourceKey, ObjectKey, Value)> {
        let every = || {
            self.objects
                .iter()
                .flat_map(|(resource, objects)| objects.iter().map(move |entry| (resource, entry)))
        };
        let living: BTreeSet<&str> = every()
            .filter(|(_, (_, object))| !is_waiting(object, FOREGROUND))
            .map(|(_, (_, object))| object::text(object, "uid"))
            .collect();
        let mut patches = Vec::new();
        for (resource, (key, owner)) in every() {
            let finalizer = match (is_waiting(owner, ORPHAN), is_waiting(owner, FOREGROUND)) {
                (true, _) => ORPHAN,
                (_, true) => FOREGROUND,
                _ => continue,
            };
            let uid = object::text(owner, "uid");
            let dependents = every().filter(|(_, (_, object))| owners(object).any(|owner| refers(owner, uid)));
            let mut is_done = true;
            for (resource, (key, dependent)) in dependents {
                let has_other = || owners(dependent).any(|other| lives(other, &living) && !refers(other, uid));
                if finalizer == ORPHAN || has_other() {
                    // Another pass: a hook may deny it, and another owner may release the same object.
                    is_done = false;
                    let kept: Vec<&Value> = owners(dependent).filter(|owner| !refers(owner, uid)).collect();
                    let patch = json!({"metadata": {"ownerReferences": kept}});
                    patches.push((resource.clone(), key.clone(), patch));
                } else {
                    let blocks = |owner: &Value| owner.get("blockOwnerDeletion") == Some(&Value::Bool(true));
                    is_done &= !owners(dependent).any(|owner| refers(owner, uid) && blocks(owner));
                }
            }
            if is_done {
                let mut names = object::finalizers(owner);
                names.retain(|name| name != finalizer);
                let patch = json!({"metadata": {"finalizers": names}});
                patches.push((resource.clone(), key.clone(), patch));
            }
        }
        patches
    }

    fn namespaces(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects
            .get(&namespaces())
            .into_iter()
            .flat_map(|objects| objects.values())
    }

    fn terminating(&self) -> BTreeSet<String> {
        let terminating = self.namespaces().filter(|namespace| object::deleting(namespace));
        terminating
            .map(|namespace| object::text(namespace, "name").to_owned())
            .collect()
    }

    fn empty_namespaces(&self) -> Vec<String> {
        let used: BTreeSet<&String> = self
            .objects
            .values()
            .flat_map(|objects| objects.keys().map(|key| &key.0))
            .collect();
        self.terminating()
            .into_iter()
            .filter(|name| !used.contains(name))
            .collect()
    }

    fn delete_by_key(&mut self, resource: &ResourceKey, key: &ObjectKey, now: DateTime<Utc>) {
        self.send("DELETE", (resource, key), Vec::new(), now);
    }

    fn patch_by_key(&mut self, resource: &ResourceKey, key: &ObjectKey, patch: &Value, now: DateTime<Utc>) {
        self.send("PATCH", (resource, key), patch.to_string().into_bytes(), now);
    }

    fn send(&mut self, method: &str, (resource, key): (&ResourceKey, &ObjectKey), body: Vec<u8>, now: DateTime<Utc>) {
        let Some(kind) = self.kinds.get(resource) else { return };
        let root = match kind.versions.first() {
            Some(version) if kind.group.is_empty() => format!("/api/{}", version.name),
            Some(version) => format!("/apis/{}/{}", kind.group, version.name),
            None => return,
        };
        let path = if key.0.is_empty() {
            format!("{root}/{}/{}", kind.plural, key.1)
        } else {
            format!("{root}/namespaces/{}/{}/{}", key.0, kind.plural, key.1)
        };
        let request = Request {
            method: method.into(),
            path,
            content_type: "application/merge-patch+json".into(),
            user: "system:serviceaccount:kube-system:generic-garbage-collector".into(),
            body,
            ..Request::default()
        };
        drop(self.handle(&request, now));
    }
}

/// Whether a write can leave work for the collector: an object is created, removed or begins to be deleted, or its owners
/// change. Most writes do not, and a pass looks at all objects.
pub(super) fn is_reason(old: Option<&Stored>, new: &Stored, deleted: bool) -> bool {
    let Some(old) = old.filter(|_| !deleted) else {
        return true;
    };
    let owners = |object| object::member(object, "ownerReferences");
    let finalizers = object::deleting(new) && object::finalizers(old) != object::finalizers(new);
    finalizers || object::deleting(old) != object::deleting(new) || owners(old) != owners(new)
}

/// Whether an object is being deleted and the collector has to handle its dependents before.
fn is_waiting(object: &Value, finalizer: &str) -> bool {
    object::deleting(object) && object::finalizers(object).iter().any(|name| name == finalizer)
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let list = object::member(object, "ownerReferences").and_then(Value::as_array);
    list.into_iter().flatten()
}

fn refers(owner: &Value, uid: &str) -> bool {
    owner.get("uid").and_then(Value::as_str) == Some(uid)
}

fn lives(owner: &Value, living: &BTreeSet<&str>) -> bool {
    let uid = owner.get("uid").and_then(Value::as_str);
    uid.is_some_and(|uid| living.contains(uid))
}

fn namespaces() -> ResourceKey {
    (String::new(), "namespaces".to_owned())
}

/// Whether an object has owner references and none of the owners exists.
fn is_orphan(object: &Value, living: &BTreeSet<&str>) -> bool {
    let Some(Value::Array(owners)) = object::member(object, "ownerReferences") else {
        return false;
    };
    let uids = || {
        owners
            .iter()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
    };
    uids().next().is_some() && uids().all(|uid| !living.contains(uid))
}
