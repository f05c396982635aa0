//! A PreprovisioningImage that the program itself serves: the machine boots the agent that it names.

use anyhow::{Context as _, ensure};
use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use serde_json::json;

use super::agents::Agent;
use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::env::{Special, TestEnv};
use crate::level::name;
use crate::phase::Phase;
use crate::program::MoreOptions;

/// What the user has on the disk.
const DATA: &[u8] = b"data of the user";

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "the machine boots the agent that its PreprovisioningImage names, and the image goes with its host";
    let agent = Agent::write(start, "named")?;
    let program = MoreOptions {
        flags: vec!["--build-preprov-image"],
        variables: vec![
            ("DEPLOY_KERNEL_URL", agent.kernel.clone()),
            ("DEPLOY_RAMDISK_URL", agent.ramdisk.clone()),
        ],
    };
    let special = Special {
        program,
        ..Special::default()
    };
    let life = async |env: &TestEnv| life(env, &agent).await;
    lives::run(start.env(special).await?, claims, claim, prepare, life).await
}

async fn prepare(env: &TestEnv) -> anyhow::Result<()> {
    env.lab()?.fill_disk(ONE, "sda", DATA.to_vec()).await
}

/// A host is registered and inspected, and deleted.
async fn life(env: &TestEnv, agent: &Agent) -> anyhow::Result<()> {
    env.create_host_with(ONE, json!({ "automatedCleaningMode": "disabled" }))
        .await?;
    Phase::Enrol.wait(env, ONE).await?;
    let image = found(env)
        .await?
        .context("the host has no PreprovisioningImage")?
        .status;
    let is_ready = image
        .conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == ConditionStatus::True);
    ensure!(
        is_ready && image.image_url.as_ref() == Some(&agent.ramdisk),
        "it is {image:?}"
    );
    agent.check(env, ONE).await?;
    // The configured agent has the same URLs, and leaves no such mark.
    let node = env.node(ONE).await?;
    let mark = node.pointer("/driver_info/metal3_agent");
    ensure!(mark.is_some(), "the agent is not that of the PreprovisioningImage");
    let disk = env.lab()?.read(&format!("/machines/{ONE}/disks/sda")).await?;
    ensure!(disk == DATA, "sda holds {} other bytes", disk.len());
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await?;
    env.eventually(async || {
        env.cluster.collect_garbage();
        ensure!(found(env).await?.is_none(), "its PreprovisioningImage exists");
        Ok(())
    })
    .await
}

async fn found(env: &TestEnv) -> anyhow::Result<Option<PreprovisioningImage>> {
    Ok(env.api::<PreprovisioningImage>().get_opt(&name(ONE)).await?)
}
