//! Requests: the verb and target of a method, a path, a query and headers.
//!
//! Parsing never fails on arbitrary text; `route` checks whether the resource exists.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::kind::{Kind, Version};
use super::refusal::Refusal;
use super::user::Identity;

/// A request as received.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Path of the URL.
    pub path: String,
    /// Query of the URL, decoded.
    pub query: BTreeMap<String, String>,
    /// `Content-Type`.
    pub content_type: String,
    /// `Accept`.
    pub accept: String,
    /// `User-Agent`: the field manager when `fieldManager` is absent.
    pub agent: String,
    /// User name, for the audit counters and admission.
    pub user: String,
    /// Who the user is, if another one impersonates it: then roles count.
    pub identity: Option<Identity>,
    /// The body.
    pub body: Vec<u8>,
}

/// A verb of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read all objects that match.
    List,
    /// Follow changes.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete all objects that match.
    DeleteCollection,
}

impl Verb {
    /// The verb as Kubernetes' audit log and roles name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// The objects that a path addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource.
    pub resource: String,
    /// Namespace, empty for all namespaces and for cluster-scoped objects.
    pub namespace: String,
    /// Name, empty for a collection.
    pub name: String,
    /// Subresource, mostly empty.
    pub subresource: String,
}

impl Target {
    /// Reads a path; `None` when it does not address a resource.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, resource, rest) = match rest {
            ["namespaces", namespace, resource, rest @ ..] if !is_namespace_subresource(resource) => {
                (*namespace, *resource, rest)
            }
            [resource, rest @ ..] => ("", *resource, rest),
            [] => return None,
        };
        let (name, subresource) = match rest {
            [] => ("", ""),
            [name] => (*name, ""),
            [name, subresource] => (*name, *subresource),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }
}

fn is_namespace_subresource(name: &str) -> bool {
    name == "status" || name == "finalize"
}

/// A request whose resource exists.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) request: &'a Request,
    pub(super) target: Target,
    pub(super) verb: Verb,
    pub(super) kind: Arc<Kind>,
    pub(super) now: DateTime<Utc>,
    /// How many writes a read lags behind, as on a follower.
    pub(super) lag: u64,
}

impl Call<'_> {
    pub(super) fn version(&self) -> Option<&Version> {
        self.kind.version(&self.target.version)
    }

    pub(super) fn has_status(&self) -> bool {
        self.version().is_some_and(|version| version.status)
    }

    pub(super) fn on_status(&self) -> bool {
        self.target.subresource == "status"
    }

    pub(super) fn key(&self) -> (String, String) {
        (self.target.namespace.clone(), self.target.name.clone())
    }
}

impl Request {
    /// The verb of the request.
    pub(crate) fn verb(&self, target: &Target) -> Result<Verb, Refusal> {
        let collection = target.name.is_empty();
        Ok(match (self.method.as_str(), collection) {
            ("GET", true) if self.flag("watch") => Verb::Watch,
            ("GET", true) => Verb::List,
            ("GET", false) => Verb::Get,
            ("POST", _) => Verb::Create,
            ("PUT", false) => Verb::Update,
            ("PATCH", false) => Verb::Patch,
            ("DELETE", true) => Verb::DeleteCollection,
            ("DELETE", false) => Verb::Delete,
            ("PUT" | "PATCH", true) => return Err(Refusal::bad_request("name must be provided")),
            _ => return Err(Refusal::method_not_allowed()),
        })
    }

    /// Whether this is a server-side apply.
    pub(crate) fn is_apply(&self) -> bool {
        self.method == "PATCH" && self.content_type.starts_with("application/apply-patch+yaml")
    }

    pub(crate) fn option(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.option(name), "1" | "true" | "True")
    }
}
