//! The program of a kubeconfig that logs in (`exec`). One runs at a time, however many requests wait, and none longer than its deadline.
//!
//! The client library runs it without an end: each request that gives up waiting leaves it behind, and the next one starts another.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::Config;
use kube::client::AuthError;
use kube::config::{ExecConfig, ExecInteractiveMode};
use metal3_api::meta::Time;
use metal3_domain::clock::{Clock, SystemClock};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

/// A token that expires within this time is not used.
const MARGIN: Duration = Duration::from_secs(60);
/// The time for the next token, while requests wait: less than a question about the login waits. A person may type for the first one only.
const REFRESH: Duration = Duration::from_secs(15);

/// The programs of all sessions.
#[derive(Clone)]
pub(super) struct Programs {
    place: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            place: Arc::new(Semaphore::new(1)),
            tasks: TaskTracker::new(),
        }
    }
}

/// The program of one session.
#[derive(Clone)]
pub(super) struct Program {
    programs: Programs,
    exec: Arc<ExecConfig>,
    given: Arc<Mutex<Option<Given>>>,
    clock: SystemClock,
}

/// What the last run resulted in.
enum Given {
    Login(Status),
    Failed(Instant),
}

#[derive(Deserialize)]
struct Credential {
    status: Option<Status>,
}

/// A login, as programs print it.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    expiration_timestamp: Option<Time>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Programs {
    /// The program of a configuration that has no other login, taken out of it.
    pub(super) fn take(&self, config: &mut Config) -> Option<Program> {
        let login = &mut config.auth_info;
        let is_other = login.auth_provider.is_some() || login.token.is_some() || login.token_file.is_some();
        let is_other = is_other || login.username.is_some() && login.password.is_some();
        let exec = login.exec.take_if(|_| !is_other)?;
        Some(Program {
            programs: self.clone(),
            exec: Arc::new(exec),
            given: Arc::default(),
            clock: SystemClock::start(),
        })
    }
}

impl Program {
    /// Runs it for the first time, within this time. A client certificate that it gives becomes that of the configuration.
    pub(super) async fn begin(&self, config: &mut Config, within: Duration) -> Result<(), AuthError> {
        let status = self.login(within).await?;
        if let (Some(certificate), Some(key)) = (status.client_certificate_data, status.client_key_data) {
            config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        }
        Ok(())
    }

    /// The header of a request, if it has one.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, AuthError> {
        let Some(token) = self.login(REFRESH).await?.token else {
            return Ok(None);
        };
        let header = HeaderValue::try_from(format!("Bearer {token}"));
        let mut header = header.map_err(AuthError::InvalidBearerToken)?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    /// The login as it is, or as the next run gives it. The run is a task of its own: it ends in time when nothing waits for it any more.
    /// A failure is that of all who waited for it: who asks later has another run.
    async fn login(&self, within: Duration) -> Result<Status, AuthError> {
        let asked = Instant::now();
        let mut given = Arc::clone(&self.given).lock_owned().await;
        match &*given {
            Some(Given::Login(status)) if self.is_good(status) => return Ok(status.clone()),
            Some(Given::Failed(at)) if *at >= asked => return Err(failed("it has failed just now")),
            _ => {}
        }
        let (place, exec) = (Arc::clone(&self.programs.place), Arc::clone(&self.exec));
        let run = self.programs.tasks.spawn(async move {
            let _place = place.acquire_owned().await;
            let ran = timeout(within, run(&exec)).await;
            let ran = ran.unwrap_or_else(|_| Err(failed("it did not end in time")));
            *given = Some(match &ran {
                Ok(status) => Given::Login(status.clone()),
                Err(_) => Given::Failed(Instant::now()),
            });
            ran
        });
        run.await.unwrap_or_else(|_| Err(AuthError::ExecPluginFailed))
    }

    /// A certificate is that of all connections of a session.
    fn is_good(&self, status: &Status) -> bool {
        let is_certificate = status.client_certificate_data.is_some() && status.client_key_data.is_some();
        let end = status.expiration_timestamp.map(Time::get);
        is_certificate || end.is_none_or(|end| self.clock.now() + MARGIN < end)
    }
}

/// Without what the program prints: it may be a token.
fn failed(why: &str) -> AuthError {
    AuthError::AuthExec(why.to_owned())
}

/// Runs the program. It is ended when this is dropped.
async fn run(exec: &ExecConfig) -> Result<Status, AuthError> {
    let child = command(exec)?.kill_on_drop(true).spawn();
    let output = child.map_err(AuthError::AuthExecStart)?.wait_with_output().await;
    let output = output.map_err(AuthError::AuthExecStart)?;
    if !ExitStatus::success(&output.status) {
        return Err(failed("it has failed"));
    }
    // JSON or, as kubectl accepts it, YAML.
    let credential: Credential =
        serde_saphyr::from_slice(&output.stdout).map_err(|_| failed("it printed no ExecCredential"))?;
    credential.status.ok_or(AuthError::ExecPluginFailed)
}

fn command(exec: &ExecConfig) -> Result<Command, AuthError> {
    let mut command = Command::new(exec.command.as_ref().ok_or(AuthError::MissingCommand)?);
    command.args(exec.args.iter().flatten());
    let variables = exec.env.iter().flatten();
    command.envs(variables.filter_map(|one| Some((one.get("name")?, one.get("value")?))));
    let is_interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    let terminal = || {
        if is_interactive {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    command.stdin(terminal()).stderr(terminal()).stdout(Stdio::piped());
    let spec = if exec.provide_cluster_info {
        let cluster = exec.cluster.as_ref().ok_or(AuthError::ExecMissingClusterInfo)?;
        json!({ "interactive": is_interactive, "cluster": cluster })
    } else {
        json!({ "interactive": is_interactive })
    };
    let asked = json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec });
    command.env("KUBERNETES_EXEC_INFO", asked.to_string());
    Ok(command)
}

#[cfg(test)]
#[cfg(unix)]
#[path = "program_tests.rs"]
mod tests;
