//! Objects of a case, by kind and name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::kind::Kind;
use serde_json::Value;

use crate::golden::case::Case;
use crate::values::{list, text};

/// Objects of one namespace, with the UIDs of the recordings.
#[derive(Default)]
pub(super) struct CaseObjects(BTreeMap<(String, String), Value>);

impl CaseObjects {
    /// Initial objects of a case.
    pub(super) fn of(case: &Case) -> Self {
        let mut stored = Self::default();
        list(&case.input, "/objects").for_each(|object| stored.apply(object));
        stored
    }

    /// Stores an object, replacing one with the same name.
    fn apply(&mut self, object: &Value) {
        let mut object = object.clone();
        let (kind, name) = (
            text(&object, "/kind").to_owned(),
            text(&object, "/metadata/name").to_owned(),
        );
        let group = text(&object, "/apiVersion")
            .rsplit_once('/')
            .map_or("", |(group, _)| group)
            .to_owned();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata
                .entry("uid")
                .or_insert_with(|| format!("uid:{group}:{kind}:{name}").into());
        }
        self.0.insert((kind, name), object);
    }

    fn raw(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }

    /// An object; none if it is not there or cannot be read.
    pub(super) fn get<K: Kind>(&self, name: &str) -> Option<K> {
        let object = self.raw(K::KIND, name)?;
        serde_json::from_value(object.clone()).ok()
    }

    /// Every object of a kind that can be read, by name.
    pub(super) fn all<K: Kind>(&self) -> Vec<K> {
        let of_kind = self.0.iter().filter(|((kind, _), _)| kind == K::KIND);
        of_kind
            .filter_map(|(_, object)| serde_json::from_value(object.clone()).ok())
            .collect()
    }

    /// The Secrets, without their content.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, ObjectMeta)> {
        let of_kind = self.0.iter().filter(|((kind, _), _)| kind == "Secret");
        of_kind.filter_map(|((_, name), object)| {
            let metadata = object.get("metadata").cloned()?;
            Some((name.clone(), serde_json::from_value(metadata).ok()?))
        })
    }

    /// Whether there is an object of a kind that cannot be read.
    pub(super) fn has_unreadable<K: Kind>(&self) -> bool {
        let of_kind = self.0.keys().filter(|(kind, _)| kind == K::KIND).count();
        of_kind != self.all::<K>().len()
    }
}
