//! The difference of two versions of one object, split for the API server.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::version::ResourceVersion;

use super::merge::diff;

/// Fields that the server writes or that identify the object: never part of a patch.
const SERVER_FIELDS: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A merge patch, ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct MergePatch {
    members: Map<String, Value>,
    replaces_list: bool,
}

impl MergePatch {
    /// A patch for a document with the content `before`.
    pub(super) fn new(members: Map<String, Value>, before: &Value) -> Self {
        let touched = |(name, change): (&String, &Value)| touches_list(change, before.get(name));
        Self {
            replaces_list: members.iter().any(touched),
            members,
        }
    }

    /// The same patch, rejected by the server unless the object is still at `version`.
    #[must_use]
    pub fn with_precondition(mut self, version: &ResourceVersion) -> Self {
        let metadata = self.members.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("resourceVersion".to_owned(), version.as_str().into());
        }
        self
    }

    /// Whether it replaces or removes a list. Without a precondition it would undo concurrent changes of the list.
    #[must_use]
    pub const fn replaces_list(&self) -> bool {
        self.replaces_list
    }

    /// The document to send.
    #[must_use]
    pub fn into_document(self) -> Value {
        Value::Object(self.members)
    }
}

/// Shows the changed fields, never their values: an object may contain a secret.
impl fmt::Debug for MergePatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = |members: &Map<String, Value>| members.keys().cloned().collect::<Vec<_>>();
        let paths = self.members.iter().map(|(name, change)| match change {
            Value::Object(inner) => format!("{name}.{:?}", members(inner)),
            _ => name.clone(),
        });
        f.write_str("MergePatch")?;
        f.debug_list().entries(paths).finish()
    }
}

/// The writes of one reconcile to an object, in this order: spec and metadata, then the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Everything but the status.
    pub main: Option<MergePatch>,
    /// For the status subresource. Its precondition is the version that the write of `main` returned.
    pub status: Option<MergePatch>,
}

impl Changes {
    /// The difference from `before` to `after`, two documents of one object.
    #[must_use]
    pub fn between(before: &Value, after: &Value) -> Self {
        let Some(Value::Object(mut main)) = diff(before, after) else {
            return Self {
                main: None,
                status: None,
            };
        };
        let status = main.remove("status").map(|status| {
            let patch = Map::from_iter([("status".to_owned(), status)]);
            MergePatch::new(patch, before)
        });
        main.remove("apiVersion");
        main.remove("kind");
        if let Some(Value::Object(mut metadata)) = main.remove("metadata") {
            metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
            if !metadata.is_empty() {
                main.insert("metadata".to_owned(), Value::Object(metadata));
            }
        }
        Self {
            main: (!main.is_empty()).then(|| MergePatch::new(main, before)),
            status,
        }
    }

    /// The same as [`Changes::between`] for two versions of one object of which only the status may differ. `None` is a status that
    /// is not written. Without the documents of whole objects, which take most of the time of a comparison.
    #[must_use]
    pub fn of_status(before: Option<Value>, after: Option<Value>) -> Self {
        let document = |status: Option<Value>| {
            Value::Object(status.map(|status| ("status".to_owned(), status)).into_iter().collect())
        };
        Self::between(&document(before), &document(after))
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.main.is_none() && self.status.is_none()
    }
}

