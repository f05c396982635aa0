//! Which images a change concerns.

use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_runtime::cache::{Index, Indexes, Key};

/// The images by the Secret with their network data, which is of their own namespace.
#[derive(Default)]
pub struct ImageIndexes {
    by_secret: Index<Key>,
}

impl ImageIndexes {
    pub(super) fn of_secret(&self, secret: &Key) -> Vec<Key> {
        self.by_secret.get(secret).cloned().collect()
    }
}

impl Indexes<PreprovisioningImage> for ImageIndexes {
    fn replace(&mut self, key: &Key, old: Option<&PreprovisioningImage>, new: Option<&PreprovisioningImage>) {
        let secret = |image: &PreprovisioningImage| Some(key.sibling(image.spec.network_data_name.as_deref()?));
        self.by_secret.replace(key, old.and_then(secret), new.and_then(secret));
    }
}
