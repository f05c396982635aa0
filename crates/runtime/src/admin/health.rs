//! Health probes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::Mutex;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// Passed.
    Passed,
    /// Passed with a note: a group that is idle because another implementation serves it.
    Note(String),
    /// Failed, with the reason.
    Failed(String),
}

impl CheckResult {
    /// Passed, or failed with this reason.
    pub fn failed_unless(passed: bool, why: impl Into<String>) -> Self {
        if passed { Self::Passed } else { Self::Failed(why.into()) }
    }
}

type Check = Arc<dyn Fn() -> CheckResult + Send + Sync>;

/// Named checks, in the order of their addition; clones share them.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<Vec<(String, Check)>>>,
}

impl Health {
    /// Adds a check. It runs at every probe, so it must only read known state.
    pub fn add(&self, name: impl Into<String>, check: impl Fn() -> CheckResult + Send + Sync + 'static) {
        self.checks.lock().push((name.into(), Arc::new(check)));
    }

    /// The response to a probe: of all checks, or of one.
    fn answer(&self, endpoint: &str, only: Option<&str>) -> Response {
        let mut checks = self.checks.lock().clone();
        if let Some(only) = only {
            checks.retain(|(name, _)| name == only);
            if checks.is_empty() {
                return (StatusCode::NOT_FOUND, format!("{endpoint}: there is no such check\n")).into_response();
            }
        }
        let (mut text, mut passed) = (String::new(), true);
        for (name, check) in checks {
            text.push_str(&match check() {
                CheckResult::Passed => format!("[+]{name} ok\n"),
                CheckResult::Note(note) => format!("[~]{name} ok: {note}\n"),
                CheckResult::Failed(why) => {
                    passed = false;
                    format!("[-]{name} failed: {why}\n")
                }
            });
        }
        let (code, end) = if passed {
            (StatusCode::OK, "passed")
        } else {
            (StatusCode::INTERNAL_SERVER_ERROR, "failed")
        };
        text.push_str(&format!("{endpoint} check {end}\n"));
        (code, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
    }
}

/// `/healthz` and `/readyz`, and each check by name below them.
pub fn health(alive: &Health, ready: &Health) -> Router {
    let probe = |endpoint: &'static str, checks: &Health| {
        let all =
            |State((endpoint, checks)): State<(&'static str, Health)>| async move { checks.answer(endpoint, None) };
        let one = |State((endpoint, checks)): State<(&'static str, Health)>, Path(name): Path<String>| async move {
            checks.answer(endpoint, Some(&name))
        };
        Router::new()
            .route(&format!("/{endpoint}"), get(all))
            .route(&format!("/{endpoint}/{{name}}"), get(one))
            .with_state((endpoint, checks.clone()))
    };
    probe("healthz", alive).merge(probe("readyz", ready))
}
