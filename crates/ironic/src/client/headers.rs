//! The headers of requests and responses.

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, HeaderValue};

use crate::version::{Microversion, Range};

const VERSION_HEADER: &str = "x-openstack-ironic-api-version";
const MINIMUM_HEADER: &str = "x-openstack-ironic-api-minimum-version";
const MAXIMUM_HEADER: &str = "x-openstack-ironic-api-maximum-version";
pub(super) const REQUEST_ID_HEADER: &str = "x-openstack-request-id";

pub(super) fn headers(microversion: Microversion) -> [(&'static str, String); 3] {
    [
        (VERSION_HEADER, microversion.to_string()),
        ("openstack-api-version", format!("baremetal {microversion}")),
        ("accept", "application/json".to_owned()),
    ]
}

pub(super) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).map(HeaderValue::to_str)?.ok()?;
    Some(value.chars().take(200).collect())
}

pub(super) fn range(headers: &HeaderMap) -> Option<Range> {
    let read = |name| text(headers, name).and_then(|text| Microversion::parse(&text));
    Some(Range {
        minimum: read(MINIMUM_HEADER)?,
        maximum: read(MAXIMUM_HEADER)?,
    })
}

pub(super) fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc2822(text).ok().map(|date| date.to_utc())
}
