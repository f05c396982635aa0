//! What the API server holds, at one moment.

use std::collections::BTreeMap;

use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Members that no two runs share: who counts versions, ids and seconds counts every fault.
const FLEETING: [&str; 9] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "lastTransitionTime",
    "lastUpdated",
    "managedFields",
    "observedGeneration",
    "resourceVersion",
    "uid",
];

/// The objects of the kinds that a world looks at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(crate) objects: BTreeMap<String, Vec<Value>>,
    /// Of the whole server: two equal ones have no write between them.
    pub(crate) version: String,
}

impl State {
    /// The path of a kind, for [`World::kinds`](crate::World::kinds).
    #[must_use]
    pub fn path<K: Resource<DynamicType = ()>>() -> String {
        K::url_path(&(), None)
    }

    /// The objects of a kind.
    ///
    /// # Panics
    /// When the world does not look at the kind, or an object of it cannot be decoded.
    #[must_use]
    #[expect(clippy::panic, reason = "a trial fails by panicking")]
    pub fn of<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        let path = Self::path::<K>();
        let Some(objects) = self.objects.get(&path) else {
            panic!("{path} is none of the kinds of this world");
        };
        let decode = |object: &Value| match serde_json::from_value(object.clone()) {
            Ok(object) => object,
            Err(error) => panic!("an object of {path} cannot be decoded: {error}"),
        };
        objects.iter().map(decode).collect()
    }

    /// The same without what no two runs share: times, versions, ids.
    #[must_use]
    pub fn lasting(&self) -> Value {
        let objects = self.objects.iter().map(|(path, objects)| {
            let objects = objects.iter().cloned().map(lasting).collect();
            (path.clone(), Value::Array(objects))
        });
        Value::Object(objects.collect())
    }
}

fn lasting(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| !FLEETING.contains(&name.as_str()))
            .map(|(name, member)| (name, lasting(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(lasting).collect(),
        other => other,
    }
}
