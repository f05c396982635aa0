//! Foreign changes and deletions in the response to a write.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::ObjectMeta;
use serde_json::json;
use tokio::time::timeout;

use super::{config_map, key, patch, start};
use crate::cache::{Identity, Item, Key, SharedCache};
use crate::clock::TimerClock;
use crate::plan::Observed;
use crate::queue::{Outcome, Queue, WorkItem};
use crate::write::{Mode, Written};

/// A cache that contains `object`, and a work item of its key.
async fn shown(object: &ConfigMap) -> (SharedCache<ConfigMap>, Queue<Key>, WorkItem<Key>) {
    let cache = SharedCache::<ConfigMap>::default();
    let version = Identity::of(object).unwrap().version;
    cache.listed(vec![Item::Object(object.clone())], version).unwrap();
    let queue = Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)));
    cache.enqueue_changes(&queue, |change| change.key());
    let item = queue.take().await.unwrap();
    (cache, queue, item)
}

async fn is_enqueued(queue: &Queue<Key>) -> bool {
    timeout(Duration::from_secs(1), queue.take()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_patch_without_effect_enqueues_its_source_for_changes_of_other_clients() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("them"), "default");
    // Name, the foreign write, and whether the response contains a foreign change.
    for (name, foreign, expected) in [
        ("alone", None, false),
        ("more", Some(json!({"data": {"own": "1", "foreign": "1"}})), true),
        ("nothing-else", Some(json!({"data": {"own": "1"}})), false),
    ] {
        let made = api.create(&PostParams::default(), &config_map(name)).await.unwrap();
        let (cache, queue, item) = shown(&made).await;
        if let Some(foreign) = foreign {
            let foreign = Patch::Merge(foreign);
            api.patch(name, &PatchParams::default(), &foreign).await.unwrap();
        }
        let own = patch(&json!({"data": {"own": "1"}}));
        let written = writer
            .for_key(item.request_source())
            .patch(&cache, &key(name), own)
            .await;
        let answer = written.unwrap().object().unwrap();
        item.finish(Outcome::Done);
        cache.observed(Item::Object(answer)).unwrap();
        assert_eq!(is_enqueued(&queue).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_an_already_cached_version_enqueues_no_key() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("them"), "default");
    let mut object = config_map("a");
    object.data = Some([("own".to_owned(), "1".to_owned())].into());
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    let (cache, queue, item) = shown(&made).await;
    let same = patch(&json!({"data": {"own": "1"}}));
    let written = writer
        .for_key(item.request_source())
        .patch(&cache, &key("a"), same)
        .await;
    assert_eq!(
        written.unwrap().object().unwrap().metadata.resource_version,
        made.metadata.resource_version
    );
    item.finish(Outcome::Done);
    assert!(!is_enqueued(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_still_being_emptied_is_not_deleted() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<Namespace> = Api::all(cluster.client("them"));
    let mut tenant = Namespace {
        metadata: ObjectMeta {
            name: Some("tenant".to_owned()),
            finalizers: Some(vec!["example.com/own".to_owned()]),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    tenant.spec.get_or_insert_default().finalizers = Some(vec!["kubernetes".to_owned()]);
    api.create(&PostParams::default(), &tenant).await.unwrap();
    api.delete("tenant", &DeleteParams::default()).await.unwrap();
    let cache = SharedCache::<Namespace>::default();
    let name = Key {
        namespace: String::new(),
        name: "tenant".to_owned(),
    };
    let last = patch(&json!({"metadata": {"finalizers": null}}));
    let written = writer.patch(&cache, &name, last).await.unwrap();
    assert!(matches!(written, Written::Object(_)), "{written:?}");
    assert!(matches!(cache.find(&name), Observed::Present(_)));
}
