//! Watches: the events that a client receives for the entries of the log.
//!
//! Pure: `next` returns `Nothing` when there is no event yet; `stream` waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::kind::Kind;
use super::object;
use super::options::{timeout, watch_start};
use super::refusal::Refusal;
use super::represent::{Form, item_form, shaped};
use super::request::Call;
use super::selector::Selector;
use super::{Answer, Entry, Store, Stored};

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watch {
    kind: Arc<Kind>,
    version: String,
    namespace: String,
    selector: Selector,
    form: Form,
    /// The version up to which events were returned.
    cursor: u64,
    first: VecDeque<Value>,
    /// An object could not be converted: as on the real server, no more events follow.
    stuck: bool,
    pub(crate) bookmarks: bool,
    /// The timeout that the client set.
    pub(crate) timeout: Option<Duration>,
}

/// The next event of a watch.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Value),
    /// The last event of the stream.
    Last(Value),
    Nothing,
}

impl Store {
    pub(super) fn watch(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let request = call.request;
        let start = watch_start(request)?;
        let seconds = timeout(request)?;
        let mut watch = Watch {
            kind: Arc::clone(&call.kind),
            version: call.target.version.clone(),
            namespace: call.target.namespace.clone(),
            selector: Selector::of(call)?,
            form: item_form(call)?,
            cursor: start.after.unwrap_or(self.version),
            first: VecDeque::new(),
            stuck: false,
            bookmarks: request.flag("allowWatchBookmarks"),
            timeout: seconds.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or_default())),
        };
        if seconds.is_some_and(|seconds| seconds < 0) {
            let over = Refusal {
                reason: "InternalError",
                ..Refusal::internal("context deadline exceeded")
            };
            watch.first.push_back(event("ERROR", over.status()));
            return Ok(Answer::Watch(Box::new(watch)));
        }
        if start.initial {
            watch.cursor = self.version;
            for stored in self.selected(call, self.version)?.values() {
                let object = self.shown(&call.kind, stored, &call.target.version);
                let object = object.map_err(|refusal| refusal.uncached(&call.kind, &call.target.version))?;
                watch.first.push_back(event("ADDED", shaped(watch.form, object)));
            }
        }
        if start.marked {
            watch.first.push_back(watch.bookmark(true));
        }
        Ok(Answer::Watch(Box::new(watch)))
    }

    /// The next event of a watch.
    pub(crate) fn next(&self, watch: &mut Watch) -> Next {
        if let Some(event) = watch.first.pop_front() {
            return Next::Event(event);
        }
        if watch.stuck {
            return Next::Nothing;
        }
        if watch.cursor < self.oldest() {
            let message = format!("too old resource version: {} ({})", watch.cursor, self.oldest());
            return Next::Last(event("ERROR", Refusal::expired(message).status()));
        }
        for entry in self.since(watch.cursor) {
            watch.cursor = entry.version;
            match self.event_for(watch, entry) {
                Ok(Some(event)) => return Next::Event(event),
                Ok(None) => {}
                Err(_) => {
                    watch.stuck = true;
                    return Next::Nothing;
                }
            }
        }
        Next::Nothing
    }

    /// The event for a write. An object that no longer matches the selector is reported as deleted.
    fn event_for(&self, watch: &Watch, entry: &Entry) -> Result<Option<Value>, Refusal> {
        let other_namespace = !watch.namespace.is_empty() && watch.namespace != entry.key.0;
        let (group, plural) = &entry.resource;
        if other_namespace || *plural != watch.kind.plural || *group != watch.kind.group {
            return Ok(None);
        }
        let before = entry.old.as_ref().filter(|old| watch.selector.matches(old));
        let after = Some(&entry.new).filter(|new| !entry.deleted && watch.selector.matches(new));
        let (event_type, stored): (_, &Stored) = match (before, after) {
            (None, None) => return Ok(None),
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(_), None) if entry.deleted => ("DELETED", &entry.new),
            (Some(old), None) => ("DELETED", old),
        };
        let mut object = self.shown(&watch.kind, stored, &watch.version)?;
        object::set(&mut object, "resourceVersion", entry.version.to_string());
        Ok(Some(event(event_type, shaped(watch.form, object))))
    }
}

impl Watch {
    /// A bookmark event with the current version.
    pub(crate) fn bookmark(&self, end_of_initial: bool) -> Value {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string()});
        if end_of_initial {
            object::as_map(&mut metadata).insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
        }
        let object = json!({
            "apiVersion": self.kind.api_version(&self.version), "kind": self.kind.kind, "metadata": metadata,
        });
        event("BOOKMARK", shaped(self.form, object))
    }
}

fn event(event_type: &str, object: Value) -> Value {
    json!({"type": event_type, "object": object})
}
