//! Where the answer to a write goes.

use kube_core::{PartialObjectMeta, Resource};

use crate::hub::{Identity, Indexes, Nameless, SharedHub, Writing};
use crate::queue::Author;

/// A place that has to hear of writes to `K`: the hub that shows the kind.
pub trait Home<K>: Sync {
    /// A write of an object is about to be sent, in the name of `author`.
    fn depart(&self, author: Option<&Author>, object: &crate::hub::Key) -> Box<dyn Landing<K> + Send + '_>;
}

/// A write on its way. Dropped, nobody knows what became of it, or it was refused because our view is old: the object
/// has to be read afresh.
pub trait Landing<K> {
    /// The answer is this object.
    ///
    /// # Errors
    /// When the object cannot be placed: name, UID or version is missing.
    fn wrote(self: Box<Self>, object: K) -> Result<(), Nameless>;

    /// The answer says that the object is gone.
    fn deleted(self: Box<Self>, last: &Identity);

    /// The server refused it, for a reason that has nothing to do with how old our view is.
    fn refused(self: Box<Self>);
}

impl<K, I> Home<K> for SharedHub<K, I>
where
    K: Resource + Send + Sync,
    I: Indexes<K> + Send,
{
    fn depart(&self, author: Option<&Author>, object: &crate::hub::Key) -> Box<dyn Landing<K> + Send + '_> {
        match author {
            Some(author) => Box::new(self.writing(author, object.clone())),
            None => Box::new(Unsigned(self)),
        }
    }
}

impl<K: Resource, I: Indexes<K>> Landing<K> for Writing<K, I> {
    fn wrote(self: Box<Self>, object: K) -> Result<(), Nameless> {
        (*self).wrote(object)
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        (*self).deleted(last);
    }

    fn refused(self: Box<Self>) {
        (*self).refused();
    }
}

/// A write of nobody's in particular.
struct Unsigned<'a, K, I>(&'a SharedHub<K, I>);

impl<K: Resource, I: Indexes<K>> Landing<K> for Unsigned<'_, K, I> {
    fn wrote(self: Box<Self>, object: K) -> Result<(), Nameless> {
        self.0.wrote(object)
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        self.0.deleted(last);
    }

    fn refused(self: Box<Self>) {}
}

/// For a kind whose hub knows metadata only, Secrets above all: the writer's key is held until that hub shows the
/// write.
#[derive(Debug)]
pub struct MetadataOf<'a, K, I = ()>(pub &'a SharedHub<PartialObjectMeta<K>, I>)
where
    PartialObjectMeta<K>: Resource;

impl<K, I> Home<K> for MetadataOf<'_, K, I>
where
    K: Resource<DynamicType = ()> + Send + Sync,
    I: Indexes<PartialObjectMeta<K>> + Send,
{
    fn depart(&self, author: Option<&Author>, object: &crate::hub::Key) -> Box<dyn Landing<K> + Send + '_> {
        match author {
            Some(author) => Box::new(Elsewhere(self.0.writing(author, object.clone()))),
            None => Box::new(Nowhere),
        }
    }
}

struct Elsewhere<K: Resource<DynamicType = ()>, I: Indexes<PartialObjectMeta<K>>>(Writing<PartialObjectMeta<K>, I>);

impl<K, I> Landing<K> for Elsewhere<K, I>
where
    K: Resource<DynamicType = ()>,
    I: Indexes<PartialObjectMeta<K>>,
{
    fn wrote(self: Box<Self>, object: K) -> Result<(), Nameless> {
        let written = Identity::of(&object)?;
        self.0.wrote_elsewhere(&written);
        Ok(())
    }

    fn deleted(self: Box<Self>, last: &Identity) {
        self.0.deleted(last);
    }

    fn refused(self: Box<Self>) {
        self.0.refused();
    }
}

/// For a kind that no hub shows and no decision reads, such as events.
#[derive(Debug, Clone, Copy)]
pub struct Nowhere;

impl<K> Home<K> for Nowhere {
    fn depart(&self, _: Option<&Author>, _: &crate::hub::Key) -> Box<dyn Landing<K> + Send + '_> {
        Box::new(Self)
    }
}

impl<K> Landing<K> for Nowhere {
    fn wrote(self: Box<Self>, _: K) -> Result<(), Nameless> {
        Ok(())
    }

    fn deleted(self: Box<Self>, _: &Identity) {}

    fn refused(self: Box<Self>) {}
}
