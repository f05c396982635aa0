//! `test-server`: a small controller that reports the environment of its container over HTTP.
//!
//! The suite of the process kubelet runs it like the managers of providers: with Deployment, ServiceAccount and Lease. It is
//! for tests of Pods only, no example of a controller.

mod election;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Json;
use axum::routing::{get, post};
use clap::Parser;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Parser)]
struct Arguments {
    /// HTTP port.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Run leader election with this Lease in the Pod's namespace.
    #[arg(long)]
    lease: Option<String>,
    /// Exit immediately with this code.
    #[arg(long)]
    exit: Option<u8>,
    /// Flags of managers, ignored; the suite reads them from the report.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    others: Vec<String>,
}

/// The answers to probes, and whether this replica leads.
#[derive(Default)]
struct Health {
    unhealthy: AtomicBool,
    unready: AtomicBool,
    leads: AtomicBool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<std::process::ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another crypto provider is installed"))?;
    let arguments = Arguments::parse();
    say("test-server starts");
    if let Some(code) = arguments.exit {
        say(&format!("test-server ends with {code}"));
        return Ok(code.into());
    }
    let health = Arc::new(Health::default());
    let mut terminated = signal(SignalKind::terminate())?;
    let election = async {
        match &arguments.lease {
            Some(lease) => election::compete(lease, &health.leads).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        served = serve(arguments.port, health.clone()) => served?,
        elected = election => elected?,
        _ = terminated.recv() => say("test-server received SIGTERM"),
    }
    Ok(std::process::ExitCode::SUCCESS)
}

fn say(text: &str) {
    // An unwritable log is ignored.
    writeln!(std::io::stdout(), "{text}").unwrap_or_default();
}

async fn serve(port: u16, health: Arc<Health>) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))?;
    let router = Router::new()
        .route(
            "/healthz",
            get(|State(health): State<Arc<Health>>| async move { answer(&health.unhealthy) }),
        )
        .route(
            "/readyz",
            get(|State(health): State<Arc<Health>>| async move { answer(&health.unready) }),
        )
        .route("/health", post(set_health))
        .route("/self", get(about))
        .route("/file", get(read))
        .route("/file", post(write))
        .with_state(health);
    axum::serve(listener, router).await.context("serving")
}

fn answer(bad: &AtomicBool) -> StatusCode {
    if bad.load(Ordering::Relaxed) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

type Parameters = Query<BTreeMap<String, String>>;

/// `?unhealthy=true`, `?unready=false`
async fn set_health(State(health): State<Arc<Health>>, Query(parameters): Parameters) -> StatusCode {
    for (name, value) in &parameters {
        let flag = match name.as_str() {
            "unhealthy" => &health.unhealthy,
            "unready" => &health.unready,
            _ => return StatusCode::BAD_REQUEST,
        };
        flag.store(value == "true", Ordering::Relaxed);
    }
    StatusCode::OK
}

async fn about(State(health): State<Arc<Health>>) -> Json<Value> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let first = |name: &str| line(name).split_whitespace().next().unwrap_or_default().to_owned();
    Json(json!({
        "arguments": std::env::args().collect::<Vec<_>>(),
        "variables": std::env::vars().collect::<BTreeMap<_, _>>(),
        "hostname": std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim(),
        "process": std::process::id(),
        "user": first("Uid:"),
        "group": first("Gid:"),
        "groups": line("Groups:"),
        "capabilities": line("CapEff:"),
        "no_new_privileges": line("NoNewPrivs:"),
        "folder": std::env::current_dir().unwrap_or_default(),
        "leads": health.leads.load(Ordering::Relaxed),
    }))
}

async fn read(Query(parameters): Parameters) -> Result<Vec<u8>, (StatusCode, String)> {
    let path = parameters.get("path").cloned().unwrap_or_default();
    std::fs::read(&path).map_err(|error| (StatusCode::NOT_FOUND, format!("{path}: {error}")))
}

async fn write(Query(parameters): Parameters) -> Result<StatusCode, (StatusCode, String)> {
    let path = parameters.get("path").cloned().unwrap_or_default();
    std::fs::write(&path, "written by the test server")
        .map(|()| StatusCode::OK)
        .map_err(|error| (StatusCode::FORBIDDEN, format!("{path}: {error}")))
}
