mod history;
mod races;
mod shared;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

use super::{Cache, Identity, Index, Indexes, Item, Key, Unwatched};
use crate::plan::{Observed, UnknownReason};
use crate::version::ResourceVersion;

/// Keys by the value of the label `owner`.
#[derive(Debug, Default)]
struct ByOwner(Index<String>);

impl Indexes<ConfigMap> for ByOwner {
    fn replace(&mut self, key: &Key, old: Option<&ConfigMap>, new: Option<&ConfigMap>) {
        self.0.replace(key, old.and_then(owner), new.and_then(owner));
    }
}

type TestCache = Cache<ConfigMap, ByOwner>;

fn owner(object: &ConfigMap) -> Option<String> {
    object.metadata.labels.as_ref()?.get("owner").cloned()
}

fn key(name: &str) -> Key {
    Key {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    }
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::parse(&number.to_string()).unwrap()
}

fn object(name: &str, uid: &str, at: u64, owner: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("ns".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(at.to_string()),
            labels: Some([("owner".to_owned(), owner.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn live(name: &str, uid: &str, at: u64) -> Item<ConfigMap> {
    Item::Object(object(name, uid, at, "o"))
}

fn identity(name: &str, uid: &str, at: u64) -> Identity {
    Identity::of(&object(name, uid, at, "")).unwrap()
}

fn unreadable(name: &str, uid: &str, at: u64) -> Item<ConfigMap> {
    Item::Unreadable {
        identity: identity(name, uid, at),
        why: "spec.image: expected text".to_owned(),
    }
}

/// The version that the cache shows under a name.
fn shown(cache: &TestCache, name: &str) -> Option<u64> {
    match cache.get(&key(name)) {
        Observed::Present(object) => object.metadata.resource_version.as_ref()?.parse().ok(),
        Observed::Absent | Observed::Unknown(_) => None,
    }
}

fn owned_by(cache: &TestCache, owner: &str) -> Vec<String> {
    let keys = cache.indexes().0.get(&owner.to_owned());
    keys.map(|key| key.name.clone()).collect()
}

/// A cache whose first list, empty, was read at `at`.
fn synced(at: u64) -> TestCache {
    let mut cache = TestCache::default();
    cache.listed(Vec::new(), version(at)).unwrap();
    cache
}

#[test]
fn objects_of_a_namespace_are_those_that_are_decoded_in_it() {
    let mut cache = synced(1);
    for (number, namespace) in (2..).zip(["n", "ns", "ns", "ns-2", "nt"]) {
        let mut object = object(&format!("o{number}"), &format!("u{number}"), number, "o");
        object.metadata.namespace = Some(namespace.to_owned());
        cache.observed(Item::Object(object)).unwrap();
    }
    cache.observed(unreadable("o9", "u9", 9)).unwrap();
    let names = |namespace: &str| -> Vec<String> {
        let near = cache.in_namespace(namespace);
        near.map(|object| object.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(names("ns"), ["o3", "o4"]);
    assert_eq!((names("ns-2").len(), names("other").len(), names("").len()), (1, 0, 0));
}

#[test]
fn missing_object_of_an_optional_kind_is_absent_only_when_none_can_exist() {
    let missing = |cache: &TestCache| cache.get(&key("a")).map(drop);
    let mut cache = TestCache::default();
    assert_eq!(missing(&cache), Observed::Unknown(UnknownReason::NotListed));
    cache.set_unwatched(Unwatched::NotPermitted);
    assert_eq!(missing(&cache), Observed::Unknown(UnknownReason::NotPermitted));
    assert!(cache.is_served());
    cache.set_unwatched(Unwatched::NotServed);
    assert_eq!((missing(&cache), cache.synced()), (Observed::Absent, true));
    assert!(!cache.is_served());
    cache.listed(vec![live("a", "u", 1)], version(1)).unwrap();
    cache.set_unwatched(Unwatched::NotServed);
    assert_eq!((missing(&cache), cache.synced()), (Observed::Present(()), true));
    cache.set_unwatched(Unwatched::NotPermitted);
    let seen = Observed::Unknown(UnknownReason::NotPermitted);
    assert_eq!((missing(&cache), cache.synced()), (seen, true));
    cache.listed(vec![], version(2)).unwrap();
    assert_eq!(missing(&cache), Observed::Absent);
}
