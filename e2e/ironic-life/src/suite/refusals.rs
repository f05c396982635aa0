//! Unknown, malformed and unsupported requests.

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    claim::Claim,
    service::{Answer, Login, Service, action, link, same, text},
};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both("an unknown system answers 404", |s| {
            Box::pin(unknown(s, "/redfish/v1/Systems/missing"))
        }),
        Claim::both("an unknown manager answers 404", |s| {
            Box::pin(unknown(s, "/redfish/v1/Managers/missing"))
        }),
        Claim::not_on_emulator("an unknown chassis answers 404", "which answers 500", |s| {
            Box::pin(unknown(s, "/redfish/v1/Chassis/missing"))
        }),
        Claim::both("an unknown part of the service answers 404", |s| {
            Box::pin(unknown(s, "/redfish/v1/Teapots"))
        }),
        Claim::both("an unknown part of a system answers 404", |s| Box::pin(unknown_part(s))),
        Claim::both("an unknown member of each of a system's collections answers 404", |s| {
            Box::pin(unknown_members(s))
        }),
        Claim::both("a power action of an unknown system answers 404", |s| {
            Box::pin(unknown_action(s))
        }),
        Claim::both("401 and 404 give the reason in the standard's error object", |s| {
            Box::pin(error_objects(s))
        }),
        Claim::both("a body that is not JSON answers 400 with the reason", |s| {
            Box::pin(no_json(s))
        }),
        Claim::both("a change that changes nothing answers 400", |s| {
            Box::pin(empty_change(s))
        }),
        Claim::both("a method that a resource does not support answers 405", |s| {
            Box::pin(wrong_verb(s))
        }),
        Claim::both("creating a volume answers 501", |s| Box::pin(no_raid(s))),
        Claim::not_on_emulator(
            "an update without firmware is a task that fails",
            "which answers 500",
            |s| Box::pin(no_update(s)),
        ),
        Claim::not_on_labhosts(
            "secure boot can be switched on and off",
            "which answers 501 to changes of secure boot",
            |s| Box::pin(secure_boot(s)),
        ),
        Claim::not_on_labhosts(
            "the clock of the BMC can be set",
            "whose BMC has no clock: Ironic sets one only when configured to",
            |s| Box::pin(clock(s)),
        ),
    ]
}

async fn unknown(service: &Service, path: &str) -> anyhow::Result<()> {
    service
        .fetch(path)
        .await?
        .expect(404)
        .context(path.to_owned())
        .map(drop)
}

async fn unknown_part(service: &Service) -> anyhow::Result<()> {
    unknown(service, &format!("{}/Teapots", service.system_path())).await
}

async fn unknown_members(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    for part in [
        "Processors",
        "EthernetInterfaces",
        "Storage",
        "SimpleStorage",
        "VirtualMedia",
    ] {
        unknown(service, &format!("{}/missing", link(&system, part)?)).await?;
    }
    let storage = service.part("Storage").await?;
    let controller = storage.first().context("no storage")?;
    unknown(service, &format!("{}/Drives/missing", text(controller, "/@odata.id")?)).await
}

async fn unknown_action(service: &Service) -> anyhow::Result<()> {
    let path = "/redfish/v1/Systems/missing/Actions/ComputerSystem.Reset";
    let answer = service.post(path, &json!({ "ResetType": "On" })).await?;
    answer.expect(404).map(drop)
}

fn has_reason(answer: &Answer) -> anyhow::Result<()> {
    ensure!(!text(&answer.body, "/error/code")?.is_empty(), "no code");
    ensure!(!text(&answer.body, "/error/message")?.is_empty(), "no message");
    Ok(())
}

async fn error_objects(service: &Service) -> anyhow::Result<()> {
    has_reason(&service.fetch("/redfish/v1/Systems/missing").await?.expect(404)?)?;
    let anonymous = service
        .send(Method::GET, service.system_path(), None, Login::None)
        .await?;
    has_reason(&anonymous.expect(401)?)
}

async fn no_json(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    let answer = service
        .post_text(action(&system, "#ComputerSystem.Reset")?, "{")
        .await?;
    has_reason(&answer.expect(400)?)
}

async fn empty_change(service: &Service) -> anyhow::Result<()> {
    let answer = service.patch(service.system_path(), &json!({})).await?;
    answer.expect(400).map(drop)
}

async fn wrong_verb(service: &Service) -> anyhow::Result<()> {
    for path in ["/redfish/v1/Systems", service.system_path()] {
        let answer = service.send(Method::DELETE, path, None, Login::Right).await?;
        answer.expect(405).context(path.to_owned())?;
    }
    Ok(())
}

async fn no_raid(service: &Service) -> anyhow::Result<()> {
    let storage = service.part("Storage").await?;
    let controller = storage.first().context("no storage")?;
    let volume = json!({ "Name": "v", "VolumeType": "Mirrored", "CapacityBytes": 1 });
    let answer = service.post(link(controller, "Volumes")?, &volume).await?;
    has_reason(&answer.expect(501)?)
}

async fn no_update(service: &Service) -> anyhow::Result<()> {
    let path = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate";
    let body = json!({ "ImageURI": format!("{}/no-such-file", service.files), "Targets": [service.system_path()] });
    let task = service.post(path, &body).await?.expect(202)?;
    let task = text(&task.body, "/@odata.id")?.to_owned();
    for _ in 0..50 {
        let found = service.get(&task).await?;
        match text(&found, "/TaskState")? {
            "Running" => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            state => {
                same(state, "Exception")?;
                return same(text(&found, "/TaskStatus")?, "Critical");
            }
        }
    }
    anyhow::bail!("{task} does not end")
}

async fn secure_boot(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    let path = link(&system, "SecureBoot")?;
    for wanted in [true, false] {
        let answer = service.patch(path, &json!({ "SecureBootEnable": wanted })).await?;
        answer.expect(204)?;
        let found = service.get(path).await?;
        same(found.get("SecureBootEnable"), Some(&Value::Bool(wanted)))?;
    }
    Ok(())
}

async fn clock(service: &Service) -> anyhow::Result<()> {
    let managers = service.members("/redfish/v1/Managers").await?;
    let manager = managers.first().context("no manager")?;
    let change = json!({ "DateTime": "2026-01-02T03:04:05+00:00", "DateTimeLocalOffset": "+00:00" });
    let answer = service.patch(text(manager, "/@odata.id")?, &change).await?;
    answer.expect(204).map(drop)
}
