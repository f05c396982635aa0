//! A container's process: started in the Pod's network and its own namespaces.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::plan::sandbox::Sandbox;
use crate::plan::user::Users;

/// A running container. The outer process waits for the container's first process and ends with it.
#[derive(Debug)]
pub(crate) struct Process {
    outer: Child,
    number: u32,
}

impl Process {
    pub(crate) fn start(holder: u32, sandbox: &Sandbox, variables: &BTreeMap<String, String>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&sandbox.root).context("making the root folder")?;
        if let Some(folder) = sandbox.log.parent() {
            std::fs::create_dir_all(folder).context("making the folder of logs")?;
        }
        File::create(&sandbox.log).context("making the log")?;
        let mut command = Command::new("/usr/bin/setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            "/usr/bin/nsenter",
            "--target",
            &holder.to_string(),
            "--net",
            "--uts",
        ]);
        command.args([
            "/usr/bin/unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child=KILL",
            "/bin/sh",
            "-c",
        ]);
        command.arg(sandbox.script()).env_clear().envs(variables);
        // The script opens the log; output before that goes to the kubelet's log.
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let outer = command.spawn().context("starting the container")?;
        let number = outer.id().context("the container ended at once")?;
        Ok(Self { outer, number })
    }

    /// The container's first process; `None` before its namespaces exist and after its end.
    pub(crate) fn first(&self) -> Option<u32> {
        first_process(self.number)
    }

    /// The id of the outer process, which is constant.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        self.outer.wait().await.context("waiting for the container")
    }

    /// Sends SIGTERM. A container that is still starting is killed.
    pub(crate) fn terminate(&self) {
        match self.first() {
            Some(first) => signal(first, Signal::TERM),
            None => self.kill(),
        }
    }

    /// Kills the outer process, and with it the container: the exit status is that of SIGKILL.
    pub(crate) fn kill(&self) {
        signal(self.number, Signal::KILL);
    }
}

/// The container's first process. It may not exist yet, so it is read each time.
pub(crate) fn first_process(number: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn signal(process: u32, signal: Signal) {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else {
        return;
    };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(%error, process, "a signal was not delivered"),
    }
}

/// The exit code of the API: a signal is 128 plus its number.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

/// Runs a probe's command in the container: same namespaces, root folder and user. Success is exit code 0.
pub(crate) async fn run_inside(
    first: u32,
    sandbox: &Sandbox,
    command: &[String],
    limit: Duration,
) -> Result<(), String> {
    let mut inside = Command::new("/usr/bin/nsenter");
    inside.args([
        "--target",
        &first.to_string(),
        "--mount",
        "--net",
        "--uts",
        "--pid",
        "--root",
        "--wd",
    ]);
    match sandbox.users {
        Users::One => {
            inside.args(["--user", "--preserve-credentials"]);
        }
        Users::Many => {
            let user = format!("--reuid={}", sandbox.identity.user);
            let group = format!("--regid={}", sandbox.identity.group);
            inside.args(["/usr/bin/setpriv", &user, &group, "--clear-groups"]);
        }
    }
    inside.args(command).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(limit, inside.output()).await;
    match output {
        Err(_) => Err(format!("command timed out after {} s", limit.as_secs())),
        Ok(Err(error)) => Err(format!("command did not run: {error}")),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let line = stderr.lines().next().unwrap_or_default();
            Err(format!("command exited with {}: {line}", exit_code(output.status)))
        }
    }
}
