//! The simulated Ironic, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use metal3_sim_ironic::meter::Traffic;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::processes::sibling_binary;

/// Any text: Ironic serves this run alone, on loopback of the stack's network.
const LOGIN: [(&str, &str); 2] = [("username", "ironic"), ("password", "of-this-run")];

/// A running `sim-ironic`; it ends with this value.
#[derive(Debug)]
pub struct SimulatedIronic {
    /// Its URL.
    pub url: String,
    /// The file with its certificate.
    pub ca: PathBuf,
    /// Folder with the login, as the manager expects it.
    pub auth: PathBuf,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

#[derive(Deserialize)]
struct Begin {
    url: String,
    ca: String,
}

impl SimulatedIronic {
    /// Starts it with machines, at the BMC addresses of a simulated world.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(home: &Path, machines: u32, speed: u32) -> anyhow::Result<Self> {
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
    ///
    /// # Errors
    /// When the process ended.
    pub async fn take(&mut self) -> anyhow::Result<Traffic> {
        Ok(serde_json::from_str(&self.command("take").await?)?)
    }

    /// Closes its port and all connections for a while. Nodes and their work continue.
    ///
    /// # Errors
    /// When the process ended.
    pub async fn go_away(&mut self, seconds: u64) -> anyhow::Result<()> {
        let millis = seconds.saturating_mul(1000);
        self.command(&format!("away {millis}")).await.map(drop)
    }

    /// What a machine has on its disk (`image`), and how often that was `written` and `erased`.
    ///
    /// # Errors
    /// When the process ended, or there is no such machine.
    pub async fn machine(&mut self, number: u32) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(
            &self.command(&format!("machine {number}")).await?,
        )?)
    }

    /// Lets the BMC of a machine answer no more.
    ///
    /// # Errors
    /// When the process ended, or there is no such machine.
    pub async fn break_bmc(&mut self, number: u32) -> anyhow::Result<()> {
        self.command(&format!("break {number}")).await.map(drop)
    }
}
