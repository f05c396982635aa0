//! One watch of one kind as a stream of events.

use std::time::Duration;

use futures::StreamExt as _;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use metal3_runtime::cache::Key;
use tokio::sync::mpsc::UnboundedSender;

use crate::kinds::Kind;
use crate::view::Object;

/// Pause between attempts to reach an API server.
const RETRY: Duration = Duration::from_secs(1);

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// The current state of an object.
    Applied(Object),
    /// The last state of a deleted object.
    Deleted(Object),
    /// Keys of all existing objects.
    Listed(Vec<Key>),
}

/// Forwards the events of a kind until the receiver is dropped.
pub async fn follow<T>(
    client: kube::Client,
    kind: Kind,
    label: Option<&'static str>,
    to: UnboundedSender<T>,
    wrap: impl Fn(WatchEvent) -> T,
) {
    let names = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&names, kind.plural);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let config = match label {
        Some(label) => watcher::Config::default().labels(label),
        None => watcher::Config::default(),
    };
    let mut events = watcher::watcher(api, config).boxed();
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let mapped = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed.push(key(&object));
                object_of(object).map(WatchEvent::Applied)
            }
            Ok(Event::InitDone) => Some(WatchEvent::Listed(std::mem::take(&mut listed))),
            Ok(Event::Apply(object)) => object_of(object).map(WatchEvent::Applied),
            Ok(Event::Delete(object)) => object_of(object).map(WatchEvent::Deleted),
            Err(error) => {
                tracing::debug!(kind = kind.kind, "watch: {error}");
                tokio::time::sleep(RETRY).await;
                None
            }
        };
        if mapped.is_some_and(|event| to.send(wrap(event)).is_err()) {
            return;
        }
    }
}

fn key(object: &DynamicObject) -> Key {
    Key {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

fn object_of(object: DynamicObject) -> Option<Object> {
    serde_json::to_value(object).ok().map(Object)
}
