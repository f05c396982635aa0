//! Where the response to a write goes.

use kube_core::{PartialObjectMeta, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cache::{AnswerContent, CacheWrite, Identity, Indexes, Key, MissingMetadata, SharedCache};
use crate::patch::apply;
use crate::queue::RequestSource;

/// A kind that can be written.
pub trait Writable: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send {}

impl<K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send> Writable for K {}

/// The cache of the kind `K`, which receives responses to writes.
pub trait WriteTarget<K>: Sync {
    /// A write of `object` is about to be sent for `source`.
    fn begin_write(&self, source: Option<&RequestSource>, object: &Key) -> Box<dyn PendingWrite<K> + Send + '_>;

    /// The cached object, if the cache contains whole objects.
    fn cached(&self, object: &Key) -> Option<K>;
}

/// The response to a patch if no other client changed the object.
///
/// A version alone is not enough: a patch that changes nothing returns the version of another client's write, with all
/// its changes.
pub(super) enum Expected {
    /// The patch had a version as its precondition: it was applied to the cached object.
    Versioned,
    /// The cached object with the patch applied.
    Document(Value),
    /// The object is not in the cache.
    Unknown,
}

impl Expected {
    pub(super) fn of<K: Writable>(target: &impl WriteTarget<K>, object: &Key, patch: &Value) -> Self {
        if patch.pointer("/metadata/resourceVersion").is_some() {
            return Self::Versioned;
        }
        let patched = target.cached(object).and_then(|cached| {
            let mut document = serde_json::to_value(&cached).ok()?;
            apply(patch, &mut document);
            // Through the type, which may normalize what it reads.
            serde_json::from_value::<K>(document).ok().and_then(comparable)
        });
        patched.map_or(Self::Unknown, Self::Document)
    }

    /// Whether `answer` contains more than the own change.
    pub(super) fn content<K: Writable>(&self, answer: &K) -> AnswerContent {
        match self {
            Self::Versioned => AnswerContent::OwnChange,
            Self::Document(document) if comparable(answer.clone()).as_ref() == Some(document) => {
                AnswerContent::OwnChange
            }
            Self::Document(_) | Self::Unknown => AnswerContent::Mixed,
        }
    }
}

/// The object without the fields that change with every write.
fn comparable<K: Writable>(mut object: K) -> Option<Value> {
    let meta = object.meta_mut();
    (meta.resource_version, meta.managed_fields, meta.generation) = (None, None, None);
    crate::cache::prune(&mut object);
    serde_json::to_value(object).ok()
}

/// A write in flight. Dropping it without a result means that its outcome is unknown, or that it was rejected because
/// the cached object was out of date: the object is read again.
pub trait PendingWrite<K> {
    /// The server responded with this object. Only a cache copies it.
    ///
    /// # Errors
    /// When name, UID or version is missing.
    fn wrote(self: Box<Self>, object: &K, part: AnswerContent) -> Result<(), MissingMetadata>;

    /// The server responded that the object is deleted.
    fn deleted(self: Box<Self>, last: &Identity);

    /// The server rejected the write for a reason other than an out-of-date object.
    fn refused(self: Box<Self>);
}

impl<K, I> WriteTarget<K> for SharedCache<K, I>
where
    K: Resource + Clone + Send + Sync,
    I: Indexes<K> + Send,
{
    fn begin_write(&self, source: Option<&RequestSource>, object: &Key) -> Box<dyn PendingWrite<K> + Send + '_> {
        match source {
            Some(source) => Box::new(self.start_write(source, object.clone())),
            None => Box::new(WithoutSource(self)),
        }
    }

    fn cached(&self, object: &Key) -> Option<K> {
        self.find(object).present().map(|cached| K::clone(cached))
    }
}

impl<K: Resource + Clone, I: Indexes<K>> PendingWrite<K> for CacheWrite<K, I> {
    fn wrote(self: Box<Self>, object: &K, part: AnswerContent) -> Result<(), MissingMetadata> {
        (*self).wrote(object.clone(), part)
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        (*self).deleted(last);
    }

    fn refused(self: Box<Self>) {
        (*self).refused();
    }
}

/// A write without a source.
struct WithoutSource<'a, K, I>(&'a SharedCache<K, I>);

impl<K: Resource + Clone, I: Indexes<K>> PendingWrite<K> for WithoutSource<'_, K, I> {
    fn wrote(self: Box<Self>, object: &K, _: AnswerContent) -> Result<(), MissingMetadata> {
        self.0.wrote(object.clone())
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        self.0.deleted(last);
    }

    fn refused(self: Box<Self>) {}
}

/// For a kind whose cache contains metadata only, such as Secrets: the source is held until that cache has the write.
pub struct MetadataOf<'a, K, I = ()>(pub &'a SharedCache<PartialObjectMeta<K>, I>)
where
    PartialObjectMeta<K>: Resource;

impl<K, I> WriteTarget<K> for MetadataOf<'_, K, I>
where
    K: Resource<DynamicType = ()> + Send + Sync,
    I: Indexes<PartialObjectMeta<K>> + Send,
{
    fn begin_write(&self, source: Option<&RequestSource>, object: &Key) -> Box<dyn PendingWrite<K> + Send + '_> {
        match source {
            Some(source) => Box::new(MetadataWrite(self.0.start_write(source, object.clone()))),
            None => Box::new(NoCache),
        }
    }

    fn cached(&self, _: &Key) -> Option<K> {
        None
    }
}

struct MetadataWrite<K: Resource<DynamicType = ()>, I: Indexes<PartialObjectMeta<K>>>(
    CacheWrite<PartialObjectMeta<K>, I>,
);

impl<K, I> PendingWrite<K> for MetadataWrite<K, I>
where
    K: Resource<DynamicType = ()>,
    I: Indexes<PartialObjectMeta<K>>,
{
    fn wrote(self: Box<Self>, object: &K, part: AnswerContent) -> Result<(), MissingMetadata> {
        let written = Identity::of(object)?;
        self.0.wrote_version(&written, part);
        Ok(())
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        self.0.deleted(last);
    }

    fn refused(self: Box<Self>) {
        self.0.refused();
    }
}

/// For a kind without a cache that no decision reads, such as events.
#[derive(Debug, Clone, Copy)]
pub struct NoCache;

impl<K> WriteTarget<K> for NoCache {
    fn begin_write(&self, _: Option<&RequestSource>, _: &Key) -> Box<dyn PendingWrite<K> + Send + '_> {
        Box::new(Self)
    }

    fn cached(&self, _: &Key) -> Option<K> {
        None
    }
}

impl<K> PendingWrite<K> for NoCache {
    fn wrote(self: Box<Self>, _: &K, _: AnswerContent) -> Result<(), MissingMetadata> {
        Ok(())
    }

    fn deleted(self: Box<Self>, _: &Identity) {}

    fn refused(self: Box<Self>) {}
}
