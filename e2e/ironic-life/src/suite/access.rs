//! Authentication and authorization.

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::json;

use super::{
    claim::Claim,
    service::{Login, Service, action, link, same, text},
};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim::both(
            "the service root requires no login and links systems, managers and chassis",
            |s| Box::pin(root_is_open(s)),
        ),
        Claim::both("the service root is served with and without the trailing slash", |s| {
            Box::pin(root_has_two_spellings(s))
        }),
        Claim::not_on_emulator(
            "the version list links the service root",
            "which answers 404 to /redfish",
            |s| Box::pin(version_list_names_root(s)),
        ),
        Claim::both("the right login opens the list of systems", |s| {
            Box::pin(systems_answer(s, None))
        }),
        Claim::both("without login everything below the root answers 401", |s| {
            Box::pin(closed_to(s, Login::None))
        }),
        Claim::both("a wrong password answers 401", |s| Box::pin(wrong_password(s))),
        Claim::both("an unknown user answers 401", |s| Box::pin(unknown_user(s))),
        Claim::both("401 names basic authentication", |s| Box::pin(names_scheme(s))),
        Claim::both("a power action without login answers 401 and changes nothing", |s| {
            Box::pin(anonymous_power_action(s))
        }),
        Claim::not_on_emulator(
            "a session token opens the same resources as the login, until the session is deleted",
            "which supports basic authentication only",
            |s| Box::pin(session(s)),
        ),
    ]
}

async fn root_is_open(service: &Service) -> anyhow::Result<()> {
    let root = service.send(Method::GET, "/redfish/v1/", None, Login::None).await?;
    let root = root.expect(200)?.body;
    for part in ["Systems", "Managers", "Chassis"] {
        same(link(&root, part)?, &format!("/redfish/v1/{part}"))?;
    }
    ensure!(
        text(&root, "/RedfishVersion")?.starts_with("1."),
        "no version 1: {root}"
    );
    Ok(())
}

async fn root_has_two_spellings(service: &Service) -> anyhow::Result<()> {
    same(service.get("/redfish/v1/").await?, service.get("/redfish/v1").await?)
}

async fn version_list_names_root(service: &Service) -> anyhow::Result<()> {
    same(service.get("/redfish").await?, json!({ "v1": "/redfish/v1/" }))
}

async fn systems_answer(service: &Service, token: Option<&str>) -> anyhow::Result<()> {
    let login = token.map_or(Login::Right, Login::Token);
    let answer = service.send(Method::GET, "/redfish/v1/Systems", None, login).await?;
    answer.expect(200).map(drop)
}

async fn closed_to(service: &Service, login: Login<'_>) -> anyhow::Result<()> {
    let paths = ["/redfish/v1/Systems", "/redfish/v1/Managers", "/redfish/v1/Chassis"];
    for path in paths.into_iter().chain([service.system_path()]) {
        let answer = service.send(Method::GET, path, None, login).await?;
        answer.expect(401).context(path.to_owned())?;
    }
    Ok(())
}

async fn wrong_password(service: &Service) -> anyhow::Result<()> {
    let (user, password) = service.login();
    closed_to(service, Login::As(user, &format!("{password}x"))).await
}

async fn unknown_user(service: &Service) -> anyhow::Result<()> {
    let (_, password) = service.login();
    closed_to(service, Login::As("unknown", password)).await
}

async fn names_scheme(service: &Service) -> anyhow::Result<()> {
    let answer = service
        .send(Method::GET, service.system_path(), None, Login::None)
        .await?
        .expect(401)?;
    let scheme = answer.header("WWW-Authenticate").context("no WWW-Authenticate")?;
    ensure!(scheme.starts_with("Basic "), "it names {scheme}");
    Ok(())
}

async fn anonymous_power_action(service: &Service) -> anyhow::Result<()> {
    service.bring("Off").await?;
    let system = service.system().await?;
    let target = action(&system, "#ComputerSystem.Reset")?;
    let body = json!({ "ResetType": "On" });
    let answer = service.send(Method::POST, target, Some(&body), Login::None).await?;
    answer.expect(401)?;
    service.settle_in("Off").await
}

async fn session(service: &Service) -> anyhow::Result<()> {
    let root = service.get("/redfish/v1/").await?;
    let sessions = text(&root, "/Links/Sessions/@odata.id")?;
    let (user, password) = service.login();
    let wrong = json!({ "UserName": user, "Password": format!("{password}x") });
    let refused = service.send(Method::POST, sessions, Some(&wrong), Login::None).await?;
    refused.expect(401)?;
    let right = json!({ "UserName": user, "Password": password });
    let opened = service.send(Method::POST, sessions, Some(&right), Login::None).await?;
    let opened = opened.expect(201)?;
    let token = opened.header("X-Auth-Token").context("no X-Auth-Token")?;
    let location = opened.header("Location").context("no Location")?;
    systems_answer(service, Some(token)).await?;
    let closed = service
        .send(Method::DELETE, location, None, Login::Token(token))
        .await?;
    closed.expect(204)?;
    closed_to(service, Login::Token(token)).await
}
