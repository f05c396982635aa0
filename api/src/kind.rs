//! Root types: what every kind has in common, and the macro that writes them.
//!
//! `kube-derive` is not used: its root types fail to decode an object without `spec`, which nearly all of the Go
//! managers' schemas allow. Here an absent `spec` or `status` decodes to its default value, and an empty one is not
//! encoded.

use std::fmt::Debug;

use kube_core::{NamespaceResourceScope, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::cluster::names;
use crate::dropped;

/// A namespaced kind of one API version.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + 'static
{
    /// Desired state.
    type Spec: Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq;
    /// Observed state; `()` for a kind without status.
    type Status: Serialize + DeserializeOwned + Clone + Debug + Default + PartialEq;
    /// API group.
    const GROUP: &'static str;
    /// API version inside the group.
    const VERSION: &'static str;
    /// Kind, in CamelCase.
    const KIND: &'static str;
    /// Resource name in URLs.
    const PLURAL: &'static str;
    /// Whether the kind has a `status` member at all.
    const HAS_STATUS: bool;
    /// The description shown by `kubectl explain`.
    const DOC: &'static str;

    /// `group/version`, as written in `apiVersion`.
    #[must_use]
    fn group_version() -> String {
        format!("{}/{}", Self::GROUP, Self::VERSION)
    }

    /// The desired state.
    fn spec(&self) -> &Self::Spec;

    /// Decodes a document. It is not generic, so that a program has this code once, however many crates call it.
    ///
    /// # Errors
    /// When the document does not have the shape of the kind: where, and why.
    fn from_document(document: &Value) -> Result<Self, DocumentError>;
}

/// Why a document cannot be decoded, and the place in it.
pub type DocumentError = serde_path_to_error::Error<serde_json::Error>;

/// Whether no message has the place of an error: for kinds of other projects, and for one that admission does not read. The code
/// that finds the place is large, and the compiler knows for each kind that it is not needed.
#[inline]
pub(crate) fn is_without_place(group: &str, kind: &str) -> bool {
    matches!(group, names::GROUP | names::CONTROL_PLANE_GROUP | names::IPAM_GROUP) || kind == "HostFirmwareSettings"
}

/// An error whose place is not known.
pub(crate) fn without_place(error: serde_json::Error) -> DocumentError {
    let nowhere = serde_path_to_error::Track::new();
    DocumentError::new(nowhere.path(), error)
}

/// Encodes a spec with every member that has no default, as the Go managers do; `None` when it is empty.
pub(crate) fn encode_spec<T: Serialize>(spec: &T) -> Result<Option<Value>, serde_json::Error> {
    let value = serde_json::to_value(spec)?;
    let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    Ok(Some(value).filter(|_| !empty))
}

/// Encodes a status; `None` when nothing was observed yet.
pub(crate) fn encode_status<T: Serialize + Default + PartialEq>(
    status: &T,
) -> Result<Option<Value>, serde_json::Error> {
    if *status == T::default() {
        Ok(None)
    } else {
        encode_spec(status)
    }
}

/// Rejects an object whose `apiVersion` or `kind` is not the expected one. Items of typed lists may omit both.
pub(crate) fn check_kind(found: (Option<&str>, Option<&str>), expected: (&str, &str, &str)) -> Result<(), String> {
    let (api_version, kind) = found;
    let (group, version, expected_kind) = expected;
    if let Some(kind) = kind.filter(|kind| !kind.is_empty() && *kind != expected_kind) {
        return Err(format!("kind: expected {expected_kind}, found {kind}"));
    }
    match api_version.filter(|text| !text.is_empty()) {
        Some(text) if text != format!("{group}/{version}") => {
            Err(format!("apiVersion: expected {group}/{version}, found {text}"))
        }
        _ => Ok(()),
    }
}

/// Decodes the members of a root type. Builds with debug assertions, as tests are, leave out the member that a proof removes.
pub(crate) fn decoded<'de, D: Deserializer<'de>, W: DeserializeOwned>(
    kind: &'static str,
    deserializer: D,
) -> Result<W, D::Error> {
    if cfg!(debug_assertions)
        && let Some(member) = dropped::member_of(kind)
    {
        return member
            .drop_from(Value::deserialize(deserializer)?)
            .map_err(serde::de::Error::custom);
    }
    W::deserialize(deserializer)
}

/// Declares a root type: `spec`, optionally `status`, and its place in the API.
///
/// ```text
/// kind! {
///     /// Description for `kubectl explain`.
///     pub struct IPPool in "ipam.metal3.io" / "v1alpha1" as "ippools" {
///         spec: IPPoolSpec,
///         status: IPPoolStatus,
///     }
/// }
/// ```
macro_rules! kind {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident in $group:literal / $version:literal as $plural:literal {
            spec: $spec:ty,
            status: $status:ty $(,)?
        }
    ) => {
        $crate::kind::kind!(@shared [$($doc)+] $name, $group, $version, $plural, $spec, $status, true, {
            #[doc = "Desired state."] spec: $spec = encode_spec,
            #[doc = "Observed state."] status: $status = encode_status
        });
    };
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident in $group:literal / $version:literal as $plural:literal {
            spec: $spec:ty $(,)?
        }
    ) => {
        $crate::kind::kind!(@shared [$($doc)+] $name, $group, $version, $plural, $spec, (), false, {
            #[doc = "Desired state."] spec: $spec = encode_spec
        });
    };
    (@shared [$($doc:literal)+] $name:ident, $group:literal, $version:literal, $plural:literal, $spec:ty, $status:ty, $has_status:literal, {$(#[doc = $about:literal] $member:ident: $type:ty = $written:ident),+}) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            /// Standard object metadata.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $(
                #[doc = $about]
                pub $member: $type,
            )+
        }

        impl $crate::kind::Kind for $name {
            type Spec = $spec;
            type Status = $status;
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = stringify!($name);
            const PLURAL: &'static str = $plural;
            const HAS_STATUS: bool = $has_status;
            const DOC: &'static str = concat!($($doc, "\n"),+);

            fn spec(&self) -> &$spec {
                &self.spec
            }

            fn from_document(document: &serde_json::Value) -> Result<Self, $crate::kind::DocumentError> {
                if $crate::kind::is_without_place($group, stringify!($name)) {
                    <Self as serde::Deserialize>::deserialize(document).map_err($crate::kind::without_place)
                } else {
                    serde_path_to_error::deserialize(document)
                }
            }
        }

        impl kube_core::Resource for $name {
            type DynamicType = ();
            type Scope = kube_core::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($name).into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("apiVersion", concat!($group, "/", $version))?;
                map.serialize_entry("kind", stringify!($name))?;
                map.serialize_entry("metadata", &self.metadata)?;
                $(
                    if let Some(value) = $crate::kind::$written(&self.$member).map_err(serde::ser::Error::custom)? {
                        map.serialize_entry(stringify!($member), &value)?;
                    }
                )+
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                struct Wire {
                    #[serde(default, rename = "apiVersion")]
                    api_version: Option<String>,
                    #[serde(default)]
                    kind: Option<String>,
                    #[serde(default)]
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                    $(
                        #[serde(default)]
                        $member: $type,
                    )+
                }
                let wire: Wire = $crate::kind::decoded(stringify!($name), deserializer)?;
                $crate::kind::check_kind(
                    (wire.api_version.as_deref(), wire.kind.as_deref()),
                    ($group, $version, stringify!($name)),
                )
                .map_err(serde::de::Error::custom)?;
                Ok(Self { metadata: wire.metadata, $($member: wire.$member),+ })
            }
        }
    };
}
pub(crate) use kind;

#[cfg(test)]
mod tests {
    use super::*;

    /// A user corrects a rejected document by the place that the message names.
    #[test]
    fn each_kind_that_admission_reads_names_the_place_of_an_error() {
        for reviewer in crate::catalog::reviewers() {
            assert!(!is_without_place(reviewer.group, reviewer.kind), "{}", reviewer.kind);
        }
        assert!(is_without_place(names::GROUP, "Machine"));
    }
}
