//! Who gets in.

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
            "the service root needs no login and names systems, managers and chassis",
            |s| Box::pin(root_is_open(s)),
        ),
        Claim::both("the service root answers with its last slash and without", |s| {
            Box::pin(root_has_two_spellings(s))
        }),
        Claim::not_on_emulator(
            "the version list names the service root",
            "which answers 404 to /redfish",
            |s| Box::pin(version_list_names_root(s)),
        ),
        Claim::both("the right login opens the list of systems", |s| {
            Box::pin(systems_answer(s, None))
        }),
        Claim::both("without login everything below the root answers 401", |s| {
            Box::pin(closed_to(s, Login::Nobody))
        }),
        Claim::both("a wrong password answers 401", |s| Box::pin(wrong_password(s))),
        Claim::both("an unknown user answers 401", |s| Box::pin(unknown_user(s))),
        Claim::both("401 names basic login as the way in", |s| Box::pin(way_in(s))),
        Claim::both("a power action without login answers 401 and changes nothing", |s| {
            Box::pin(stranger_switches_nothing(s))
        }),
        Claim::not_on_emulator(
            "a session's token opens what the login opens, until the session is deleted",
            "which knows basic login only",
            |s| Box::pin(session(s)),
        ),
    ]
}

async fn root_is_open(service: &Service) -> anyhow::Result<()> {
    let root = service.ask(Method::GET, "/redfish/v1/", None, Login::Nobody).await?;
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
    let answer = service.ask(Method::GET, "/redfish/v1/Systems", None, login).await?;
    answer.expect(200).map(drop)
}

async fn closed_to(service: &Service, login: Login<'_>) -> anyhow::Result<()> {
    let paths = ["/redfish/v1/Systems", "/redfish/v1/Managers", "/redfish/v1/Chassis"];
    for path in paths.into_iter().chain([service.system_path()]) {
        let answer = service.ask(Method::GET, path, None, login).await?;
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
    closed_to(service, Login::As("nobody", password)).await
}

async fn way_in(service: &Service) -> anyhow::Result<()> {
    let answer = service
        .ask(Method::GET, service.system_path(), None, Login::Nobody)
        .await?
        .expect(401)?;
    let way = answer.header("WWW-Authenticate").context("no WWW-Authenticate")?;
    ensure!(way.starts_with("Basic "), "it names {way}");
    Ok(())
}

async fn stranger_switches_nothing(service: &Service) -> anyhow::Result<()> {
    service.bring("Off").await?;
    let system = service.system().await?;
    let target = action(&system, "#ComputerSystem.Reset")?;
    let body = json!({ "ResetType": "On" });
    let answer = service.ask(Method::POST, target, Some(&body), Login::Nobody).await?;
    answer.expect(401)?;
    service.rest_in("Off").await
}

async fn session(service: &Service) -> anyhow::Result<()> {
    let root = service.get("/redfish/v1/").await?;
    let sessions = text(&root, "/Links/Sessions/@odata.id")?;
    let (user, password) = service.login();
    let wrong = json!({ "UserName": user, "Password": format!("{password}x") });
    let refused = service.ask(Method::POST, sessions, Some(&wrong), Login::Nobody).await?;
    refused.expect(401)?;
    let right = json!({ "UserName": user, "Password": password });
    let opened = service.ask(Method::POST, sessions, Some(&right), Login::Nobody).await?;
    let opened = opened.expect(201)?;
    let token = opened.header("X-Auth-Token").context("no X-Auth-Token")?;
    let location = opened.header("Location").context("no Location")?;
    systems_answer(service, Some(token)).await?;
    let closed = service.ask(Method::DELETE, location, None, Login::Token(token)).await?;
    closed.expect(204)?;
    closed_to(service, Login::Token(token)).await
}
