//! Keys and versions of objects.

use std::fmt;

use kube_core::Resource;

use crate::version::{NotComparable, ResourceVersion};

/// Namespace and name of an object of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Unique within the namespace, at any one time.
    pub name: String,
}

impl Key {
    /// Not after any key of the namespace.
    #[must_use]
    pub fn first_in(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: String::new(),
        }
    }

    /// The key of an object.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// The key of another object in the same namespace.
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
    /// Namespace and name.
    pub key: Key,
    /// The UID: unlike a name it is never used again.
    pub uid: String,
    /// The resource version.
    pub version: ResourceVersion,
}

/// An object without metadata that each object of an API server has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingMetadata {
    /// A field is missing.
    #[error("metadata.{0}: missing; only objects as the API server returns them can be kept")]
    Missing(&'static str),
    /// The version cannot be compared.
    #[error(transparent)]
    Version(#[from] NotComparable),
}

impl Identity {
    /// Reads the identity of an object.
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

/// An object of a list or a watch.
#[derive(Debug, Clone)]
pub enum Item<K> {
    /// A decoded object.
    Object(K),
    /// An object that cannot be decoded. It exists nevertheless.
    Unreadable {
        /// From its metadata.
        identity: Identity,
        /// The decoder's message, without content of the object.
        why: String,
    },
}

impl<K: Resource> Item<K> {
    /// The identity of the object.
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
