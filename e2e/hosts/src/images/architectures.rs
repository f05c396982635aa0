//! An agent per architecture: each machine boots that of its own.

use anyhow::{Context as _, ensure};
use metal3_ironic_life::built_in_profile;
use metal3_ironic_life::compare::differences;
use metal3_sim_bmc::identity::Number;
use serde_json::json;

use super::agents::Agent;
use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::env::{Special, TestEnv};
use crate::hardware;
use crate::phase::Phase;
use crate::program::MoreOptions;

/// The machine of the other architecture.
const TWO: Number = Number(2);
const PROFILE: &str = "arm";
/// What the user has on the disk.
const DATA: &[u8] = b"data of the user";

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "a machine boots the agent of its architecture, and one of another architecture the usual agent";
    let (usual, other) = (Agent::write(start, "usual")?, Agent::write(start, "aarch64")?);
    let program = MoreOptions {
        variables: vec![
            ("DEPLOY_KERNEL_URL", usual.kernel.clone()),
            ("DEPLOY_RAMDISK_URL", usual.ramdisk.clone()),
            ("DEPLOY_KERNEL_URL_AARCH64", other.kernel.clone()),
            ("DEPLOY_RAMDISK_URL_AARCH64", other.ramdisk.clone()),
        ],
        ..MoreOptions::default()
    };
    let special = Special {
        machines: Some(format!("{}=1,{PROFILE}=1", start.arguments.profile)),
        program,
    };
    let prepare = async |env: &TestEnv| {
        env.create_host(ONE).await?;
        Phase::Enrol.wait(env, ONE).await?;
        env.lab()?.fill_disk(TWO, "sda", DATA.to_vec()).await
    };
    let life = async |env: &TestEnv| {
        life(env, &other).await?;
        usual.check(env, ONE).await
    };
    lives::run(start.env(special).await?, claims, claim, prepare, life).await
}

/// The other host is registered and inspected, and deleted.
async fn life(env: &TestEnv, agent: &Agent) -> anyhow::Result<()> {
    let spec = json!({ "architecture": "aarch64", "automatedCleaningMode": "disabled" });
    env.create_host_with(TWO, spec).await?;
    Phase::Enrol.wait(env, TWO).await?;
    agent.check(env, TWO).await?;
    let host = env.get(TWO).await?.context("the host does not exist")?;
    let found = serde_json::to_value(host.status.hardware)?;
    let differ = differences(&hardware::expected(&built_in_profile(PROFILE)?, TWO), &found);
    ensure!(differ.is_empty(), "its hardware: {differ:#?}");
    let disk = env.lab()?.read(&format!("/machines/{TWO}/disks/sda")).await?;
    ensure!(disk == DATA, "sda holds {} other bytes", disk.len());
    Phase::Delete.start(env, TWO).await?;
    Phase::Delete.wait(env, TWO).await
}
