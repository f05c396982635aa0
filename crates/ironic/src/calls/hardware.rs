//! BIOS, firmware, traits, virtual media and event subscriptions of a node.

use serde::Deserialize;
use serde_json::json;

use super::NodeRef;
use crate::model::hardware::{
    BiosSetting, CreatedSubscription, FirmwareComponent, NewSubscription, Subscription, Subscriptions, VirtualMedia,
};
use crate::model::page::{self, Page};
use crate::request::{Call, Effect, Method, change, order, read, read_with};
use crate::text::{self, ControlCharacter};
use crate::version::LIST_VIRTUAL_MEDIA;

/// The BIOS settings with their details.
#[must_use]
pub fn bios(node: &NodeRef) -> Call<Page<BiosSetting>> {
    read_with("read BIOS settings", &["nodes", node.segment(), "bios"], |body| {
        page::decode("bios", body)
    })
    .with_query("detail", "true")
}

/// The firmware components.
#[must_use]
pub fn firmware(node: &NodeRef) -> Call<Page<FirmwareComponent>> {
    read_with(
        "read firmware versions",
        &["nodes", node.segment(), "firmware"],
        |body| page::decode("firmware", body),
    )
}

/// The traits.
#[must_use]
pub fn traits(node: &NodeRef) -> Call<Vec<String>> {
    #[derive(Deserialize)]
    struct Answer {
        traits: Vec<String>,
    }
    read_with("read traits", &["nodes", node.segment(), "traits"], |body| {
        serde_json::from_slice(body).map(|answer: Answer| answer.traits)
    })
}

/// Replaces the traits.
#[must_use]
pub fn set_traits(node: &NodeRef, traits: &[String]) -> Call<()> {
    let path = ["nodes", node.segment(), "traits"];
    order("set traits", Method::Put, &path, Effect::Repeatable).with_body(json!({"traits": traits}))
}

/// The attached images, which Ironic reads from the BMC synchronously.
#[must_use]
pub fn virtual_media(node: &NodeRef) -> Call<Vec<VirtualMedia>> {
    read("list virtual media", &["nodes", node.segment(), "vmedia"]).with_min_version(LIST_VIRTUAL_MEDIA)
}

/// Attaches an image as a CD.
///
/// # Errors
/// When the address has a control character.
pub fn attach_virtual_cd(node: &NodeRef, image_url: &str) -> Result<Call<()>, ControlCharacter> {
    let body = json!({"device_type": "cdrom", "image_url": image_url});
    text::check("vmedia", &body)?;
    let path = ["nodes", node.segment(), "vmedia"];
    Ok(order("attach virtual media", Method::Post, &path, Effect::Once).with_body(body))
}

/// Detaches the CD.
#[must_use]
pub fn detach_virtual_cd(node: &NodeRef) -> Call<()> {
    let path = ["nodes", node.segment(), "vmedia"];
    order("detach virtual media", Method::Delete, &path, Effect::Once).with_query("device_types", "cdrom")
}

/// The event subscriptions of the BMC, which Ironic reads from it with the node locked.
#[must_use]
pub fn subscriptions(node: &NodeRef) -> Call<Subscriptions> {
    let path = ["nodes", node.segment(), "vendor_passthru"];
    read("list event subscriptions", &path).with_query("method", "get_all_subscriptions")
}

/// One event subscription of the BMC. Ironic takes its identifier in the body, and fails when the BMC has none of it.
///
/// # Errors
/// When the identifier has a control character.
pub fn subscription(node: &NodeRef, id: &str) -> Result<Call<Subscription>, ControlCharacter> {
    let body = json!({"id": id});
    text::check("subscription", &body)?;
    let path = ["nodes", node.segment(), "vendor_passthru"];
    let request = read("read an event subscription", &path);
    Ok(request.with_query("method", "get_subscription").with_body(body))
}

/// Creates an event subscription in the BMC. A second request creates a second one. The response comes after the BMC has
/// done it.
///
/// # Errors
/// When a text has a control character.
pub fn create_subscription(
    node: &NodeRef,
    new: &NewSubscription,
) -> Result<Call<CreatedSubscription>, ControlCharacter> {
    let body = new.body();
    text::check("subscription", &body)?;
    let path = ["nodes", node.segment(), "vendor_passthru"];
    let request = change("create an event subscription", Method::Post, &path, Effect::Once, body);
    Ok(request.with_query("method", "create_subscription"))
}

/// Deletes an event subscription from the BMC.
///
/// # Errors
/// When the identifier has a control character.
pub fn delete_subscription(node: &NodeRef, id: &str) -> Result<Call<()>, ControlCharacter> {
    let body = json!({"id": id});
    text::check("subscription", &body)?;
    let path = ["nodes", node.segment(), "vendor_passthru"];
    let request = order("delete an event subscription", Method::Delete, &path, Effect::Once);
    Ok(request.with_query("method", "delete_subscription").with_body(body))
}
