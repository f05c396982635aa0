//! The installed program in its own process; restarted after a case killed it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use metal3_ironic_life::processes::{sibling_binary, spawn, terminate};
use tokio::process::Command;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::interceptor::Interceptor;

/// The configuration of the program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramOptions {
    /// The directory of its files.
    pub(crate) home: PathBuf,
    /// The address it uses for Ironic.
    pub(crate) ironic: String,
    /// The certificate authority of that address.
    pub(crate) ca: PathBuf,
    /// Number of hosts that may load the provisioning network simultaneously.
    pub(crate) slots: usize,
    /// Number of hosts that may be deprovisioned per hour.
    pub(crate) deprovision_budget: usize,
    /// What a test case adds.
    pub(crate) more: MoreOptions,
}

/// Flags and environment variables in addition to the usual ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoreOptions {
    pub(crate) flags: Vec<&'static str>,
    pub(crate) variables: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) struct Program {
    /// One task; dropping it kills the program.
    tasks: JoinSet<anyhow::Result<()>>,
    supervisor: AbortHandle,
    stop: oneshot::Sender<()>,
}

impl Program {
    /// It is killed when the API server injects a crash (`crashes`), or the interceptor does.
    pub(crate) fn start(options: ProgramOptions, interceptor: Interceptor, crashes: watch::Receiver<u64>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let supervisor = tasks.spawn(supervise(options, interceptor, crashes, stopped));
        Self {
            tasks,
            supervisor,
            stop,
        }
    }

    /// Whether it ended without a call of `stop`.
    pub(crate) fn has_ended(&self) -> bool {
        self.supervisor.is_finished()
    }

    /// Stops it as Kubernetes does.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        // Fails when the task has ended; its result is returned below.
        self.stop.send(()).ok();
        match self.tasks.join_next().await {
            Some(ended) => ended?,
            None => Ok(()),
        }
    }
}

async fn supervise(
    options: ProgramOptions,
    interceptor: Interceptor,
    mut crashes: watch::Receiver<u64>,
    mut stopped: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    for start in 1_usize.. {
        let log = options.home.join(format!("capm3-{start}.log"));
        let kills = interceptor.log().kills;
        let mut child = spawn(&mut command(&options)?, &log)?;
        interceptor.log().set_target(child.id());
        let ended = tokio::select! {
            ended = child.wait() => ended?,
            Ok(()) = crashes.changed() => {
                interceptor.log().kill();
                child.wait().await?
            }
            _ = &mut stopped => return terminate(&mut child).await,
        };
        if interceptor.log().kills == kills {
            bail!("the program ended with {ended}; see {}", log.display());
        }
    }
    Ok(())
}

fn command(options: &ProgramOptions) -> anyhow::Result<Command> {
    let mut command = Command::new(sibling_binary("capm3")?);
    command
        .env_clear()
        .env("IRONIC_ENDPOINT", &options.ironic)
        .env("IRONIC_CACERT_FILE", &options.ca)
        .env("METAL3_AUTH_ROOT_DIR", options.home.join("auth"))
        .env("PROVISIONING_LIMIT", options.slots.to_string())
        .arg("--kubeconfig")
        .arg(options.home.join("kubeconfig"))
        .args(["--controllers=hosts", "--lab-fake-hardware", "--v=4"])
        .arg(format!("--deprovision-budget={}", options.deprovision_budget))
        .args(["--webhook-port=0", "--health-addr=0", "--diagnostics-address=0"])
        .args(&options.more.flags)
        .envs(options.more.variables.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// Writes the files that the program reads when it starts.
pub(crate) fn write_files(home: &Path, cluster: &str, username: &str, password: &str) -> anyhow::Result<()> {
    // A killed run leaves its files.
    drop(std::fs::remove_dir_all(home));
    let auth = home.join("auth/ironic");
    std::fs::create_dir_all(&auth).with_context(|| format!("cannot create {}", auth.display()))?;
    std::fs::write(auth.join("username"), username)?;
    std::fs::write(auth.join("password"), password)?;
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{ "name": "one", "cluster": { "server": cluster } }],
        "users": [{ "name": "one", "user": {} }],
        "contexts": [{ "name": "one", "context": { "cluster": "one", "user": "one" } }],
    });
    std::fs::write(home.join("kubeconfig"), kubeconfig.to_string())?;
    Ok(())
}
