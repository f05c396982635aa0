//! A page of a list.
//!
//! Ironic ends a page with a link to the next one. The link contains Ironic's own view of its address, so only the
//! query is used: a link must not redirect the login to another server.

use metal3_domain::ids::NodeUuid;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Items of a list, unreadable items, and the next page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The readable items.
    pub items: Vec<T>,
    /// Items that exist and cannot be decoded.
    pub unreadable: Vec<Unreadable>,
    /// The marker of the next page, if there is one.
    pub next: Option<Marker>,
}

/// An item that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its UUID, if that is readable.
    pub uuid: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl Unreadable {
    /// Its UUID, if that is valid.
    #[must_use]
    pub fn node_uuid(&self) -> Option<NodeUuid> {
        NodeUuid::parse(self.uuid.as_ref()?.as_str()).ok()
    }
}

/// The start of a page: after the item with this UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(pub(crate) String);

impl Marker {
    /// The page after this item.
    #[must_use]
    pub fn behind(uuid: impl Into<String>) -> Self {
        Self(uuid.into())
    }
}

/// Reads a page with its items under `key`.
pub(crate) fn decode<T: DeserializeOwned>(key: &str, body: &[u8]) -> Result<Page<T>, serde_json::Error> {
    decode_with(key, body, serde_json::from_value)
}

/// The same with a decoder of the items.
pub(crate) fn decode_with<T>(
    key: &str,
    body: &[u8],
    decode: fn(Value) -> Result<T, serde_json::Error>,
) -> Result<Page<T>, serde_json::Error> {
    let mut body: Map<String, Value> = serde_json::from_slice(body)?;
    let items = match body.remove(key).unwrap_or_default() {
        Value::Array(items) => items,
        // The error says what it is instead.
        other => serde_json::from_value(other)?,
    };
    let last = items.last().and_then(identity);
    let mut page = Page {
        items: Vec::new(),
        unreadable: Vec::new(),
        next: body
            .get("next")
            .and_then(Value::as_str)
            .and_then(|link| marker(link, last)),
    };
    for item in items {
        let uuid = identity(&item);
        match decode(item) {
            Ok(item) => page.items.push(item),
            Err(error) => page.unreadable.push(Unreadable {
                uuid,
                reason: error.to_string(),
            }),
        }
    }
    Ok(page)
}

fn identity(item: &Value) -> Option<String> {
    item.get("uuid").and_then(Value::as_str).map(str::to_owned)
}

/// The marker in a link; a link without a marker means the last item.
fn marker(link: &str, last: Option<String>) -> Option<Marker> {
    let query = link.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("marker="))
        .filter(|marker| !marker.is_empty() && !marker.contains('%'))
        .map(str::to_owned)
        .or(last)
        .map(Marker)
}

#[cfg(test)]
mod tests {
    use super::super::node::Node;
    use super::*;
    use serde_json::json;

    const A: &str = "30aa2698-e8ec-4373-a5a4-af91b934e08a";
    const B: &str = "30aa2698-e8ec-4373-a5a4-af91b934e08b";

    fn page(value: &Value) -> Page<Node> {
        decode("nodes", value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn an_unreadable_node_does_not_hide_the_others() {
        let page = page(&json!({"nodes": [
            {"uuid": A, "provision_state": "enroll", "power_state": null, "maintenance": null},
            {"uuid": B, "provision_state": 7},
            "nonsense",
        ]}));
        assert_eq!(page.items.len(), 1);
        assert_eq!(page.unreadable.len(), 2);
        assert_eq!(page.unreadable[0].uuid.as_deref(), Some(B));
        assert_eq!(page.unreadable[1].uuid, None);
        assert_eq!(page.next, None);
    }

    #[test]
    fn only_the_marker_of_the_next_link_is_used() {
        let nodes = json!([{"uuid": A, "provision_state": "active"}]);
        for (link, marker) in [
            (
                json!(format!("https://evil.example/v1/nodes?limit=1&marker={B}")),
                Some(B),
            ),
            (json!("https://ironic/v1/nodes?limit=1"), Some(A)),
            (json!("nonsense"), Some(A)),
            (json!(null), None),
            (json!(3), None),
        ] {
            let page = page(&json!({"nodes": nodes, "next": link}));
            assert_eq!(page.next.map(|marker| marker.0).as_deref(), marker, "{link}");
        }
    }

    #[test]
    fn a_body_that_is_not_a_list_is_an_error() {
        for body in ["", "[]", "<html>", r#"{"nodes": {}}"#, r#"{"ports": []}"#, "null"] {
            assert!(decode::<Node>("nodes", body.as_bytes()).is_err(), "{body}");
        }
    }
}
