//! Contents of a cache, and the number of requests. The tests run on a simulated server and on a real one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::metadata::PartialObjectMeta;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::SharedCache;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{PAGE_SIZE, Scope, Watch};
use serde::Deserialize;

use crate::setup::{Reading, any_server, config_map, record_changes, shown, stored};

#[tokio::test(start_paused = true)]
async fn long_list_comes_in_pages_and_counts_as_a_whole() {
    let env = any_server().await;
    let many = 2 * PAGE_SIZE + 1;
    for number in 0..many {
        env.create(&format!("c{number:04}")).await;
    }
    let cache = SharedCache::<ConfigMap>::default();
    let changes = record_changes(&cache);
    let health = env.fill(&cache, env.scope());
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&env).await);
    assert_eq!(env.request_counts().0, 3);
    assert_eq!(health.stats().lists, 1);
    let changes = changes.lock().clone();
    let last = usize::try_from(many).unwrap();
    assert_eq!(changes.iter().position(|text| text == "synced"), Some(last));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn short_lived_objects_are_delivered_as_applied_and_deleted() {
    let env = any_server().await;
    let cache = SharedCache::<ConfigMap>::default();
    let changes = record_changes(&cache);
    env.fill(&cache, env.scope());
    cache.synced().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for round in 0..40 {
        env.create("brief").await;
        env.delete("brief").await;
        env.create(&format!("stays{round}")).await;
    }
    let real = stored(&env).await;
    env.until(|| shown(&cache) == real).await;
    let changes = changes.lock().clone();
    let count = |wanted: &str| changes.iter().filter(|text| *text == wanted).count();
    assert_eq!((count("brief added"), count("brief deleted")), (40, 40));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_that_leaves_the_selection_is_deleted_from_the_cache() {
    let env = any_server().await;
    let elsewhere = env.elsewhere();
    for api in [&env.api, &elsewhere] {
        for (name, label) in [("in", "yes"), ("out", "no")] {
            let object = config_map(name, [("wanted", label)]);
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }
    let (labelled, named) = (SharedCache::<ConfigMap>::default(), SharedCache::<ConfigMap>::default());
    env.fill(&labelled, env.scope().labels("wanted=yes"));
    env.fill(&named, Scope::everywhere().fields("metadata.name=out"));
    labelled.synced().await;
    named.synced().await;
    assert_eq!(shown(&labelled).into_keys().collect::<Vec<_>>(), ["in"]);
    assert_eq!(named.read(|cache| cache.objects().count()), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let leave = Patch::Merge(serde_json::json!({"metadata": {"labels": {"wanted": "no"}}}));
    env.api.patch("in", &PatchParams::default(), &leave).await.unwrap();
    env.until(|| labelled.find(&env.key("in")) == Observed::Absent).await;
    env.stop().await;
}

/// A config map whose values are decoded as numbers.
#[derive(Debug, Clone, Default, Deserialize)]
struct Numbers {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, NumberText>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "String")]
struct NumberText(u32);

impl TryFrom<String> for NumberText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("{text:?}, expected a number"))
    }
}

impl Resource for Numbers {
    type DynamicType = ();
    type Scope = <ConfigMap as Resource>::Scope;

    fn kind(kind: &()) -> Cow<'_, str> {
        ConfigMap::kind(kind)
    }

    fn group(kind: &()) -> Cow<'_, str> {
        ConfigMap::group(kind)
    }

    fn version(kind: &()) -> Cow<'_, str> {
        ConfigMap::version(kind)
    }

    fn plural(kind: &()) -> Cow<'_, str> {
        ConfigMap::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Permits<verb::List, Numbers> for Reading {}
impl Permits<verb::Watch, Numbers> for Reading {}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_decoded_is_unreadable_and_not_absent_until_it_is_corrected() {
    let env = any_server().await;
    for name in ["listed", "watched", "good"] {
        env.create(name).await;
    }
    env.put("listed", "hunter2").await;
    env.put("good", "7").await;
    let cache = SharedCache::<Numbers>::default();
    let health = env.fill(&cache, env.scope());
    cache.synced().await;
    let unreadable = |name: &str| match cache.find(&env.key(name)) {
        Observed::Unknown(UnknownReason::Unreadable(why)) => Some(why),
        Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => None,
    };
    let why = unreadable("listed").unwrap();
    assert!(
        why.starts_with("data.*: expected a number") && !why.contains("hunter2"),
        "{why}"
    );
    let seven = |numbers: &Numbers| numbers.data.values().any(|number| number.0 == 7);
    assert!(matches!(cache.find(&env.key("good")), Observed::Present(numbers) if seven(&numbers)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    env.put("watched", "hunter2").await;
    env.until(|| unreadable("watched").is_some()).await;
    env.put("listed", "8").await;
    env.delete("watched").await;
    env.until(|| {
        matches!(cache.find(&env.key("listed")), Observed::Present(_))
            && matches!(cache.find(&env.key("watched")), Observed::Absent)
    })
    .await;
    assert_eq!(env.request_counts(), (1, 1), "neither the page nor the watch fails");
    assert_eq!(health.stats().failures, 0);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_only_cache_requests_metadata_only() {
    let env = any_server().await;
    env.create("a").await;
    env.put("a", "large").await;
    let cache = SharedCache::<PartialObjectMeta<ConfigMap>>::default();
    let client = env.cache_client();
    env.run(Watch::metadata::<Reading>(
        client,
        cache.clone(),
        &(),
        env.scope(),
        env.clock(),
    ));
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&env).await);
    let Observed::Present(object) = cache.find(&env.key("a")) else {
        panic!("absent")
    };
    assert_eq!(object.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    tokio::time::sleep(Duration::from_secs(1)).await;
    env.put("a", "larger").await;
    env.create("b").await;
    let real = stored(&env).await;
    env.until(|| shown(&cache) == real).await;
    env.delete("a").await;
    env.until(|| matches!(cache.find(&env.key("a")), Observed::Absent))
        .await;
    env.stop().await;
}
