//! Runs probes, and reports changes of their results.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::context::Context;
use crate::machine::process::{first_process, run_inside};
use crate::plan::probe::{Check, Counter, Health, Schedule};
use crate::plan::sandbox::Sandbox;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Startup,
    Readiness,
    Liveness,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// A change of a probe's result.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) role: Role,
    pub(crate) health: Health,
    /// The message of the last attempt.
    pub(crate) message: String,
}

/// The container of a probe.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) cx: Arc<Context>,
    pub(crate) address: String,
    pub(crate) sandbox: Arc<Sandbox>,
    /// The outer process of the container.
    pub(crate) number: u32,
}

/// Probes until the receiver is dropped.
pub(crate) async fn run_probe(
    target: Target,
    role: Role,
    check: Check,
    schedule: Schedule,
    reports: UnboundedSender<Report>,
) {
    let mut counter = Counter::default();
    let mut has_succeeded = false;
    tokio::time::sleep(schedule.initial_delay).await;
    // A command requires a running container. One that is still starting is not a failure.
    while matches!(check, Check::Exec { .. }) && first_process(target.number).is_none() && !reports.is_closed() {
        tokio::time::sleep(START_POLL).await;
    }
    loop {
        let outcome = attempt(&target, &check, schedule.timeout).await;
        has_succeeded |= outcome.is_ok();
        if let Some(health) = counter.observe(outcome.is_ok(), &schedule) {
            let message = outcome.err().unwrap_or_default();
            if reports.send(Report { role, health, message }).is_err() {
                return;
            }
        }
        // Without this, a container that is probed before it listens would be unready for a whole period, ten seconds by default.
        let is_first = role == Role::Readiness && !has_succeeded;
        tokio::time::sleep(if is_first {
            schedule.period.min(FIRST_PERIOD)
        } else {
            schedule.period
        })
        .await;
    }
}

/// The readiness interval before the first success.
const FIRST_PERIOD: Duration = Duration::from_secs(1);

/// The poll interval during a start, which takes some tens of milliseconds.
const START_POLL: Duration = Duration::from_millis(20);

async fn attempt(target: &Target, check: &Check, limit: Duration) -> Result<(), String> {
    match check {
        Check::Http {
            secure,
            host,
            port,
            path,
            headers,
        } => {
            let scheme = if *secure { "https" } else { "http" };
            let host = host.as_deref().unwrap_or(&target.address);
            let url = format!(
                "{scheme}://{host}:{port}{}{path}",
                if path.starts_with('/') { "" } else { "/" }
            );
            let mut request = target
                .cx
                .http
                .get(&url)
                .timeout(limit)
                .header("User-Agent", "kube-probe");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            match request.send().await {
                Ok(answer) if (200..400).contains(&answer.status().as_u16()) => Ok(()),
                Ok(answer) => Err(format!("HTTP probe failed with status {}", answer.status().as_u16())),
                Err(error) => Err(format!("GET {url}: {}", root_cause(&error))),
            }
        }
        Check::Tcp { host, port } => {
            let host = host.as_deref().unwrap_or(&target.address);
            let address: SocketAddr = format!("{host}:{port}")
                .parse()
                .map_err(|_| format!("{host} is not an IP address"))?;
            match tokio::time::timeout(limit, tokio::net::TcpStream::connect(address)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("connect to {address}: {error}")),
                Err(_) => Err(format!("connect to {address}: timed out")),
            }
        }
        Check::Exec { command } => match first_process(target.number) {
            Some(first) => run_inside(first, &target.sandbox, command, limit).await,
            None => Err("the container has ended".to_owned()),
        },
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
