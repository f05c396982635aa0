//! The virtual drive of a node.

use anyhow::{Context as _, ensure};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::hardware::VirtualMedia;
use serde_json::{Map, Value, json};

use super::microversion::inner;
use crate::lab::{Lab, POLL_INTERVAL, TIMEOUT};

/// A start of a host that has such an image must not wait for a retry.
pub(crate) async fn an_image_that_no_drive_takes_is_rejected_at_once(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let path = format!("/v1/nodes/{uuid}/vmedia");
    for body in [
        json!({ "device_type": "cdrom", "image_url": "ftp://images.example/a.iso" }),
        json!({ "device_type": "cdrom", "image_url": "a.iso" }),
        json!({ "device_type": "tape", "image_url": "http://images.example/a.iso" }),
        json!({ "device_type": "cdrom" }),
    ] {
        let raw = lab.raw("POST", &path, "1.93", Some(body.clone())).await?;
        ensure!(raw.status == 400, "{} for {body}", raw.status);
    }
    let ejected = format!("{path}?device_types=tape");
    let raw = lab.raw("DELETE", &ejected, "1.93", None).await?;
    ensure!(raw.status == 400, "{}", raw.status);
    let problem = inner(&raw)?;
    let text = problem.get("faultstring").and_then(Value::as_str).unwrap_or_default();
    ensure!(text.contains("Invalid device type"), "{problem}");
    lab.remove(&uuid).await
}

/// Only the record of the node shows that it failed.
pub(crate) async fn a_driver_without_a_drive_accepts_a_change_and_records_its_error(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let detach = calls::hardware::detach_virtual_cd(&NodeRef::from(&uuid));
    lab.unlocked(|| lab.client.send(&detach)).await?;
    let begun = lab.clock.monotonic();
    let error = loop {
        let node = lab.read(&uuid).await?;
        if let Some(error) = node.last_error.filter(|_| node.reservation.is_none()) {
            break error;
        }
        ensure!(lab.clock.monotonic().since(begun) < TIMEOUT, "no error");
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    ensure!(
        error.contains("Could not detach") && error.contains("does not support"),
        "{error}"
    );
    lab.remove(&uuid).await
}

/// The BMC never has the URL of the user: Ironic publishes a copy, and names it after the node.
pub(crate) async fn an_attached_image_is_named_after_its_node(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let image = lab.image()?;
    let source = image.get("image_source").and_then(Value::as_str).unwrap_or_default();
    let attach = calls::hardware::attach_virtual_cd(&node, source)?;
    let detach = calls::hardware::detach_virtual_cd(&node);
    for _ in 0..2 {
        // A second insertion replaces the first.
        lab.unlocked(|| lab.client.send(&attach)).await?;
        machine.until(&uuid, "free", |node| node.reservation.is_none()).await?;
        let media = lab.send(&calls::hardware::virtual_media(&node)).await?;
        let holding: Vec<&VirtualMedia> = media
            .iter()
            .filter(|medium| medium.holds_image() == Some(true))
            .collect();
        let [held] = holding.as_slice() else {
            anyhow::bail!("{media:?}");
        };
        let named = held.image.as_deref().context("the drive does not name its image")?;
        ensure!(
            held.is_for_discs() && named.contains(&format!("cdrom-{uuid}")),
            "{held:?}"
        );
    }
    lab.unlocked(|| lab.client.send(&detach)).await?;
    machine.until(&uuid, "free", |node| node.reservation.is_none()).await?;
    // Ejecting from an empty drive is no error.
    lab.unlocked(|| lab.client.send(&detach)).await?;
    let free = machine.until(&uuid, "free", |node| node.reservation.is_none()).await?;
    ensure!(free.last_error.is_none(), "{:?}", free.last_error);
    lab.remove(&uuid).await
}
