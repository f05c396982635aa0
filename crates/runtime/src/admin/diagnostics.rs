//! Metrics, and the log level at run time.
//!
//! differs (`diagnostics-own-metrics`): nothing describes a Go runtime.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;

use super::gate::{Gate, authorize};
use crate::logs::{Level, Verbosity};
use crate::metrics::{self, Metrics};

/// Longer than any level.
const LONGEST_LEVEL: usize = 32;

/// `/metrics` and `/debug/flags/v`, with authentication.
pub fn diagnostics(metrics: &Metrics, verbosity: &Verbosity, gate: &Gate) -> Router {
    let level = Router::new()
        .route("/debug/flags/v", get(show_level).put(set_level))
        .layer(DefaultBodyLimit::max(LONGEST_LEVEL))
        .with_state(verbosity.clone());
    insecure_diagnostics(metrics)
        .merge(level)
        .layer(from_fn_with_state(gate.clone(), authorize))
}

/// `/metrics` without authentication.
pub fn insecure_diagnostics(metrics: &Metrics) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .with_state(metrics.clone())
}

async fn show_metrics(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.render())
}

async fn show_level(State(verbosity): State<Verbosity>) -> String {
    format!("{}\n", verbosity.get())
}

/// A number, as the Go managers accept it, or a name, in the body.
async fn set_level(State(verbosity): State<Verbosity>, body: String) -> (StatusCode, String) {
    match body.trim().parse::<Level>() {
        Ok(level) => {
            let before = verbosity.get();
            verbosity.set(level);
            tracing::info!(%before, %level, "log level changed");
            (StatusCode::OK, format!("log level is {level}\n"))
        }
        Err(fault) => (StatusCode::BAD_REQUEST, format!("{fault}\n")),
    }
}
