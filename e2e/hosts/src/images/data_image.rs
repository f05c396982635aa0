//! A DataImage: it is in the drive from one reboot to another, and the machine runs from its disk all the time.

use anyhow::{Context as _, ensure};
use kube::api::DeleteParams;
use metal3_api::metal3::v1alpha1::DataImage;
use serde_json::{Value, json};

use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::document::part;
use crate::drive;
use crate::env::{Special, TestEnv};
use crate::level::name;
use crate::phase::Phase;

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "a DataImage is in the drive from a reboot to the next after its deletion, and the disk is the image's";
    lives::run(start.env(Special::default()).await?, claims, claim, prepare, life).await
}

async fn prepare(env: &TestEnv) -> anyhow::Result<()> {
    for (name, key, value) in drive::secrets(ONE) {
        env.create_secret(&name, json!({ key: value })).await?;
    }
    env.create_host(ONE).await?;
    Phase::Enrol.wait(env, ONE).await?;
    Phase::Provision.start(env, ONE).await?;
    Phase::Provision.wait(env, ONE).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    let image = env.session.image(2)?;
    let boots = boots(env).await?;
    let object = json!({ "metadata": { "name": name(ONE) }, "spec": { "url": image.raw.url } });
    env.create::<DataImage>(object).await?;
    // The host is rebooted once the program has seen the object.
    env.eventually(async || {
        let finalizers = found(env).await?.and_then(|found| found.metadata.finalizers);
        ensure!(finalizers.is_some_and(|all| !all.is_empty()), "it has no finalizer");
        Ok(())
    })
    .await?;
    rebooted(env, boots + 1).await?;
    env.eventually(async || attached(env, &image.raw.url, &image.bytes).await)
        .await?;
    on_disk(env).await?;
    env.api::<DataImage>()
        .delete(&name(ONE), &DeleteParams::default())
        .await?;
    env.eventually(async || {
        let error = found(env).await?.context("it is gone")?.status.error;
        ensure!(error.is_some(), "it does not show that it stays in the drive");
        Ok(())
    })
    .await?;
    rebooted(env, boots + 2).await?;
    env.eventually(async || {
        ensure!(found(env).await?.is_none(), "the object exists");
        Ok(())
    })
    .await?;
    let media = part(&env.machine(ONE).await?, "media");
    ensure!(media == json!({}), "the drives hold {media}");
    on_disk(env).await
}

async fn found(env: &TestEnv) -> anyhow::Result<Option<DataImage>> {
    Ok(env.api::<DataImage>().get_opt(&name(ONE)).await?)
}

async fn boots(env: &TestEnv) -> anyhow::Result<u64> {
    let boots = part(&env.machine(ONE).await?, "boots");
    boots.as_u64().context("no count of boots")
}

/// Has the host rebooted by the annotation, and checks that it was started once.
async fn rebooted(env: &TestEnv, expected: u64) -> anyhow::Result<()> {
    env.edit(
        ONE,
        json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }),
    )
    .await?;
    env.until(ONE, "rebooted", |host| {
        let annotations = host.and_then(|host| host.metadata.annotations.as_ref());
        let is_asked = annotations.is_some_and(|all| all.contains_key("reboot.metal3.io"));
        !is_asked && Phase::Provision.is_reached(host)
    })
    .await?;
    env.eventually(async || {
        let boots = boots(env).await?;
        ensure!(boots == expected, "it was started {boots} times and not {expected}");
        Ok(())
    })
    .await
}

/// The drive serves the bytes of the image, and the status records it.
async fn attached(env: &TestEnv, url: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let recorded = found(env).await?.context("the object is gone")?.status.attached_image;
    ensure!(
        recorded.is_some_and(|recorded| recorded.url == url),
        "the status does not record it"
    );
    let media = part(&env.machine(ONE).await?, "media");
    let place = media.pointer("/Cd/image").and_then(Value::as_str);
    let place = place.with_context(|| format!("the drives hold {media}"))?;
    let served = reqwest::get(place).await?.error_for_status()?.bytes().await?;
    ensure!(served == bytes, "{place} is another image");
    Ok(())
}

async fn on_disk(env: &TestEnv) -> anyhow::Result<()> {
    env.lab()?.check_disk(ONE, &env.image(ONE)?.bytes).await?;
    let writes = part(&env.machine(ONE).await?, "writes");
    ensure!(writes == 1, "the disk was written {writes} times");
    Ok(())
}
