//! A request as data: what it does, whether it may be retried, and how its response is decoded.
//!
//! Nothing is sent here. A path is a list of segments, so that no name can leave its segment. The body may contain
//! secrets: `Debug` never shows it.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text;
use crate::version::Microversion;

/// HTTP methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or calls a vendor method.
    Post,
    /// Sets a state.
    Put,
    /// Applies a JSON patch.
    Patch,
    /// Deletes.
    Delete,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As HTTP spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// The effect of a request, which decides how a failure is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing: may be retried.
    Read,
    /// Has the same result however often it is sent: may be retried.
    Repeatable,
    /// Creates something with a unique name or address.
    Create,
    /// Requests a transition. Another client may have been faster.
    Transition {
        /// Whether it has arguments that Ironic may reject.
        arguments: bool,
    },
    /// Any other change: never retried here; the caller reads and decides again.
    Once,
}

impl Effect {
    /// Whether the client may retry the request when the connection broke.
    #[must_use]
    pub const fn may_repeat(self) -> bool {
        matches!(self, Self::Read | Self::Repeatable)
    }
}

/// One request to Ironic.
#[derive(Clone, PartialEq)]
pub struct Request {
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) effect: Effect,
    pub(crate) min_version: Option<Microversion>,
}

impl Request {
    /// The operation, for people: `change the power state`.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        self.operation
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The segments of the path after `/v1`, unescaped.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// The query, unescaped.
    #[must_use]
    pub fn query(&self) -> &[(&'static str, String)] {
        &self.query
    }

    /// The body. It may contain secrets.
    #[must_use]
    pub const fn body(&self) -> Option<&Value> {
        self.body.as_ref()
    }

    /// The effect.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        self.effect
    }

    /// The oldest microversion with this request, if newer than the minimum.
    #[must_use]
    pub const fn min_version(&self) -> Option<Microversion> {
        self.min_version
    }

    /// Whether the text contains a secret of the body.
    #[must_use]
    pub fn leaks_secret(&self, text: &str) -> bool {
        self.body.as_ref().is_some_and(|body| text::repeats_secret(body, text))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("body", &self.body.as_ref().map(|_| "(not shown)"))
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// Decodes the body of a response.
pub type Decode<T> = fn(&[u8]) -> Result<T, serde_json::Error>;

/// A request with the type of its response.
pub struct Call<T> {
    pub(crate) request: Request,
    pub(crate) decode: Decode<T>,
}

impl<T> Call<T> {
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// Decodes the body of a successful response.
    ///
    /// # Errors
    /// When it does not match the type.
    pub fn decode(&self, body: &[u8]) -> Result<T, serde_json::Error> {
        (self.decode)(body)
    }

    pub(crate) fn with_min_version(mut self, version: Microversion) -> Self {
        self.request.min_version = Some(version);
        self
    }

    pub(crate) fn with_body(mut self, body: Value) -> Self {
        self.request.body = Some(body);
        self
    }

    pub(crate) fn with_query(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.request.query.push((key, value.into()));
        self
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl<T> Clone for Call<T> {
    fn clone(&self) -> Self {
        Self {
            request: self.request.clone(),
            decode: self.decode,
        }
    }
}

fn request(operation: &'static str, method: Method, path: &[&str], effect: Effect) -> Request {
    Request {
        operation,
        method,
        path: path.iter().map(|segment| (*segment).to_owned()).collect(),
        query: Vec::new(),
        body: None,
        effect,
        min_version: None,
    }
}

/// A read with a JSON response.
pub(crate) fn read<T: DeserializeOwned>(operation: &'static str, path: &[&str]) -> Call<T> {
    read_with(operation, path, |body| serde_json::from_slice(body))
}

/// A read with a decoder of its own.
pub(crate) fn read_with<T>(operation: &'static str, path: &[&str], decode: Decode<T>) -> Call<T> {
    Call {
        request: request(operation, Method::Get, path, Effect::Read),
        decode,
    }
}

/// A change with a JSON response.
pub(crate) fn change<T: DeserializeOwned>(
    operation: &'static str,
    method: Method,
    path: &[&str],
    effect: Effect,
    body: Value,
) -> Call<T> {
    Call {
        request: request(operation, method, path, effect),
        decode: |body| serde_json::from_slice(body),
    }
    .with_body(body)
}

/// A change whose response has no content.
pub(crate) fn order(operation: &'static str, method: Method, path: &[&str], effect: Effect) -> Call<()> {
    Call {
        request: request(operation, method, path, effect),
        decode: |_| Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_reads_and_repeatable_changes_are_retried() {
        for (effect, again) in [
            (Effect::Read, true),
            (Effect::Repeatable, true),
            (Effect::Create, false),
            (Effect::Transition { arguments: false }, false),
            (Effect::Once, false),
        ] {
            assert_eq!(effect.may_repeat(), again, "{effect:?}");
        }
    }

    #[test]
    fn debug_of_a_request_does_not_show_its_body() {
        let body = json!({"driver_info": {"redfish_password": "hunter2"}});
        let call: Call<()> = order("create a node", Method::Post, &["nodes"], Effect::Create).with_body(body);
        let shown = format!("{call:?} {:?}", call.request());
        assert!(shown.contains("nodes") && !shown.contains("hunter2"), "{shown}");
        assert!(call.request().leaks_secret("bad value 'hunter2'"));
    }
}
