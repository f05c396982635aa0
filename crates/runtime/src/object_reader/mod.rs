//! Reads whole objects of a kind whose cache contains metadata only, such as Secrets.
//!
//! The cache has the current version, so readers that hold an object of it share one request, and an absent object is
//! never read.
//!
//! It does not watch and enqueues no key; the cache does. Contents are never logged. A content lives as long as a reader
//! holds it, and is then overwritten: between reconciles none is in memory.
//!
//! Invariant: the result is at least as new as the cache at the call of [`ObjectReader::get`].

mod erased;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use kube_core::{PartialObjectMeta, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::access::{Permits, verb};
use crate::cache::{Change, Identity, Indexes, Key, MissingMetadata, SharedCache, prune};
use crate::plan::Observed;
use crate::version::ResourceVersion;
use crate::work::Fault;
use crate::write::get_object;

pub use erased::{Erase, Erased};

/// The last version that was read. Locked during a read, so that other readers wait for it.
type Slot<K> = Arc<tokio::sync::Mutex<Option<(ResourceVersion, Weak<Erased<K>>)>>>;

/// Reads whole objects as role `R`. Clones share the results.
pub struct ObjectReader<R, K: Erase, I = ()> {
    client: kube::Client,
    cache: SharedCache<PartialObjectMeta<K>, I>,
    slots: Arc<Mutex<BTreeMap<Key, Slot<K>>>>,
    role: PhantomData<R>,
}

impl<R, K: Erase, I> Clone for ObjectReader<R, K, I> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            cache: self.cache.clone(),
            slots: Arc::clone(&self.slots),
            role: PhantomData,
        }
    }
}

impl<R, K, I> ObjectReader<R, K, I>
where
    R: Permits<verb::Get, K>,
    K: Resource<DynamicType = ()> + DeserializeOwned + Erase + Send + Sync + 'static,
    I: Indexes<PartialObjectMeta<K>>,
{
    /// Reads the objects of `cache` through `client`.
    #[must_use]
    pub fn new(client: kube::Client, cache: &SharedCache<PartialObjectMeta<K>, I>) -> Self {
        let slots: Arc<Mutex<BTreeMap<Key, Slot<K>>>> = Arc::default();
        let slots_of_cache = Arc::clone(&slots);
        cache.subscribe(move |change| {
            if let Change::Deleted { key, .. } = change {
                slots_of_cache.lock().remove(*key);
            }
        });
        Self {
            client,
            cache: cache.clone(),
            slots,
            role: PhantomData,
        }
    }

    /// The object under `key`. Sends no request if the object is absent in the cache, or if another reader holds its
    /// version.
    ///
    /// # Errors
    /// When the read fails. The fault's category distinguishes a missing permission from a broken connection.
    pub async fn get(&self, key: &Key) -> Result<Observed<Arc<Erased<K>>>, Fault> {
        let shown = match self.cache.find(key) {
            Observed::Absent => return Ok(Observed::Absent),
            Observed::Unknown(why) => return Ok(Observed::Unknown(why)),
            Observed::Present(meta) => Identity::of(&*meta).map_err(|error| missing_metadata(key, &error))?,
        };
        let slot = self.slot(key);
        let mut kept = slot.lock().await;
        if let Some((version, object)) = &*kept
            && *version >= shown.version
            && let Some(object) = object.upgrade()
        {
            return Ok(Observed::Present(object));
        }
        let Some(mut object) = get_object::<K>(&self.client, key).await? else {
            *kept = None;
            return Ok(Observed::Absent);
        };
        prune(&mut object);
        let read = Identity::of(&object).map_err(|error| missing_metadata(key, &error))?;
        let object = Arc::new(Erased::new(object));
        *kept = Some((read.version, Arc::downgrade(&object)));
        Ok(Observed::Present(object))
    }

    fn slot(&self, key: &Key) -> Slot<K> {
        let mut slots = self.slots.lock();
        Arc::clone(slots.entry(key.clone()).or_default())
    }
}

fn missing_metadata(key: &Key, error: &MissingMetadata) -> Fault {
    Fault::bug(format!("{key}: {error}"))
}

#[cfg(test)]
mod tests;
