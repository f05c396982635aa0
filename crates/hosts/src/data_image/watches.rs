//! The cache, and which DataImage a change of a host concerns.

use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_runtime::cache::{Indexes, Key, SharedCache, SharedIndexes};

/// The DataImages that exist.
#[derive(Default)]
pub struct DataImageIndexes(BTreeSet<Key>);

impl DataImageIndexes {
    /// The DataImage of a host: it has the same key.
    pub(super) fn of_host(&self, host: Key) -> Vec<Key> {
        let is_known = self.0.contains(&host);
        is_known.then_some(host).into_iter().collect()
    }
}

impl Indexes<DataImage> for DataImageIndexes {
    fn replace(&mut self, key: &Key, _: Option<&DataImage>, new: Option<&DataImage>) {
        match new {
            Some(_) => drop(self.0.insert(key.clone())),
            None => drop(self.0.remove(key)),
        }
    }
}

/// DataImages. Clones share them.
pub type DataImageCache = SharedCache<DataImage, SharedIndexes<DataImageIndexes>>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_of_a_host_concerns_the_object_of_its_name_and_namespace_alone() {
        let key = |namespace: &str| Key {
            namespace: namespace.to_owned(),
            name: "h".to_owned(),
        };
        let object: DataImage = serde_json::from_value(json!({ "spec": { "url": "http://a/" } })).unwrap();
        let mut indexes = DataImageIndexes::default();
        indexes.replace(&key("a"), None, Some(&object));
        assert_eq!(indexes.of_host(key("a")), [key("a")]);
        assert_eq!(indexes.of_host(key("b")), []);
        indexes.replace(&key("a"), Some(&object), None);
        assert_eq!(indexes.of_host(key("a")), []);
    }
}
