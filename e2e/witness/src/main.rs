//! `witness`: a small controller that says over HTTP what its container is like, and does what it is told.
//!
//! The suite of the process kubelet runs it as providers' managers are run: a Deployment, a ServiceAccount, a Lease.
//! It proves what a Pod sees; it is no example of a controller.

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
    /// Port of everything.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Compete for this Lease in the own namespace.
    #[arg(long)]
    lease: Option<String>,
    /// End at once with this code.
    #[arg(long)]
    exit: Option<u8>,
    /// Taken by the managers of providers; the suite looks for them in the answer.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    others: Vec<String>,
}

/// What probes are answered, and whether this replica leads.
#[derive(Default)]
struct Mood {
    sick: AtomicBool,
    busy: AtomicBool,
    leads: AtomicBool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<std::process::ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another crypto provider is installed"))?;
    let arguments = Arguments::parse();
    say("witness starts");
    if let Some(code) = arguments.exit {
        say(&format!("witness ends with {code}"));
        return Ok(code.into());
    }
    let mood = Arc::new(Mood::default());
    let mut terminated = signal(SignalKind::terminate())?;
    let election = async {
        match &arguments.lease {
            Some(lease) => election::compete(lease, &mood.leads).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        served = serve(arguments.port, mood.clone()) => served?,
        elected = election => elected?,
        _ = terminated.recv() => say("witness was asked to end"),
    }
    Ok(std::process::ExitCode::SUCCESS)
}

/// A line of the log, whole and at once.
fn say(text: &str) {
    // A log that cannot be written is no reason to end.
    writeln!(std::io::stdout(), "{text}").unwrap_or_default();
}

async fn serve(port: u16, mood: Arc<Mood>) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))?;
    let router = Router::new()
        .route(
            "/healthz",
            get(|State(mood): State<Arc<Mood>>| async move { answer(&mood.sick) }),
        )
        .route(
            "/readyz",
            get(|State(mood): State<Arc<Mood>>| async move { answer(&mood.busy) }),
        )
        .route("/mood", post(set_mood))
        .route("/self", get(about))
        .route("/file", get(read))
        .route("/file", post(write))
        .with_state(mood);
    axum::serve(listener, router).await.context("serving")
}

fn answer(bad: &AtomicBool) -> StatusCode {
    if bad.load(Ordering::Relaxed) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

type Words = Query<BTreeMap<String, String>>;

/// `?sick=true`, `?busy=false`
async fn set_mood(State(mood): State<Arc<Mood>>, Query(words): Words) -> StatusCode {
    for (word, value) in &words {
        let flag = match word.as_str() {
            "sick" => &mood.sick,
            "busy" => &mood.busy,
            _ => return StatusCode::BAD_REQUEST,
        };
        flag.store(value == "true", Ordering::Relaxed);
    }
    StatusCode::OK
}

async fn about(State(mood): State<Arc<Mood>>) -> Json<Value> {
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
        "leads": mood.leads.load(Ordering::Relaxed),
    }))
}

async fn read(Query(words): Words) -> Result<Vec<u8>, (StatusCode, String)> {
    let path = words.get("path").cloned().unwrap_or_default();
    std::fs::read(&path).map_err(|error| (StatusCode::NOT_FOUND, format!("{path}: {error}")))
}

async fn write(Query(words): Words) -> Result<StatusCode, (StatusCode, String)> {
    let path = words.get("path").cloned().unwrap_or_default();
    std::fs::write(&path, "written by the witness")
        .map(|()| StatusCode::OK)
        .map_err(|error| (StatusCode::FORBIDDEN, format!("{path}: {error}")))
}
