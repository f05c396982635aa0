//! The port for agents and control: Ironic's commands to agents, and the endpoint of tests.
//!
//! `/agents/N/v1/...` is the agent of machine N, authorized by the agent's token; without a running agent the
//! connection is dropped, as for a machine that is off. `/lab/...` shows machines and disks, sets faults and writes disks,
//! authorized by the BMCs' login.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, Request, State},
    http::{HeaderMap, Response, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::IntoResponse,
    routing::{get, put},
};
use serde_json::{Value, json};

use crate::{
    agent::VERSION,
    bios,
    disk::{Content, Disk},
    fault::Faults,
    firmware::{bios_version, bmc_version},
    identity::Number,
    iso,
    lab::{Host, Lab, RunningAgent},
    server::{hang_up, text},
};

type Shared = State<Arc<Lab>>;
type Tokens = Query<BTreeMap<String, String>>;

/// The routes of the port.
pub fn router(lab: Arc<Lab>) -> Router {
    let control = Router::new()
        .route("/lab", get(overview))
        .route("/lab/machines/{number}", get(machine))
        .route("/lab/machines/{number}/faults", put(set_faults))
        .route("/lab/machines/{number}/disks/{disk}", get(disk).put(fill_disk))
        .route("/lab/machines/{number}/disks/{disk}/config-drive", get(config_drive))
        .route(
            "/lab/machines/{number}/disks/{disk}/config-drive/{*file}",
            get(config_drive_file),
        )
        .layer(from_fn_with_state(Arc::clone(&lab), login));
    Router::new()
        .route("/agents/{number}/v1/status", get(status))
        .route("/agents/{number}/v1/commands/", get(commands).post(command))
        .route("/agents/{number}/v1/commands/{id}", get(one_command))
        .merge(control)
        .with_state(lab)
}

async fn login(State(lab): Shared, headers: HeaderMap, request: Request, next: Next) -> Response<Body> {
    if lab.credentials.admit(text(&headers, &header::AUTHORIZATION)) {
        next.run(request).await
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

fn running_agent(lab: &Lab, number: Number) -> Option<(Arc<Host>, Arc<RunningAgent>)> {
    let host = lab.hosts.get(&number)?;
    let running_agent = host.lock().agent.clone()?;
    Some((Arc::clone(host), running_agent))
}

async fn status(State(lab): Shared, Path(number): Path<Number>) -> Response<Body> {
    match running_agent(&lab, number) {
        Some(_) => Json(json!({ "started_at": 0, "version": VERSION })).into_response(),
        None => hang_up(),
    }
}

async fn commands(State(lab): Shared, Path(number): Path<Number>, query: Tokens) -> Response<Body> {
    results(&lab, number, &query, None)
}

async fn one_command(State(lab): Shared, Path((number, id)): Path<(Number, String)>, query: Tokens) -> Response<Body> {
    results(&lab, number, &query, Some(&id))
}

fn results(lab: &Lab, number: Number, query: &Tokens, id: Option<&str>) -> Response<Body> {
    match running_agent(lab, number) {
        Some((_, running_agent)) => respond(running_agent.lock().results(token(query), id)),
        None => hang_up(),
    }
}

async fn command(State(lab): Shared, Path(number): Path<Number>, query: Tokens, body: Json<Value>) -> Response<Body> {
    let Some((host, running_agent)) = running_agent(&lab, number) else {
        return hang_up();
    };
    let faults = host.lock().machine.faults.clone();
    let (status, view, work) = running_agent.lock().command(token(&query), &body, &faults);
    if let Some(work) = work {
        lab.work(&host, &running_agent, work);
    }
    respond((status, view))
}

fn token(query: &Tokens) -> Option<&str> {
    query.get("agent_token").map(String::as_str)
}

fn respond((status, body): (u16, Value)) -> Response<Body> {
    (
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        Json(body),
    )
        .into_response()
}

async fn overview(State(lab): Shared) -> Json<Value> {
    let machines: Vec<Value> = lab.hosts.values().map(|host| view(host)).collect();
    Json(json!({ "resident_kib": resident_kib().await, "machines": machines }))
}

/// The resident memory of the process.
async fn resident_kib() -> Option<u64> {
    let status = tokio::fs::read_to_string("/proc/self/status").await.ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn view(host: &Host) -> Value {
    let state = host.lock();
    let machine = &state.machine;
    json!({
        "number": machine.number,
        "profile": machine.profile_name,
        "power": machine.power,
        "boot": machine.boot,
        "boots": machine.boots,
        "writes": machine.writes,
        "media": machine.media,
        "subscriptions": machine.subscriptions.values().collect::<Vec<_>>(),
        "agent": machine.agent,
        "settings": bios::in_force(machine),
        "firmware": {
            "bios": bios_version(machine),
            "bmc": bmc_version(machine),
            "updates": machine.firmware.tasks(),
        },
        "running": machine.running,
        "disks": machine.disks,
        "faults": machine.faults,
    })
}

async fn machine(State(lab): Shared, Path(number): Path<Number>) -> Response<Body> {
    match lab.hosts.get(&number) {
        Some(host) => Json(view(host)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn set_faults(State(lab): Shared, Path(number): Path<Number>, Json(faults): Json<Faults>) -> StatusCode {
    match lab.hosts.get(&number) {
        Some(host) => {
            host.lock().machine.faults = faults;
            host.touch();
            StatusCode::NO_CONTENT
        }
        None => StatusCode::NOT_FOUND,
    }
}

fn content(lab: &Lab, number: Number, name: &str, of: fn(&Disk) -> Option<Content>) -> Option<Content> {
    let state = lab.hosts.get(&number)?.lock();
    state.machine.disks.iter().find(|disk| disk.name == name).and_then(of)
}

async fn read(lab: &Lab, content: Option<Content>) -> Option<Vec<u8>> {
    lab.read(&content?).await.ok()
}

fn bytes(found: Option<Vec<u8>>) -> Response<Body> {
    match found {
        Some(bytes) => bytes.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The written bytes; the rest of the disk is zero.
async fn disk(State(lab): Shared, Path((number, name)): Path<(Number, String)>) -> Response<Body> {
    let content = content(&lab, number, &name, |disk| {
        disk.written.as_ref().map(|written| written.content.clone())
    });
    bytes(read(&lab, content).await)
}

/// Writes the body to a disk.
async fn fill_disk(State(lab): Shared, Path((number, name)): Path<(Number, String)>, body: Bytes) -> StatusCode {
    let Some(host) = lab.hosts.get(&number) else {
        return StatusCode::NOT_FOUND;
    };
    let Ok(content) = lab.store.put(&format!("{number}-filled"), &body).await else {
        return StatusCode::INTERNAL_SERVER_ERROR;
    };
    match host.lock().machine.fill(&name, content) {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    }
}

async fn config_drive(State(lab): Shared, Path((number, name)): Path<(Number, String)>) -> Response<Body> {
    let content = content(&lab, number, &name, |disk| disk.config_drive.clone());
    bytes(read(&lab, content).await)
}

async fn config_drive_file(
    State(lab): Shared,
    Path((number, name, file)): Path<(Number, String, String)>,
) -> Response<Body> {
    let content = content(&lab, number, &name, |disk| disk.config_drive.clone());
    let image = read(&lab, content).await;
    bytes(image.and_then(|image| iso::file(&image, &file).ok().flatten().map(<[u8]>::to_vec)))
}
