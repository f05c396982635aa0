//! What an answer carries besides our own change, and what it says of an object's end.

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

/// A cache that shows `object`, and a pass over its key.
async fn shown(object: &ConfigMap) -> (SharedCache<ConfigMap>, Queue<Key>, WorkItem<Key>) {
    let cache = SharedCache::<ConfigMap>::default();
    let version = Identity::of(object).unwrap().version;
    cache.listed(vec![Item::Object(object.clone())], version).unwrap();
    let queue = Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)));
    cache.enqueue_changes(&queue, |change| change.key());
    let pass = queue.take().await.unwrap();
    (cache, queue, pass)
}

async fn woken(queue: &Queue<Key>) -> bool {
    timeout(Duration::from_secs(1), queue.take()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_found_its_change_made_wakes_its_author_for_what_came_with_it() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("them"), "default");
    // What they write, what we write, and whether there is news in the answer.
    for (name, theirs, news) in [
        ("alone", None, false),
        ("more", Some(json!({"data": {"ours": "1", "theirs": "1"}})), true),
        ("nothing-else", Some(json!({"data": {"ours": "1"}})), false),
    ] {
        let made = api.create(&PostParams::default(), &config_map(name)).await.unwrap();
        let (cache, queue, pass) = shown(&made).await;
        if let Some(theirs) = theirs {
            let theirs = Patch::Merge(theirs);
            api.patch(name, &PatchParams::default(), &theirs).await.unwrap();
        }
        let ours = patch(&json!({"data": {"ours": "1"}}));
        let written = writer
            .for_key(pass.request_source())
            .patch(&cache, &key(name), ours)
            .await;
        let answer = written.unwrap().object().unwrap();
        pass.finish(Outcome::Done);
        cache.observed(Item::Object(answer)).unwrap();
        assert_eq!(woken(&queue).await, news, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_a_version_that_is_shown_already_is_no_news() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("them"), "default");
    let mut object = config_map("a");
    object.data = Some([("ours".to_owned(), "1".to_owned())].into());
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    let (cache, queue, pass) = shown(&made).await;
    let same = patch(&json!({"data": {"ours": "1"}}));
    let written = writer
        .for_key(pass.request_source())
        .patch(&cache, &key("a"), same)
        .await;
    assert_eq!(
        written.unwrap().object().unwrap().metadata.resource_version,
        made.metadata.resource_version
    );
    pass.finish(Outcome::Done);
    assert!(!woken(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_still_being_emptied_is_not_gone() {
    let (cluster, writer) = start(Mode::Perform);
    let api: Api<Namespace> = Api::all(cluster.client("them"));
    let mut tenant = Namespace {
        metadata: ObjectMeta {
            name: Some("tenant".to_owned()),
            finalizers: Some(vec!["example.com/ours".to_owned()]),
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
