//! The released program, one process or several that elect a leader.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use metal3_ironic_life::processes::{spawn, terminate};
use metal3_ironic_life::simulated::SimulatedIronic;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::run::World;
use crate::server::SYSTEM;

/// Ports of the health of the first process and its successors.
const FIRST_PORT: u16 = 29_440;
/// The largest deprovision budget.
const MOST: u32 = 1_000_000;
const START: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(20);

/// How processes are started.
pub(crate) struct Managers {
    program: PathBuf,
    home: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    started: u16,
}

/// A running process; it is killed with this value.
pub(crate) struct Manager {
    child: Child,
    port: u16,
    /// When it was started.
    pub(crate) since: Instant,
}

impl Managers {
    pub(crate) fn new(world: &World, ironic: &SimulatedIronic, slots: u32) -> Self {
        let World {
            program,
            home,
            log_level,
            ..
        } = world;
        let kubeconfig = home.join("manager.kubeconfig").display().to_string();
        let image = |file: &str| format!("http://images.example/{file}");
        Self {
            program: program.clone(),
            home: home.clone(),
            arguments: vec![
                format!("--kubeconfig={kubeconfig}"),
                "--controllers=hosts".to_owned(),
                "--leader-elect".to_owned(),
                format!("--v={log_level}"),
                "--webhook-port=0".to_owned(),
                "--diagnostics-address=0".to_owned(),
                // The budget protects from mistakes; deprovisioning all hosts is none here.
                format!("--deprovision-budget={MOST}"),
            ],
            variables: vec![
                ("POD_NAMESPACE", SYSTEM.to_owned()),
                ("IRONIC_ENDPOINT", ironic.url.clone()),
                ("IRONIC_CACERT_FILE", ironic.ca.display().to_string()),
                ("METAL3_AUTH_ROOT_DIR", ironic.auth.display().to_string()),
                ("PROVISIONING_LIMIT", slots.to_string()),
                ("DEPLOY_KERNEL_URL", image("agent.kernel")),
                ("DEPLOY_RAMDISK_URL", image("agent.initramfs")),
            ],
            started: 0,
        }
    }

    /// The version that the program prints.
    pub(crate) fn version(program: &Path) -> anyhow::Result<String> {
        let output = std::process::Command::new(program)
            .arg("--version")
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    pub(crate) fn start(&mut self) -> anyhow::Result<Manager> {
        self.started = self.started.saturating_add(1);
        let port = FIRST_PORT.saturating_add(self.started);
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(&self.arguments)
            .arg(format!("--health-addr=127.0.0.1:{port}"));
        let log = self.home.join(format!("manager-{}.log", self.started));
        let since = Instant::now();
        Ok(Manager {
            child: spawn(&mut command, &log)?,
            port,
            since,
        })
    }
}

impl Manager {
    /// Waits until it answers that it is alive.
    pub(crate) async fn alive(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + START;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                bail!("the manager ended with {status}");
            }
            if answers(self.port, "/healthz").await {
                return Ok(());
            }
            sleep(INTERVAL).await;
        }
        bail!("the manager is not alive after {START:?}")
    }

    /// Fails when it ends, as it does without its lease.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<()> {
        let status = self.child.wait().await?;
        bail!("the manager ended with {status}; its log has the reason")
    }

    /// Stops it as Kubernetes does.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        terminate(&mut self.child).await
    }

    /// Kills it without a chance to release its lease.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

/// Whether the health port answers with 200.
async fn answers(port: u16, path: &str) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = ask.await.unwrap_or_default();
    answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200")
}
