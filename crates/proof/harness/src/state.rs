//! State of the API server at one moment.

use std::collections::BTreeMap;

use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Members that differ between runs.
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

/// The objects of the kinds of a test environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(crate) objects: BTreeMap<String, Vec<Value>>,
    /// Resource version of the whole server: equal versions mean no write in between.
    pub(crate) version: String,
}

impl State {
    /// The path of a kind, for [`TestEnv::kinds`](crate::TestEnv::kinds).
    #[must_use]
    pub fn path<K: Resource<DynamicType = ()>>() -> String {
        K::url_path(&(), None)
    }

    /// The objects of a kind.
    ///
    /// # Panics
    /// When the kind is not among [`TestEnv::kinds`](crate::TestEnv::kinds), or an object of it cannot be decoded.
    #[must_use]
    #[expect(clippy::panic, reason = "a test fails by panicking")]
    pub fn of<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        let path = Self::path::<K>();
        let Some(objects) = self.objects.get(&path) else {
            panic!("{path} is not among the kinds of this test environment");
        };
        let decode = |object: &Value| match serde_json::from_value(object.clone()) {
            Ok(object) => object,
            Err(error) => panic!("an object of {path} cannot be decoded: {error}"),
        };
        objects.iter().map(decode).collect()
    }

    /// The state without members that differ between runs: times, versions, UIDs.
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
