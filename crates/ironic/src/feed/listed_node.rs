//! A node of a list, with a fingerprint of its record.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::timing::SMALL_PAGE;
use crate::model::node::Node;
use crate::model::page::Page;
use crate::request::Call;

/// A node of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNode {
    /// The node.
    pub node: Arc<Node>,
    /// A hash of the whole record, unknown fields included. The time alone does not distinguish two records: some
    /// databases keep whole seconds.
    pub fingerprint: u64,
}

impl ListedNode {
    /// Reads a record.
    pub(super) fn of(record: Value) -> Result<Self, serde_json::Error> {
        let mut hasher = DefaultHasher::new();
        // The order of members does not count.
        record.hash(&mut hasher);
        Ok(Self {
            node: Arc::new(serde_json::from_value(record)?),
            fingerprint: hasher.finish(),
        })
    }
}

/// The last page that was short. While nothing changes, each poll brings it again, and no record is read.
#[derive(Debug, Default)]
pub(super) struct LastPage(Option<(u64, Page<ListedNode>)>);

impl LastPage {
    /// Reads the body of a response.
    pub(super) fn read(
        &mut self,
        call: &Call<Page<ListedNode>>,
        body: &[u8],
    ) -> Result<Page<ListedNode>, serde_json::Error> {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let digest = hasher.finish();
        if let Some((_, page)) = self.0.as_ref().filter(|(known, _)| *known == digest) {
            return Ok(page.clone());
        }
        let page = call.decode(body)?;
        if page.items.len() <= usize::from(SMALL_PAGE) {
            self.0 = Some((digest, page.clone()));
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::node::Order;
    use crate::feed::PageRequest;
    use serde_json::json;

    fn record(number: usize, members: &Value) -> Value {
        let mut record =
            json!({ "uuid": format!("{number:08x}-0000-0000-0000-000000000000"), "provision_state": "active" });
        let members = members.as_object().unwrap().clone();
        record.as_object_mut().unwrap().extend(members);
        record
    }

    #[test]
    fn fingerprint_is_of_all_members_in_any_order() {
        let of = |text: &str| {
            let record = serde_json::from_str(text).unwrap();
            ListedNode::of(record).unwrap().fingerprint
        };
        let one =
            r#"{"uuid": "30aa2698-e8ec-4373-a5a4-af91b934e08a", "provision_state": "active", "new": {"a": 1, "b": 2}}"#;
        let same =
            r#"{"new": {"b": 2, "a": 1}, "provision_state": "active", "uuid": "30aa2698-e8ec-4373-a5a4-af91b934e08a"}"#;
        assert_eq!(of(one), of(same));
        assert_ne!(of(one), of(&one.replace("2}", "3}")));
    }

    #[test]
    fn repeated_page_is_read_once_and_any_other_again() {
        let call = PageRequest {
            order: Order::NewestChange,
            limit: SMALL_PAGE,
            behind: None,
        }
        .call();
        let body = |count: usize, members: &Value| {
            let nodes: Vec<Value> = (0..count).map(|number| record(number, members)).collect();
            json!({ "nodes": nodes }).to_string().into_bytes()
        };
        let mut last = LastPage::default();
        let mut read = |body: &[u8]| last.read(&call, body).unwrap();
        let is_same =
            |one: &Page<ListedNode>, other: &Page<ListedNode>| Arc::ptr_eq(&one.items[0].node, &other.items[0].node);
        let (one, changed) = (body(2, &json!({})), body(2, &json!({ "new": 1 })));
        let first = read(&one);
        assert!(is_same(&first, &read(&one)));
        let second = read(&changed);
        assert!(!is_same(&first, &second));
        assert_ne!(first.items[0].fingerprint, second.items[0].fingerprint);
        assert_eq!(read(&one), first);
        // A long page is not kept.
        let long = body(usize::from(SMALL_PAGE) + 1, &json!({}));
        let page = read(&long);
        assert_eq!(page.items.len(), usize::from(SMALL_PAGE) + 1);
        assert!(!is_same(&page, &read(&long)));
        assert!(last.read(&call, b"{}").is_err());
    }
}
