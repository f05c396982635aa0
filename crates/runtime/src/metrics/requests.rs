//! Metrics of requests to API servers.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::registered;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    code: String,
    method: String,
    host: String,
}

/// The metrics of a client; clones share them.
#[derive(Debug, Clone)]
pub struct RequestMetrics {
    requests: Family<ByCode, Counter>,
}

impl RequestMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            requests: registered(
                registry,
                "rest_client_requests",
                "Requests to API servers, by status code, method and host",
            ),
        }
    }

    /// The server responded with this status code. One that is not registered is `other`: the server of a tenant sends any.
    pub fn answered(&self, code: StatusCode, method: &str, host: &str) {
        let is_registered = code.canonical_reason().is_some();
        let code = if is_registered { code.as_str() } else { "other" };
        self.count(code.to_owned(), method, host);
    }

    /// No response: the server was not reached, or the timeout passed.
    pub fn unanswered(&self, method: &str, host: &str) {
        // The label value of client-go.
        self.count("<error>".to_owned(), method, host);
    }

    fn count(&self, code: String, method: &str, host: &str) {
        let by = ByCode {
            code,
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.requests.get_or_create_owned(&by).inc();
    }
}
