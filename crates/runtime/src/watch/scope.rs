//! Which objects of a kind a cache contains, and the requests for them.

use std::time::Duration;

use http::Request as Http;
use kube_core::params::{ListParams, WatchParams};
use kube_core::request::{Error, Request};

use crate::cache::Key;
use crate::version::ResourceVersion;

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

impl Scope {
    /// All of them.
    #[must_use]
    pub fn everywhere() -> Self {
        Self::default()
    }

    /// Those in one namespace.
    #[must_use]
    pub fn namespace(name: impl Into<String>) -> Self {
        Self {
            namespace: Some(name.into()),
            ..Self::default()
        }
    }

    /// Only those that a label selector selects.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only those that a field selector selects.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }
}

/// Whether whole objects or their metadata are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Metadata,
}

/// The requests of one cache.
pub(super) struct Requests {
    request: Request,
    scope: Scope,
    form: Form,
}

impl Requests {
    pub(super) fn new<K: kube_core::Resource>(kind: &K::DynamicType, scope: Scope, form: Form) -> Self {
        let path = K::url_path(kind, scope.namespace.as_deref());
        Self {
            request: Request::new(path),
            scope,
            form,
        }
    }

    /// The kind, as URLs name it.
    pub(super) fn kind(&self) -> &str {
        self.request.url_path.rsplit('/').next().unwrap_or_default()
    }

    /// A page of a list from a quorum: without a version no stale cache may answer.
    pub(super) fn list(&self, page: Option<u32>, rest: Option<String>) -> Result<Http<Vec<u8>>, Error> {
        let params = ListParams {
            label_selector: self.scope.labels.clone(),
            field_selector: self.scope.fields.clone(),
            limit: page,
            continue_token: rest,
            ..ListParams::default()
        };
        match self.form {
            Form::Whole => self.request.list(&params),
            Form::Metadata => self.request.list_metadata(&params),
        }
    }

    /// Whether an object of this name may be in scope.
    pub(super) fn covers(&self, key: &Key) -> bool {
        let namespace = self.scope.namespace.as_ref();
        namespace.is_none_or(|namespace| *namespace == key.namespace)
    }

    /// One object, if it is in scope. As a list, because a list has a version even without an object.
    pub(super) fn one(&self, key: &Key) -> Result<Http<Vec<u8>>, Error> {
        let by_name = format!("metadata.name={}", key.name);
        let fields = self.scope.fields.iter().cloned().chain([by_name]);
        let params = ListParams {
            label_selector: self.scope.labels.clone(),
            field_selector: Some(fields.collect::<Vec<_>>().join(",")),
            ..ListParams::default()
        };
        let request = Request::new(self.path_of(&key.namespace));
        match self.form {
            Form::Whole => request.list(&params),
            Form::Metadata => request.list_metadata(&params),
        }
    }

    /// The path of the kind in one namespace.
    fn path_of(&self, namespace: &str) -> String {
        let path = &self.request.url_path;
        match path.rsplit_once('/') {
            Some((version, plural)) if self.scope.namespace.is_none() && !namespace.is_empty() => {
                format!("{version}/namespaces/{namespace}/{plural}")
            }
            _ => path.clone(),
        }
    }

    pub(super) fn watch(&self, from: &ResourceVersion, duration: Duration) -> Result<Http<Vec<u8>>, Error> {
        let params = WatchParams {
            label_selector: self.scope.labels.clone(),
            field_selector: self.scope.fields.clone(),
            timeout: u32::try_from(duration.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        match self.form {
            Form::Whole => self.request.watch(&params, from.as_str()),
            Form::Metadata => self.request.watch_metadata(&params, from.as_str()),
        }
    }
}
