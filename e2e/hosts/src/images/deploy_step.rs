//! A deploy step of the agent that installs without an image.

use metal3_sim_bmc::agent::INSTALLED;
use serde_json::json;

use super::{ONE, Start, deployed, lives};
use crate::claims::Claims;
use crate::env::{Special, TestEnv};

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "a deploy step of the agent installs once, and what it installed is removed";
    let env = start.env(Special::default()).await?;
    lives::run(env, claims, claim, deployed::enrolled, life).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    let ordered = json!({ "customDeploy": { "method": "install_system" } });
    deployed::deployed(env, &ordered, INSTALLED).await?;
    deployed::removed(env).await?;
    env.lab()?.check_blank(ONE).await
}
