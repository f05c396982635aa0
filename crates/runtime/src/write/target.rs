//! Where the answer to a write goes.

use kube_core::{PartialObjectMeta, Resource};

use serde_json::Value;

use crate::cache::{AnswerContent, CacheWrite, Identity, Indexes, Key, MissingMetadata, SharedCache};
use crate::patch::apply;
use crate::queue::RequestSource;

use super::writer::Writable;

/// A place that has to hear of writes to `K`: the cache that shows the kind.
pub trait WriteTarget<K>: Sync {
    /// A write of an object is about to be sent, in the name of `source`.
    fn begin_write(&self, source: Option<&RequestSource>, object: &Key) -> Box<dyn PendingWrite<K> + Send + '_>;

    /// The object as it is shown, where it is shown whole.
    fn cached(&self, object: &Key) -> Option<K>;
}

/// What an answer to a patch says if nobody but us changed anything.
///
/// A version alone does not tell: a patch that finds its changes made already returns the version of whoever made them,
/// and with it whatever else that one changed.
pub(super) enum Expected {
    /// The patch carried its version: it was made to the object that the pass saw.
    Certain,
    /// What is shown, patched.
    Document(Value),
    /// Nothing is shown.
    Unknown,
}

impl Expected {
    pub(super) fn of<K: Writable>(target: &impl WriteTarget<K>, object: &Key, patch: &Value) -> Self {
        if patch.pointer("/metadata/resourceVersion").is_some() {
            return Self::Certain;
        }
        let patched = target.cached(object).and_then(|shown| {
            let mut document = serde_json::to_value(&shown).ok()?;
            apply(patch, &mut document);
            // Through the type, which may write what it reads in another way.
            serde_json::from_value::<K>(document).ok().and_then(comparable)
        });
        patched.map_or(Self::Unknown, Self::Document)
    }

    /// Whether `answer` carries more than our own change.
    pub(super) fn part<K: Writable>(&self, answer: &K) -> AnswerContent {
        match self {
            Self::Certain => AnswerContent::OwnChange,
            Self::Document(document) if comparable(answer.clone()).as_ref() == Some(document) => {
                AnswerContent::OwnChange
            }
            Self::Document(_) | Self::Unknown => AnswerContent::Mixed,
        }
    }
}

/// The object without what changes with every write.
fn comparable<K: Writable>(mut object: K) -> Option<Value> {
    let meta = object.meta_mut();
    (meta.resource_version, meta.managed_fields, meta.generation) = (None, None, None);
    crate::cache::prune(&mut object);
    serde_json::to_value(object).ok()
}

/// A write on its way. Dropped, nobody knows what became of it, or it was refused because our view is old: the object
/// has to be read afresh.
pub trait PendingWrite<K> {
    /// The answer is this object, which is `part` our doing.
    ///
    /// # Errors
    /// When the object cannot be placed: name, UID or version is missing.
    fn wrote(self: Box<Self>, object: K, part: AnswerContent) -> Result<(), MissingMetadata>;

    /// The answer says that the object is gone.
    fn deleted(self: Box<Self>, last: &Identity);

    /// The server refused it, for a reason that has nothing to do with how old our view is.
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
            None => Box::new(Unsigned(self)),
        }
    }

    fn cached(&self, object: &Key) -> Option<K> {
        self.find(object).present().map(|shown| K::clone(shown))
    }
}

impl<K: Resource, I: Indexes<K>> PendingWrite<K> for CacheWrite<K, I> {
    fn wrote(self: Box<Self>, object: K, part: AnswerContent) -> Result<(), MissingMetadata> {
        (*self).wrote(object, part)
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        (*self).deleted(last);
    }

    fn refused(self: Box<Self>) {
        (*self).refused();
    }
}

/// A write of nobody's in particular.
struct Unsigned<'a, K, I>(&'a SharedCache<K, I>);

impl<K: Resource, I: Indexes<K>> PendingWrite<K> for Unsigned<'_, K, I> {
    fn wrote(self: Box<Self>, object: K, _: AnswerContent) -> Result<(), MissingMetadata> {
        self.0.wrote(object)
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        self.0.deleted(last);
    }

    fn refused(self: Box<Self>) {}
}

/// For a kind whose cache knows metadata only, Secrets above all: the writer's key is held until that cache shows the
/// write.
#[derive(Debug)]
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
            Some(source) => Box::new(Elsewhere(self.0.start_write(source, object.clone()))),
            None => Box::new(NoCache),
        }
    }

    fn cached(&self, _: &Key) -> Option<K> {
        None
    }
}

struct Elsewhere<K: Resource<DynamicType = ()>, I: Indexes<PartialObjectMeta<K>>>(CacheWrite<PartialObjectMeta<K>, I>);

impl<K, I> PendingWrite<K> for Elsewhere<K, I>
where
    K: Resource<DynamicType = ()>,
    I: Indexes<PartialObjectMeta<K>>,
{
    fn wrote(self: Box<Self>, object: K, part: AnswerContent) -> Result<(), MissingMetadata> {
        let written = Identity::of(&object)?;
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

/// For a kind that no cache shows and no decision reads, such as events.
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
    fn wrote(self: Box<Self>, _: K, _: AnswerContent) -> Result<(), MissingMetadata> {
        Ok(())
    }

    fn deleted(self: Box<Self>, _: &Identity) {}

    fn refused(self: Box<Self>) {}
}
