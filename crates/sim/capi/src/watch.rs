//! One watch of one kind, as news.

use std::time::Duration;

use futures::StreamExt as _;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use metal3_runtime::hub::Key;
use tokio::sync::mpsc::UnboundedSender;

use crate::kinds::Kind;
use crate::view::Object;

/// Between attempts to reach a server that does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// What a watch tells.
#[derive(Debug)]
pub enum News {
    /// An object as it is now.
    Seen(Object),
    /// An object is gone; as it was at last.
    Gone(Object),
    /// These are all there are.
    Listed(Vec<Key>),
}

/// Follows every object of a kind until nobody listens.
pub async fn follow<T>(
    client: kube::Client,
    kind: Kind,
    label: Option<&'static str>,
    to: UnboundedSender<T>,
    say: impl Fn(News) -> T,
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
        let news = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed.push(key(&object));
                object_of(object).map(News::Seen)
            }
            Ok(Event::InitDone) => Some(News::Listed(std::mem::take(&mut listed))),
            Ok(Event::Apply(object)) => object_of(object).map(News::Seen),
            Ok(Event::Delete(object)) => object_of(object).map(News::Gone),
            Err(error) => {
                tracing::debug!(kind = kind.kind, "watch: {error}");
                tokio::time::sleep(RETRY).await;
                None
            }
        };
        if news.is_some_and(|news| to.send(say(news)).is_err()) {
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
