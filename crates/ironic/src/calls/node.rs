//! Nodes: find, list, create, change, delete, and the reports about one node.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::NodeRef;
use super::patch::Patch;
use crate::model::inventory::Inspection;
use crate::model::node::{HistoryEntry, Node, Validation};
use crate::model::page::{self, Marker, Page};
use crate::request::{Call, Decode, Effect, Method, change, order, read, read_with};
use crate::text::{self, ControlCharacter};
use crate::version::DISABLE_POWER_OFF;

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By creation: the only order in which no node can be missed, since its key never changes.
    Created,
    /// Newest change first. Nodes that never changed are not reliably listed across pages.
    NewestChange,
}

/// A node to be created. `Debug` shows no values of `driver_info`.
#[derive(Clone, PartialEq)]
pub struct NewNode {
    /// `namespace~name`.
    pub name: String,
    /// The hardware type.
    pub driver: String,
    /// Address and credentials of the BMC.
    pub driver_info: Map<String, Value>,
    /// Hardware properties.
    pub properties: Map<String, Value>,
    /// Interfaces and other fields: `boot_interface`, `automated_clean`.
    pub more: Map<String, Value>,
    /// Whether power off is forbidden. Set it only if Ironic supports the field.
    pub disable_power_off: Option<bool>,
}

impl std::fmt::Debug for NewNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewNode")
            .field("name", &self.name)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

/// One node with all its fields.
#[must_use]
pub fn get(node: &NodeRef) -> Call<Node> {
    read("read a node", &["nodes", node.segment()])
}

/// A page of nodes with all their fields, read as [`Node`] or as a part of it. Ironic may silently use a smaller limit.
#[must_use]
pub fn list<T: DeserializeOwned>(order: Order, limit: u16, behind: Option<&Marker>) -> Call<Page<T>> {
    list_with(order, limit, behind, |body| page::decode("nodes", body))
}

/// The same with a decoder of its own.
pub(crate) fn list_with<T>(
    order: Order,
    limit: u16,
    behind: Option<&Marker>,
    decode: Decode<Page<T>>,
) -> Call<Page<T>> {
    let mut call = read_with("list nodes", &["nodes"], decode)
        .with_query("detail", "true")
        .with_query("limit", limit.to_string());
    if order == Order::NewestChange {
        call = call.with_query("sort_key", "updated_at").with_query("sort_dir", "desc");
    }
    match behind {
        Some(marker) => call.with_query("marker", marker.0.clone()),
        None => call,
    }
}

/// Creates a node. The response contains its UUID.
///
/// # Errors
/// When a control character would get into its fields.
pub fn create(new: NewNode) -> Result<Call<Node>, ControlCharacter> {
    let mut body = new.more;
    body.insert("name".into(), new.name.into());
    body.insert("driver".into(), new.driver.into());
    body.insert("driver_info".into(), Value::Object(new.driver_info));
    body.insert("properties".into(), Value::Object(new.properties));
    // differs (`ironic-optional-power-off`): the Go manager always sends it, so older Ironic versions reject its nodes.
    let needs = new.disable_power_off.map(|forbidden| {
        body.insert("disable_power_off".into(), forbidden.into());
        DISABLE_POWER_OFF
    });
    let body = Value::Object(body);
    for field in text::CHECKED_FIELDS {
        text::check(field, body.get(field).unwrap_or(&Value::Null))?;
    }
    let call = change("create a node", Method::Post, &["nodes"], Effect::Create, body);
    Ok(match needs {
        Some(version) => call.with_min_version(version),
        None => call,
    })
}

/// Changes fields. The response is the changed node.
///
/// # Errors
/// When a control character would get into its fields.
pub fn patch(node: &NodeRef, patch: Patch) -> Result<Call<Node>, ControlCharacter> {
    let path = ["nodes", node.segment()];
    Ok(change(
        "change a node",
        Method::Patch,
        &path,
        Effect::Once,
        patch.into_body()?,
    ))
}

/// Deletes the node. The machine keeps running.
#[must_use]
pub fn delete(node: &NodeRef) -> Call<()> {
    order(
        "delete a node",
        Method::Delete,
        &["nodes", node.segment()],
        Effect::Once,
    )
}

/// Sets maintenance: Ironic does not manage the node.
#[must_use]
pub fn set_maintenance(node: &NodeRef, reason: &str) -> Call<()> {
    let path = ["nodes", node.segment(), "maintenance"];
    let body = json!({"reason": text::printable(reason)});
    order("set maintenance", Method::Put, &path, Effect::Repeatable).with_body(body)
}

/// Clears maintenance, and the fault.
#[must_use]
pub fn clear_maintenance(node: &NodeRef) -> Call<()> {
    let path = ["nodes", node.segment(), "maintenance"];
    order("clear maintenance", Method::Delete, &path, Effect::Repeatable)
}

/// Validates the interfaces of the node.
#[must_use]
pub fn validate(node: &NodeRef) -> Call<Validation> {
    read("validate a node", &["nodes", node.segment(), "validate"])
}

/// The result of the last inspection. Not found before the first one.
#[must_use]
pub fn inventory(node: &NodeRef) -> Call<Inspection> {
    read("read an inventory", &["nodes", node.segment(), "inventory"])
}

/// The history of errors, oldest first, with details: without them messages are truncated, and the reason often comes
/// last.
#[must_use]
pub fn history(node: &NodeRef) -> Call<Page<HistoryEntry>> {
    read_with("read a history", &["nodes", node.segment(), "history"], |body| {
        page::decode("history", body)
    })
    .with_query("detail", "true")
}
