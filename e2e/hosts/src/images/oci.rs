//! Images of a registry with a login: one by its tag, then another by its digest. Nothing is cleaned between them.

use anyhow::ensure;
use metal3_ironic_life::order::Image;
use serde_json::json;

use super::{ONE, Start, deployed, lives};
use crate::claims::Claims;
use crate::env::{Special, TestEnv};
use crate::phase::Phase;
use crate::registry::{PASSWORD, Registry, USERNAME};

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "images of a registry with a login are written once each, by tag and by digest";
    let env = start.env(Special::default()).await?;
    let blobs = images(&env)?.map(|image| image.bytes.clone());
    let registry = Registry::start(blobs.to_vec()).await?;
    let prepare = async |env: &TestEnv| {
        let login = json!({ "username": USERNAME, "password": PASSWORD });
        let logins = json!({ "auths": { &registry.host: login } });
        env.create_secret("registry", json!({ ".dockerconfigjson": logins.to_string() }))
            .await?;
        env.create_host_with(ONE, json!({ "automatedCleaningMode": "disabled" }))
            .await?;
        Phase::Enrol.wait(env, ONE).await
    };
    let life = async |env: &TestEnv| life(env, &registry).await;
    lives::run(env, claims, claim, prepare, life).await?;
    registry.stop().await;
    Ok(())
}

fn images(env: &TestEnv) -> anyhow::Result<[&Image; 2]> {
    Ok([env.session.image(1)?, env.session.image(2)?])
}

async fn life(env: &TestEnv, registry: &Registry) -> anyhow::Result<()> {
    let [first, second] = images(env)?;
    for (url, image) in [(registry.by_tag(0), first), (registry.by_digest(1)?, second)] {
        let ordered = json!({ "url": url, "ociAuthSecretName": "registry" });
        deployed::deployed(env, &json!({ "image": ordered }), &image.bytes).await?;
    }
    let host = serde_json::to_string(&env.get(ONE).await?)?;
    ensure!(!host.contains(PASSWORD), "the host shows the password");
    deployed::removed(env).await
}
