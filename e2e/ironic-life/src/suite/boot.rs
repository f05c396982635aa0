//! The boot target and the boot mode.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{
    claim::Claim,
    service::{Service, same, text},
};

const ALWAYS_CONTINUOUS: &str = "where every override is continuous";

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both("network, CD and disk are allowed boot targets", |s| {
            Box::pin(on_offer(s))
        }),
        Claim::both("the boot target can be set to the network", |s| {
            Box::pin(target(s, "Pxe"))
        }),
        Claim::both("the boot target can be set to the CD", |s| Box::pin(target(s, "Cd"))),
        Claim::both("the boot target can be set to the disk", |s| Box::pin(target(s, "Hdd"))),
        Claim::both("a continuous override persists over a power cycle", |s| {
            Box::pin(continuous(s))
        }),
        Claim::not_on_emulator("an override for one boot is shown as such", ALWAYS_CONTINUOUS, |s| {
            Box::pin(once(s))
        }),
        Claim::not_on_emulator("one boot consumes an override for one boot", ALWAYS_CONTINUOUS, |s| {
            Box::pin(used_up(s))
        }),
        Claim::not_on_emulator("an override can be disabled", ALWAYS_CONTINUOUS, |s| {
            Box::pin(disabled(s))
        }),
        Claim::both("the boot mode can be set to Legacy and back to UEFI", |s| {
            Box::pin(mode(s))
        }),
        Claim::both("a change of the mode does not change the target", |s| {
            Box::pin(mode_keeps_target(s))
        }),
        Claim::not_on_emulator("the allowed boot modes are listed", "which lists none", |s| {
            Box::pin(modes_on_offer(s))
        }),
        Claim::not_on_emulator(
            "an unknown boot target answers 400 and changes nothing",
            "whose fake machines accept any value",
            |s| Box::pin(unknown(s, "BootSourceOverrideTarget")),
        ),
        Claim::not_on_emulator(
            "an unknown boot mode answers 400 and changes nothing",
            "whose fake machines accept any value",
            |s| Box::pin(unknown(s, "BootSourceOverrideMode")),
        ),
    ]
}

async fn boot(service: &Service) -> anyhow::Result<Value> {
    let system = service.system().await?;
    system.get("Boot").cloned().context("no Boot")
}

async fn set(service: &Service, boot: Value) -> anyhow::Result<()> {
    let answer = service.patch(service.system_path(), &json!({ "Boot": boot })).await?;
    answer.expect(204).map(drop)
}

async fn set_target(service: &Service, target: &str, enabled: &str) -> anyhow::Result<()> {
    let boot = json!({ "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled });
    set(service, boot).await
}

async fn offers(service: &Service, field: &str, wanted: &[&str]) -> anyhow::Result<()> {
    let boot = boot(service).await?;
    let offered = boot.get(format!("{field}@Redfish.AllowableValues"));
    let offered = offered.and_then(Value::as_array).context("no allowable values")?;
    for value in wanted {
        ensure!(
            offered.iter().any(|known| known == value),
            "{value} is not in {offered:?}"
        );
    }
    Ok(())
}

async fn on_offer(service: &Service) -> anyhow::Result<()> {
    offers(service, "BootSourceOverrideTarget", &["Pxe", "Cd", "Hdd"]).await
}

async fn modes_on_offer(service: &Service) -> anyhow::Result<()> {
    offers(service, "BootSourceOverrideMode", &["UEFI", "Legacy"]).await
}

async fn target(service: &Service, target: &str) -> anyhow::Result<()> {
    set_target(service, target, "Continuous").await?;
    let boot = boot(service).await?;
    same(text(&boot, "/BootSourceOverrideTarget")?, target)?;
    same(text(&boot, "/BootSourceOverrideEnabled")?, "Continuous")
}

async fn power_cycle(service: &Service) -> anyhow::Result<()> {
    for power in ["Off", "On", "Off"] {
        service.bring(power).await?;
    }
    Ok(())
}

async fn continuous(service: &Service) -> anyhow::Result<()> {
    set_target(service, "Pxe", "Continuous").await?;
    power_cycle(service).await?;
    let boot = boot(service).await?;
    same(text(&boot, "/BootSourceOverrideTarget")?, "Pxe")?;
    same(text(&boot, "/BootSourceOverrideEnabled")?, "Continuous")
}

async fn once(service: &Service) -> anyhow::Result<()> {
    set_target(service, "Pxe", "Once").await?;
    same(text(&boot(service).await?, "/BootSourceOverrideEnabled")?, "Once")
}

async fn used_up(service: &Service) -> anyhow::Result<()> {
    service.bring("Off").await?;
    set_target(service, "Pxe", "Once").await?;
    service.bring("On").await?;
    same(text(&boot(service).await?, "/BootSourceOverrideEnabled")?, "Disabled")
}

async fn disabled(service: &Service) -> anyhow::Result<()> {
    set_target(service, "Pxe", "Continuous").await?;
    set(service, json!({ "BootSourceOverrideEnabled": "Disabled" })).await?;
    same(text(&boot(service).await?, "/BootSourceOverrideEnabled")?, "Disabled")
}

async fn mode(service: &Service) -> anyhow::Result<()> {
    for mode in ["Legacy", "UEFI"] {
        set(service, json!({ "BootSourceOverrideMode": mode })).await?;
        same(text(&boot(service).await?, "/BootSourceOverrideMode")?, mode)?;
    }
    Ok(())
}

async fn mode_keeps_target(service: &Service) -> anyhow::Result<()> {
    set_target(service, "Cd", "Continuous").await?;
    set(service, json!({ "BootSourceOverrideMode": "UEFI" })).await?;
    same(text(&boot(service).await?, "/BootSourceOverrideTarget")?, "Cd")
}

async fn unknown(service: &Service, field: &str) -> anyhow::Result<()> {
    let before = boot(service).await?;
    let change = json!({ "Boot": { field: "Floppotron" } });
    let answer = service.patch(service.system_path(), &change).await?;
    let after = boot(service).await?;
    // A service that accepted the value must not carry it into the next claim.
    set(
        service,
        json!({ "BootSourceOverrideTarget": "Hdd", "BootSourceOverrideMode": "UEFI" }),
    )
    .await?;
    answer.expect(400)?;
    same(after, before)
}
