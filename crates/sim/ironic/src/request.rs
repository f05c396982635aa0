//! Parsing of HTTP requests.

use std::fmt;

use http::Method;
use metal3_ironic::version::Microversion;
use serde_json::Value;

use crate::refusal::Refusal;

/// The microversion header.
const VERSION: &str = "x-openstack-ironic-api-version";

/// The default and maximum page size.
const MAX_PAGE: usize = 1000;

/// A parsed request.
#[derive(Clone)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// Path segments without the leading `v1`.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    /// `Err` with the header text when it is not a microversion.
    pub(crate) version: Result<Option<Microversion>, String>,
    pub(crate) login: Option<String>,
    body: Vec<u8>,
}

impl fmt::Debug for ApiRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path.join("/"))
    }
}

impl ApiRequest {
    pub(crate) fn read(request: &http::Request<Vec<u8>>) -> Self {
        let header = |name: &str| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let segments = request.uri().path().split('/').filter(|segment| !segment.is_empty());
        let mut path: Vec<String> = segments.map(unescape).collect();
        if path.first().is_some_and(|first| first == "v1") {
            path.remove(0);
        }
        let query = request.uri().query().unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self {
            method: request.method().clone(),
            path,
            query: pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (unescape(key), unescape(&value.replace('+', " "))))
                .collect(),
            version: match header(VERSION) {
                None => Ok(None),
                Some(text) => Microversion::parse(&text).map(Some).ok_or(text),
            },
            login: header("authorization"),
            body: request.body().clone(),
        }
    }

    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        let found = self.query.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a list is to contain whole records.
    pub(crate) fn is_detailed(&self) -> bool {
        let detail = self.query("detail");
        detail.is_some_and(|detail| detail.eq_ignore_ascii_case("true"))
    }

    /// Rejects the query of a list with other parameters than `known`.
    pub(crate) fn check_query(&self, what: &str, known: &[&str]) -> Result<(), Refusal> {
        match self.query.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) => Err(Refusal::not_simulated(&format!("listing {what} by {key}"))),
        }
    }

    /// The page size of a list.
    pub(crate) fn page_size(&self) -> Result<usize, Refusal> {
        match self.query("limit").map(str::parse::<usize>) {
            None => Ok(MAX_PAGE),
            Some(Ok(limit)) if limit > 0 => Ok(limit.min(MAX_PAGE)),
            Some(_) => Err(Refusal::invalid("Limit must be positive")),
        }
    }

    /// The body as JSON; an empty body is null.
    pub(crate) fn json(&self) -> Result<Value, Refusal> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|error| Refusal::invalid(format!("Invalid JSON: {error}")))
    }

    /// The path with placeholders for names: the resource of the counters.
    pub(crate) fn resource(&self) -> String {
        let shown = |(index, segment): (usize, &String)| match (index, self.path.first().map(String::as_str)) {
            (1, Some("nodes")) => "{node}".to_owned(),
            (1, Some("ports")) => "{port}".to_owned(),
            (3, Some("nodes")) if self.path.get(2).is_some_and(|part| part == "vifs") => "{vif}".to_owned(),
            _ => segment.clone(),
        };
        self.path.iter().enumerate().map(shown).collect::<Vec<_>>().join("/")
    }
}

/// Decodes percent encoding. An invalid escape stays as it is.
fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let decoded = (*first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match decoded {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str) -> ApiRequest {
        ApiRequest::read(&http::Request::builder().uri(uri).body(Vec::new()).unwrap())
    }

    #[test]
    fn path_is_parsed_with_and_without_version() {
        for uri in [
            "/v1/nodes/ns~a%2Fb/vifs/1?limit=20&sort_key=a+b%41",
            "/nodes/ns~a%2fb/vifs/1?limit=20&sort_key=a%20bA",
        ] {
            let request = request(uri);
            assert_eq!(request.path, ["nodes", "ns~a/b", "vifs", "1"]);
            assert_eq!(request.query("sort_key"), Some("a bA"));
            assert_eq!(request.resource(), "nodes/{node}/vifs/{vif}");
        }
        assert_eq!(request("/v1/nodes/%zz%4").path, ["nodes", "%zz%4"]);
        assert_eq!(request("/v1").resource(), "");
    }
}
