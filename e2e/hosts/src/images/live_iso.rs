//! An image that the machine runs from its virtual drive, without an agent: no disk changes.

use anyhow::ensure;
use serde_json::json;

use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::document::part;
use crate::env::{Special, TestEnv};
use crate::phase::Phase;

/// What the user has on the disk.
const DATA: &[u8] = b"data of the user";

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "the machine runs the ordered live ISO, and no disk changes";
    lives::run(start.env(Special::default()).await?, claims, claim, prepare, life).await
}

async fn prepare(env: &TestEnv) -> anyhow::Result<()> {
    env.create_host_with(ONE, json!({ "automatedCleaningMode": "disabled" }))
        .await?;
    Phase::Enrol.wait(env, ONE).await?;
    env.lab()?.fill_disk(ONE, "sda", DATA.to_vec()).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    // Two images, one after the other.
    for number in [1, 2] {
        let image = env.session.image(number)?;
        let ordered = json!({ "url": image.raw.url, "format": "live-iso" });
        env.edit(ONE, json!({ "spec": { "image": ordered } })).await?;
        let lab = env.lab()?;
        env.eventually(async || lab.check_iso(ONE, &image.bytes).await).await?;
        Phase::Provision.wait(env, ONE).await?;
        lab.check_iso(ONE, &image.bytes).await?;
        unchanged(env).await?;
    }
    env.edit(ONE, json!({ "spec": { "image": null } })).await?;
    Phase::Deprovision.wait(env, ONE).await?;
    unchanged(env).await
}

async fn unchanged(env: &TestEnv) -> anyhow::Result<()> {
    let found = env.lab()?.read(&format!("/machines/{ONE}/disks/sda")).await?;
    ensure!(found == DATA, "sda holds {} other bytes", found.len());
    let machine = env.machine(ONE).await?;
    ensure!(part(&machine, "writes") == 0, "an agent wrote: {machine}");
    Ok(())
}