/// Whether `change` writes a list, or replaces a value `before` that contains one.
fn touches_list(change: &Value, before: Option<&Value>) -> bool {
    match change {
        Value::Array(_) => true,
        Value::Object(members) => members
            .iter()
            .any(|(name, change)| touches_list(change, before.and_then(|before| before.get(name)))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => before.is_some_and(holds_list),
    }
}

fn holds_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(holds_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Value {
        json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {"name": "n1", "resourceVersion": "7", "generation": 2, "labels": {"a": "1"}},
            "spec": {"online": true, "unknownToUs": {"x": 1}},
            "status": {"poweredOn": false},
        })
    }

    fn changes(change: impl FnOnce(&mut Value)) -> Changes {
        let mut after = host();
        change(&mut after);
        Changes::between(&host(), &after)
    }

    #[test]
    fn status_alone_gives_the_same_patch_as_whole_documents() {
        for status in [
            json!({"poweredOn": true}),
            json!({"poweredOn": false}),
            json!({"list": [1]}),
            Value::Null,
        ] {
            let mut after = host();
            match status.clone() {
                Value::Null => after.as_object_mut().map(|after| after.remove("status")),
                status => after
                    .as_object_mut()
                    .map(|after| after.insert("status".to_owned(), status)),
            };
            let status = Some(status).filter(|status| !status.is_null());
            let alone = Changes::of_status(host().get("status").cloned(), status);
            assert_eq!(alone, Changes::between(&host(), &after));
            let back = Changes::of_status(after.get("status").cloned(), host().get("status").cloned());
            assert_eq!(back, Changes::between(&after, &host()));
        }
    }

    fn documents(changes: Changes) -> (Option<Value>, Option<Value>) {
        (
            changes.main.map(MergePatch::into_document),
            changes.status.map(MergePatch::into_document),
        )
    }

    #[test]
    fn nothing_changed_means_nothing_to_write() {
        assert!(changes(|_| ()).is_empty());
    }

    #[test]
    fn status_goes_apart_from_the_rest() {
        let found = changes(|host| {
            host["metadata"]["labels"]["b"] = json!("2");
            host["spec"]["online"] = json!(false);
            host["status"]["poweredOn"] = json!(true);
        });
        let main = json!({"metadata": {"labels": {"b": "2"}}, "spec": {"online": false}});
        let status = json!({"status": {"poweredOn": true}});
        assert_eq!(documents(found), (Some(main), Some(status)));
    }

    #[test]
    fn what_the_server_owns_is_never_sent() {
        let found = changes(|host| {
            host["metadata"]["resourceVersion"] = json!("8");
            host["metadata"]["generation"] = json!(3);
            host["metadata"]["managedFields"] = json!([{}]);
            host["kind"] = json!("Other");
        });
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn status_that_vanishes_is_removed() {
        let found = changes(|host| {
            host.as_object_mut().unwrap().remove("status");
        });
        assert_eq!(documents(found), (None, Some(json!({"status": null}))));
    }

    #[test]
    fn precondition_joins_what_the_patch_says_already() {
        let version = ResourceVersion::parse("7").unwrap();
        let labelled = changes(|host| host["metadata"]["labels"]["a"] = json!("2"));
        let guarded = labelled.main.unwrap().with_precondition(&version).into_document();
        assert_eq!(
            guarded,
            json!({"metadata": {"labels": {"a": "2"}, "resourceVersion": "7"}})
        );
        let status = changes(|host| host["status"]["poweredOn"] = json!(true)).status;
        let guarded = status.unwrap().with_precondition(&version).into_document();
        assert_eq!(
            guarded,
            json!({"metadata": {"resourceVersion": "7"}, "status": {"poweredOn": true}})
        );
    }

    #[test]
    fn patch_knows_whether_it_replaces_a_list() {
        let list = changes(|host| host["status"]["conditions"] = json!([]));
        assert!(list.status.unwrap().replaces_list());
        let plain = changes(|host| host["status"]["poweredOn"] = json!(true));
        assert!(!plain.status.unwrap().replaces_list());
    }

    #[test]
    fn patch_that_takes_a_list_away_counts_as_one_that_replaces_it() {
        let mut before = host();
        before["status"]["conditions"] = json!([{"type": "Theirs"}]);
        for emptied in [json!({"poweredOn": false}), json!(null), json!("text")] {
            let mut after = before.clone();
            after["status"] = emptied;
            let patch = Changes::between(&before, &after).status.unwrap();
            assert!(patch.replaces_list(), "{:?}", patch.into_document());
        }
    }

    #[test]
    fn debug_output_names_members_and_hides_values() {
        let found = changes(|host| host["spec"]["password"] = json!("hunter2"));
        let shown = format!("{found:?}");
        assert!(shown.contains("password") && !shown.contains("hunter2"), "{shown}");
    }
}
