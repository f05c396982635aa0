//! Virtual media.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{
    claim::Claim,
    service::{Service, action, link, same, text},
};

const INSERT: &str = "#VirtualMedia.InsertMedia";
const EJECT: &str = "#VirtualMedia.EjectMedia";

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both("one drive accepts CDs", |s| Box::pin(has_cd(s))),
        Claim::both("an inserted image is shown with its address and name, read-only", |s| {
            Box::pin(inserted(s))
        }),
        Claim::both("a second image replaces the first", |s| Box::pin(replaced(s))),
        Claim::both("an ejected drive is empty", |s| Box::pin(ejected(s))),
        Claim::both("ejecting from an empty drive is no error", |s| {
            Box::pin(ejected_twice(s))
        }),
        Claim::both("an image stays in its drive over a power cycle", |s| Box::pin(stays(s))),
        Claim::both("an image in one drive is in no other drive", |s| {
            Box::pin(drives_are_independent(s))
        }),
        Claim::not_on_emulator(
            "inserting without an image's address answers 400 and inserts nothing",
            "which answers 500",
            |s| Box::pin(refused(s, json!({}))),
        ),
        Claim::not_on_labhosts(
            "inserting an unreadable image is rejected",
            "which reads an image when the machine boots from it, as BMCs do that stream their media",
            |s| Box::pin(unreadable(s)),
        ),
        Claim::not_on_labhosts(
            "the check of an image server's certificate can be switched",
            "which answers 501: its images are fetched over plain HTTP",
            |s| Box::pin(certificate_check(s)),
        ),
    ]
}

async fn cd(service: &Service) -> anyhow::Result<Value> {
    let accepts_cds = |drive: &Value| {
        let types = drive.get("MediaTypes").and_then(Value::as_array);
        types.is_some_and(|types| types.iter().any(|kind| kind == "CD"))
    };
    let drives = service.part("VirtualMedia").await?;
    drives.into_iter().find(accepts_cds).context("no drive accepts CDs")
}

async fn has_cd(service: &Service) -> anyhow::Result<()> {
    let drive = cd(service).await?;
    action(&drive, INSERT)?;
    action(&drive, EJECT).map(drop)
}

async fn insert(service: &Service, name: &str) -> anyhow::Result<String> {
    let drive = cd(service).await?;
    let image = format!("{}/{name}", service.files);
    let body = json!({ "Image": image, "Inserted": true, "WriteProtected": true });
    service.post(action(&drive, INSERT)?, &body).await?.expect(204)?;
    Ok(image)
}

async fn eject(service: &Service) -> anyhow::Result<()> {
    let drive = cd(service).await?;
    let answer = service.post(action(&drive, EJECT)?, &json!({})).await?;
    answer.expect(204).map(drop)
}

async fn holds(service: &Service, image: &str) -> anyhow::Result<()> {
    let drive = cd(service).await?;
    same(drive.get("Inserted"), Some(&Value::Bool(true)))?;
    same(text(&drive, "/Image")?, image)
}

fn is_empty(drive: &Value) -> anyhow::Result<()> {
    same(drive.get("Inserted"), Some(&Value::Bool(false)))?;
    let image = drive.get("Image").and_then(Value::as_str).unwrap_or_default();
    ensure!(image.is_empty(), "it still shows {image}");
    Ok(())
}

async fn inserted(service: &Service) -> anyhow::Result<()> {
    eject(service).await?;
    let image = insert(service, "one.iso").await?;
    holds(service, &image).await?;
    let drive = cd(service).await?;
    same(text(&drive, "/ImageName")?, "one.iso")?;
    same(drive.get("WriteProtected"), Some(&Value::Bool(true)))
}

async fn replaced(service: &Service) -> anyhow::Result<()> {
    insert(service, "one.iso").await?;
    let second = insert(service, "two.iso").await?;
    holds(service, &second).await
}

async fn ejected(service: &Service) -> anyhow::Result<()> {
    insert(service, "one.iso").await?;
    eject(service).await?;
    is_empty(&cd(service).await?)
}

async fn ejected_twice(service: &Service) -> anyhow::Result<()> {
    eject(service).await?;
    eject(service).await?;
    is_empty(&cd(service).await?)
}

async fn stays(service: &Service) -> anyhow::Result<()> {
    let image = insert(service, "one.iso").await?;
    for power in ["Off", "On", "Off"] {
        service.bring(power).await?;
    }
    holds(service, &image).await
}

async fn drives_are_independent(service: &Service) -> anyhow::Result<()> {
    insert(service, "one.iso").await?;
    let with_image = cd(service).await?;
    let others = service.part("VirtualMedia").await?;
    for other in others.iter().filter(|drive| drive.get("Id") != with_image.get("Id")) {
        is_empty(other)?;
    }
    Ok(())
}

async fn refused(service: &Service, body: Value) -> anyhow::Result<()> {
    eject(service).await?;
    let drive = cd(service).await?;
    let answer = service.post(action(&drive, INSERT)?, &body).await?;
    answer.expect(400)?;
    is_empty(&cd(service).await?)
}

async fn unreadable(service: &Service) -> anyhow::Result<()> {
    refused(service, json!({ "Image": format!("{}/none.iso", service.files) })).await
}

async fn certificate_check(service: &Service) -> anyhow::Result<()> {
    let system = service.system().await?;
    service.get(link(&system, "VirtualMedia")?).await?;
    let drive = cd(service).await?;
    let change = json!({ "VerifyCertificate": true });
    let answer = service.patch(text(&drive, "/@odata.id")?, &change).await?;
    answer.expect(204).map(drop)
}
