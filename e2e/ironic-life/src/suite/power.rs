//! Power actions and their effect.

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    claim::Claim,
    service::{Login, Service, action, same, text},
};

/// The reset types of Ironic's `redfish` hardware type.
const KINDS: [&str; 6] = [
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "GracefulRestart",
    "ForceRestart",
];

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both("the power actions that Ironic uses are allowed", |s| {
            Box::pin(on_offer(s))
        }),
        Claim::both("On switches on", |s| Box::pin(switch(s, "Off", "On", "On"))),
        Claim::both("ForceOn switches on", |s| Box::pin(switch(s, "Off", "ForceOn", "On"))),
        Claim::both("ForceOff switches off", |s| {
            Box::pin(switch(s, "On", "ForceOff", "Off"))
        }),
        Claim::both("GracefulShutdown switches off", |s| {
            Box::pin(switch(s, "On", "GracefulShutdown", "Off"))
        }),
        Claim::both("ForceRestart ends powered on", |s| {
            Box::pin(switch(s, "On", "ForceRestart", "On"))
        }),
        Claim::both("GracefulRestart ends powered on", |s| {
            Box::pin(switch(s, "On", "GracefulRestart", "On"))
        }),
        Claim::both("ForceRestart of a machine that is off switches it on", |s| {
            Box::pin(switch(s, "Off", "ForceRestart", "On"))
        }),
        Claim::both("On keeps a machine on", |s| Box::pin(switch(s, "On", "On", "On"))),
        Claim::both("ForceOff keeps a machine off", |s| {
            Box::pin(switch(s, "Off", "ForceOff", "Off"))
        }),
        Claim::not_on_emulator(
            "every allowed power action is accepted",
            "whose fake machines list Nmi and answer 501 to it",
            |s| Box::pin(all_accepted(s)),
        ),
        Claim::not_on_emulator(
            "an unknown power action answers 400 and changes nothing",
            "whose fake machines answer 501",
            |s| Box::pin(refused(s, json!({ "ResetType": "Explode" }))),
        ),
        Claim::not_on_emulator(
            "a power action without a reset type answers 400 and changes nothing",
            "which answers 500",
            |s| Box::pin(refused(s, json!({}))),
        ),
        Claim::both("the indicator LED can be lit, blink and be off", |s| {
            Box::pin(indicator_led(s))
        }),
    ]
}

async fn offered(service: &Service) -> anyhow::Result<Vec<String>> {
    let system = service.system().await?;
    let reset = system.pointer("/Actions/#ComputerSystem.Reset").context("no reset")?;
    let values = reset
        .get("ResetType@Redfish.AllowableValues")
        .and_then(Value::as_array)
        .context("no allowable values")?;
    Ok(values
        .iter()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect())
}

async fn on_offer(service: &Service) -> anyhow::Result<()> {
    let offered = offered(service).await?;
    for kind in KINDS {
        ensure!(
            offered.iter().any(|known| known == kind),
            "{kind} is not in {offered:?}"
        );
    }
    Ok(())
}

async fn switch(service: &Service, from: &str, kind: &str, to: &str) -> anyhow::Result<()> {
    service.bring(from).await?;
    service.reset(kind).await?.expect(204)?;
    if from == to {
        service.settle_in(to).await
    } else {
        service.wait_for(to).await
    }
}

async fn all_accepted(service: &Service) -> anyhow::Result<()> {
    for kind in offered(service).await? {
        service.reset(&kind).await?.expect(204).context(kind)?;
    }
    Ok(())
}

async fn refused(service: &Service, body: Value) -> anyhow::Result<()> {
    service.bring("Off").await?;
    let system = service.system().await?;
    let target = action(&system, "#ComputerSystem.Reset")?;
    let answer = service.send(Method::POST, target, Some(&body), Login::Right).await?;
    answer.expect(400)?;
    service.settle_in("Off").await
}

async fn indicator_led(service: &Service) -> anyhow::Result<()> {
    for state in ["Lit", "Blinking", "Off"] {
        let answer = service
            .patch(service.system_path(), &json!({ "IndicatorLED": state }))
            .await?;
        answer.expect(204)?;
        same(text(&service.system().await?, "/IndicatorLED")?, state)?;
    }
    Ok(())
}
