//! The simulated Ironic, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use metal3_ironic_life::processes::sibling_binary;
use metal3_sim_ironic::meter::Traffic;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Any text: Ironic serves this run alone, on loopback of the stack's network.
const LOGIN: [(&str, &str); 2] = [("username", "ironic"), ("password", "of-this-run")];

/// A running `sim-ironic`; it ends with this value.
pub(crate) struct Ironic {
    pub(crate) url: String,
    pub(crate) ca: PathBuf,
    /// Folder with the login, as the manager expects it.
    pub(crate) auth: PathBuf,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

#[derive(Deserialize)]
struct Begin {
    url: String,
    ca: String,
}

impl Ironic {
    pub(crate) async fn start(home: &Path, machines: u32, speed: u32) -> anyhow::Result<Self> {
        let auth = home.join("auth");
        let login = auth.join("ironic");
        std::fs::create_dir_all(&login)?;
        for (file, text) in LOGIN {
            std::fs::write(login.join(file), text)?;
        }
        let mut child = Command::new(sibling_binary("sim-ironic")?)
            .arg("--login")
            .arg(&login)
            .args(["--machines", &machines.to_string(), "--speed", &speed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting sim-ironic")?;
        let commands = child.stdin.take().context("no input of sim-ironic")?;
        let output = child.stdout.take().context("no output of sim-ironic")?;
        let mut answers = BufReader::new(output).lines();
        let first = answers.next_line().await?.context("sim-ironic ended")?;
        let Begin { url, ca } = serde_json::from_str(&first)?;
        let file = home.join("ironic.crt");
        std::fs::write(&file, ca)?;
        Ok(Self {
            url,
            ca: file,
            auth,
            commands,
            answers,
            _child: child,
        })
    }

    async fn command(&mut self, command: &str) -> anyhow::Result<String> {
        self.commands.write_all(format!("{command}\n").as_bytes()).await?;
        self.answers.next_line().await?.context("sim-ironic ended")
    }

    /// The traffic since the last call.
    pub(crate) async fn take(&mut self) -> anyhow::Result<Traffic> {
        Ok(serde_json::from_str(&self.command("take").await?)?)
    }

    /// Closes its port and all connections for a while. Nodes and their work continue.
    pub(crate) async fn go_away(&mut self, seconds: u64) -> anyhow::Result<()> {
        let millis = seconds.saturating_mul(1000);
        self.command(&format!("away {millis}")).await.map(drop)
    }
}
