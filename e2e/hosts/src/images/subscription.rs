//! A BMCEventSubscription with headers of a Secret: it is in the BMC once, until it is deleted.

use anyhow::ensure;
use kube::api::DeleteParams;
use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use serde_json::{Value, json};

use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::document::part;
use crate::env::{NAMESPACE, Special, TestEnv};
use crate::level::name;
use crate::phase::Phase;

const NAME: &str = "events";
const DESTINATION: &str = "https://192.0.2.1/events";
const TOKEN: &str = "Bearer 7f1c";

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "a BMC has the subscription once with the headers of its Secret, and not after its deletion";
    lives::run(start.env(Special::default()).await?, claims, claim, prepare, life).await
}

async fn prepare(env: &TestEnv) -> anyhow::Result<()> {
    env.create_secret("headers", json!({ "Authorization": TOKEN })).await?;
    env.create_host_with(ONE, json!({ "automatedCleaningMode": "disabled" }))
        .await?;
    Phase::Enrol.wait(env, ONE).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    let object = json!({ "metadata": { "name": NAME }, "spec": {
        "hostName": name(ONE), "destination": DESTINATION, "context": "rack 7",
        "httpHeadersRef": { "name": "headers", "namespace": NAMESPACE },
    } });
    env.create::<BMCEventSubscription>(object).await?;
    env.eventually(async || {
        let status = env.api::<BMCEventSubscription>().get(NAME).await?.status;
        let shown = serde_json::to_string(&status)?;
        ensure!(!shown.contains(TOKEN), "the status shows the headers");
        ensure!(status.subscription_id.is_some(), "it is not in the BMC: {shown}");
        Ok(())
    })
    .await?;
    let kept = kept(env).await?;
    let one = kept.as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    ensure!(kept.as_array().map(Vec::len) == Some(1), "the BMC has {kept}");
    ensure!(
        part(&one, "Destination") == DESTINATION
            && part(&one, "Context") == "rack 7"
            && part(&one, "HttpHeaders") == json!([{ "Authorization": TOKEN }]),
        "the BMC has {one}"
    );
    env.api::<BMCEventSubscription>()
        .delete(NAME, &DeleteParams::default())
        .await?;
    env.eventually(async || {
        let left = env.api::<BMCEventSubscription>().get_opt(NAME).await?;
        ensure!(left.is_none(), "the object exists");
        Ok(())
    })
    .await?;
    let kept = self::kept(env).await?;
    ensure!(kept == json!([]), "the BMC has {kept}");
    Ok(())
}

async fn kept(env: &TestEnv) -> anyhow::Result<Value> {
    Ok(part(&env.machine(ONE).await?, "subscriptions"))
}
