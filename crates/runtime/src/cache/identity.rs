//! Which object, and how new.

use std::fmt;

use kube_core::Resource;

use crate::version::{NotComparable, ResourceVersion};

/// Name of an object within its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Unique within the namespace, at any one time.
    pub name: String,
}

impl Key {
    /// The name of an object that has one; every object of a cache has.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// The name of an object in the same namespace.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        Self {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One version of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which name.
    pub key: Key,
    /// Which object of that name: a name may be used again, this never.
    pub uid: String,
    /// How new.
    pub version: ResourceVersion,
}

/// An object that the server cannot have sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingMetadata {
    /// A member is missing.
    #[error("metadata.{0}: missing; only objects as the API server returns them can be kept")]
    Missing(&'static str),
    /// The version has no place in the order.
    #[error(transparent)]
    Version(#[from] NotComparable),
}

impl Identity {
    /// Reads it from an object.
    ///
    /// # Errors
    /// When name, UID or version is missing, or the version does not compare.
    pub fn of<K: Resource>(object: &K) -> Result<Self, MissingMetadata> {
        let meta = object.meta();
        let need = |text: &Option<String>, member| text.clone().ok_or(MissingMetadata::Missing(member));
        Ok(Self {
            key: Key {
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: need(&meta.name, "name")?,
            },
            uid: need(&meta.uid, "uid")?,
            version: ResourceVersion::parse(&need(&meta.resource_version, "resourceVersion")?)?,
        })
    }
}

/// An object as a list or a watch brings it.
#[derive(Debug, Clone)]
pub enum Item<K> {
    /// It could be decoded.
    Object(K),
    /// It could not. It exists nevertheless.
    Unreadable {
        /// Read from its metadata.
        identity: Identity,
        /// What is wrong with it, without its content.
        why: String,
    },
}

impl<K: Resource> Item<K> {
    /// Which object it is.
    ///
    /// # Errors
    /// As [`Identity::of`].
    pub fn identity(&self) -> Result<Identity, MissingMetadata> {
        match self {
            Self::Object(object) => Identity::of(object),
            Self::Unreadable { identity, .. } => Ok(identity.clone()),
        }
    }
}
