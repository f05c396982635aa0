//! Descriptions of requests without names, so that the requests for two nodes compare equal.

use http::{Method, Request};
use serde_json::Value;

/// Describes a request. `None` for requests of the change feed, whose number depends on time.
#[must_use]
pub fn describe_request(request: &Request<Vec<u8>>) -> Option<String> {
    let path = request.uri().path().trim_start_matches("/v1").trim_matches('/');
    if request.method() == Method::GET && ["", "nodes", "nodes/detail"].contains(&path) {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    if let [_, name, ..] = parts.as_mut_slice() {
        *name = "_";
    }
    let method = request.method();
    let body = serde_json::from_slice::<Value>(request.body()).unwrap_or_default();
    let target = body.get("target").and_then(Value::as_str);
    let target = target.map(|target| format!(" {target}")).unwrap_or_default();
    Some(format!("{method} {}{target}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(method: Method, uri: &str, body: &str) -> Option<String> {
        let request = Request::builder().method(method).uri(uri);
        describe_request(&request.body(body.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn description_has_no_names_and_skips_requests_of_the_feed() {
        let text = describe(Method::PUT, "/v1/nodes/a~b/states/provision", r#"{"target":"active"}"#);
        assert_eq!(text.unwrap(), "PUT nodes/_/states/provision active");
        assert_eq!(describe(Method::GET, "/v1/nodes/a", "").unwrap(), "GET nodes/_");
        for quiet in ["/", "/v1/nodes/detail?limit=20", "/v1/nodes"] {
            assert_eq!(describe(Method::GET, quiet, ""), None);
        }
        assert_eq!(describe(Method::POST, "/v1/nodes", "{}").unwrap(), "POST nodes");
    }
}
