//! The program as it is installed, in a process of its own; started again whenever a case killed it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use metal3_ironic_life::processes::{beside_me, end, spawn};
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use crate::tap::Tap;

/// What the program is told.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    /// Where everything of it lies.
    pub(crate) home: PathBuf,
    /// Where Ironic is, as far as it knows.
    pub(crate) ironic: String,
    /// Whom it trusts to be it.
    pub(crate) authority: PathBuf,
    /// How many hosts may load the provisioning network at once.
    pub(crate) slots: usize,
    /// How many hosts may be torn down in an hour.
    pub(crate) departures: usize,
}

/// A program under supervision.
#[derive(Debug)]
pub(crate) struct Program {
    /// One task; the program dies with it.
    tasks: JoinSet<anyhow::Result<()>>,
    supervisor: AbortHandle,
    stop: oneshot::Sender<()>,
}

impl Program {
    pub(crate) fn start(orders: Orders, tap: Tap) -> Self {
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let supervisor = tasks.spawn(supervise(orders, tap, stopped));
        Self {
            tasks,
            supervisor,
            stop,
        }
    }

    /// Whether it ended although nobody wanted it to.
    pub(crate) fn is_over(&self) -> bool {
        self.supervisor.is_finished()
    }

    /// Ends it as Kubernetes would.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        // Nobody listens when it is over, and then it says so itself.
        self.stop.send(()).ok();
        match self.tasks.join_next().await {
            Some(ended) => ended?,
            None => Ok(()),
        }
    }
}

async fn supervise(orders: Orders, tap: Tap, mut stopped: oneshot::Receiver<()>) -> anyhow::Result<()> {
    for start in 1_usize.. {
        let log = orders.home.join(format!("capm3-{start}.log"));
        let kills = tap.book().kills;
        let mut child = spawn(&mut command(&orders)?, &log)?;
        tap.book().watch_over(child.id());
        let ended = tokio::select! {
            ended = child.wait() => ended?,
            _ = &mut stopped => return end(&mut child).await,
        };
        if tap.book().kills == kills {
            bail!("the program ended with {ended}; see {}", log.display());
        }
    }
    Ok(())
}

fn command(orders: &Orders) -> anyhow::Result<Command> {
    let mut command = Command::new(beside_me("capm3")?);
    command
        .env_clear()
        .env("IRONIC_ENDPOINT", &orders.ironic)
        .env("IRONIC_CACERT_FILE", &orders.authority)
        .env("METAL3_AUTH_ROOT_DIR", orders.home.join("auth"))
        .env("PROVISIONING_LIMIT", orders.slots.to_string())
        .arg("--kubeconfig")
        .arg(orders.home.join("kubeconfig"))
        .args(["--controllers=hosts", "--lab-fake-hardware", "--v=4"])
        .arg(format!("--deprovision-budget={}", orders.departures))
        .args(["--webhook-port=0", "--health-addr=0", "--diagnostics-address=0"]);
    Ok(command)
}

/// Writes what the program reads at its start.
pub(crate) fn write_files(home: &Path, cluster: &str, username: &str, password: &str) -> anyhow::Result<()> {
    // What a killed predecessor left.
    drop(std::fs::remove_dir_all(home));
    let auth = home.join("auth/ironic");
    std::fs::create_dir_all(&auth).with_context(|| format!("cannot make {}", auth.display()))?;
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
