//! What scenarios share that deploy onto a disk: the order, the comparison, the removal.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::ONE;
use crate::document::part;
use crate::env::TestEnv;
use crate::phase::Phase;

/// A host that waits for an image.
pub(super) async fn enrolled(env: &TestEnv) -> anyhow::Result<()> {
    env.create_host(ONE).await?;
    Phase::Enrol.wait(env, ONE).await
}

/// Deploys what the members of the spec order, and compares the disk, which an agent writes once.
pub(super) async fn deployed(env: &TestEnv, spec: &Value, expected: &[u8]) -> anyhow::Result<()> {
    let before = writes(env).await?;
    env.edit(ONE, json!({ "spec": spec })).await?;
    let lab = env.lab()?;
    env.eventually(async || lab.check_disk(ONE, expected).await).await?;
    Phase::Provision.wait(env, ONE).await?;
    lab.check_disk(ONE, expected).await?;
    let written = writes(env).await?.saturating_sub(before);
    ensure!(written == 1, "it was written {written} times");
    Ok(())
}

/// Deprovisions the host; its disk is not written again.
pub(super) async fn removed(env: &TestEnv) -> anyhow::Result<()> {
    let before = writes(env).await?;
    env.edit(ONE, json!({ "spec": { "image": null, "customDeploy": null } }))
        .await?;
    Phase::Deprovision.wait(env, ONE).await?;
    ensure!(writes(env).await? == before, "it was written again");
    Ok(())
}

async fn writes(env: &TestEnv) -> anyhow::Result<u64> {
    let writes = part(&env.machine(ONE).await?, "writes");
    writes.as_u64().context("no count of writes")
}
