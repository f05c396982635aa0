//! An image whose URL is redirected: Ironic follows it, and the host keeps what it has.

use anyhow::ensure;
use serde_json::{Value, json};

use super::{ONE, Start, deployed, lives};
use crate::claims::Claims;
use crate::env::{Special, TestEnv};

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "an image behind a redirect is written once, and removed";
    let env = start.env(Special::default()).await?;
    lives::run(env, claims, claim, deployed::enrolled, life).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    let image = env.session.image(1)?;
    let files = &env.session.ironic.endpoint().files_url;
    // The file server redirects these paths to those without the prefix.
    let url = image.raw.url.replacen(files, &format!("{files}/redirect"), 1);
    let ordered = json!({ "url": url, "format": "raw", "checksum": image.raw.sha256, "checksumType": "sha256" });
    deployed::deployed(env, &json!({ "image": ordered }), &image.bytes).await?;
    let source = env.machine(ONE).await?.pointer("/disks/0/written/url").cloned();
    ensure!(
        source.as_ref().and_then(Value::as_str) == Some(&image.raw.url),
        "the image is from {source:?}"
    );
    deployed::removed(env).await?;
    env.lab()?.check_blank(ONE).await
}
