//! What gets into a cache, and by how many requests. All of it holds on a simulated server and on a real one.

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

use crate::world::{Reading, anywhere, config_map, hear, shown, stored};

#[tokio::test(start_paused = true)]
async fn long_list_comes_in_pages_and_counts_as_a_whole() {
    let world = anywhere().await;
    let many = 2 * PAGE_SIZE + 1;
    for number in 0..many {
        world.create(&format!("c{number:04}")).await;
    }
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    let health = world.fill(&cache, world.scope());
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&world).await);
    assert_eq!(world.asked().0, 3);
    assert_eq!(health.stats().lists, 1);
    let heard = heard.lock().clone();
    let last = usize::try_from(many).unwrap();
    assert_eq!(heard.iter().position(|text| text == "synced"), Some(last));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_come_and_go_at_once_are_heard_coming_and_going() {
    let world = anywhere().await;
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    world.fill(&cache, world.scope());
    cache.synced().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for round in 0..40 {
        world.create("brief").await;
        world.delete("brief").await;
        world.create(&format!("stays{round}")).await;
    }
    let real = stored(&world).await;
    world.until(|| shown(&cache) == real).await;
    let heard = heard.lock().clone();
    let count = |wanted: &str| heard.iter().filter(|text| *text == wanted).count();
    assert_eq!((count("brief came"), count("brief gone")), (40, 40));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn selection_is_kept_and_an_object_that_leaves_it_is_gone() {
    let world = anywhere().await;
    let elsewhere = world.elsewhere();
    for api in [&world.api, &elsewhere] {
        for (name, label) in [("in", "yes"), ("out", "no")] {
            let object = config_map(name, [("wanted", label)]);
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }
    let (labelled, named) = (SharedCache::<ConfigMap>::default(), SharedCache::<ConfigMap>::default());
    world.fill(&labelled, world.scope().labels("wanted=yes"));
    world.fill(&named, Scope::everywhere().fields("metadata.name=out"));
    labelled.synced().await;
    named.synced().await;
    assert_eq!(shown(&labelled).into_keys().collect::<Vec<_>>(), ["in"]);
    assert_eq!(named.read(|cache| cache.objects().count()), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let leave = Patch::Merge(serde_json::json!({"metadata": {"labels": {"wanted": "no"}}}));
    world.api.patch("in", &PatchParams::default(), &leave).await.unwrap();
    world
        .until(|| labelled.find(&world.key("in")) == Observed::Absent)
        .await;
    world.stop().await;
}

/// A config map as somebody sees it who takes its values for numbers.
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
async fn object_that_cannot_be_decoded_is_known_and_not_absent_and_heals() {
    let world = anywhere().await;
    for name in ["listed", "watched", "good"] {
        world.create(name).await;
    }
    world.put("listed", "hunter2").await;
    world.put("good", "7").await;
    let cache = SharedCache::<Numbers>::default();
    let health = world.fill(&cache, world.scope());
    cache.synced().await;
    let unreadable = |name: &str| match cache.find(&world.key(name)) {
        Observed::Unknown(UnknownReason::Unreadable(why)) => Some(why),
        Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => None,
    };
    let why = unreadable("listed").unwrap();
    assert!(
        why.starts_with("data.k: expected a number") && !why.contains("hunter2"),
        "{why}"
    );
    let seven = |numbers: &Numbers| numbers.data.values().any(|number| number.0 == 7);
    assert!(matches!(cache.find(&world.key("good")), Observed::Present(numbers) if seven(&numbers)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.put("watched", "hunter2").await;
    world.until(|| unreadable("watched").is_some()).await;
    world.put("listed", "8").await;
    world.delete("watched").await;
    world
        .until(|| {
            matches!(cache.find(&world.key("listed")), Observed::Present(_))
                && matches!(cache.find(&world.key("watched")), Observed::Absent)
        })
        .await;
    assert_eq!(world.asked(), (1, 1), "neither the page nor the watch suffered");
    assert_eq!(health.stats().failures, 0);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_only_cache_asks_for_no_more() {
    let world = anywhere().await;
    world.create("a").await;
    world.put("a", "large").await;
    let cache = SharedCache::<PartialObjectMeta<ConfigMap>>::default();
    let client = world.cache_client();
    world.run(Watch::metadata::<Reading>(
        client,
        cache.clone(),
        &(),
        world.scope(),
        world.clock(),
    ));
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&world).await);
    let Observed::Present(object) = cache.find(&world.key("a")) else {
        panic!("not there")
    };
    assert_eq!(object.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.put("a", "larger").await;
    world.create("b").await;
    let real = stored(&world).await;
    world.until(|| shown(&cache) == real).await;
    world.delete("a").await;
    world
        .until(|| matches!(cache.find(&world.key("a")), Observed::Absent))
        .await;
    world.stop().await;
}
