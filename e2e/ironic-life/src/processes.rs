//! Child processes: labhosts, sushy-tools' emulator, a file server. They end with the driver.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use metal3_sim_bmc::{endpoint::Endpoint as LabEndpoint, identity::Number, profile::Profile, redfish};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::{ironic::client, level::Bmc, usage::Usage};

const START: Duration = Duration::from_secs(30);

/// The flags of `labhosts` in which drivers differ.
#[derive(Debug)]
pub(crate) struct LabOptions {
    /// `PROFILE=COUNT`, or several with commas between them.
    pub(crate) machines: String,
    /// Of all BMCs, agents and the control endpoint.
    pub(crate) port: u16,
    /// Heartbeat interval of an idle agent.
    pub(crate) heartbeat_ms: u64,
}

/// The heartbeat interval for up to twenty machines. Real agents use a minute or more.
pub const HEARTBEAT_MS: u64 = 5000;

/// A running `labhosts`.
#[derive(Debug)]
pub struct Lab {
    /// Addresses and login.
    pub endpoint: LabEndpoint,
    http: reqwest::Client,
    child: Child,
}

impl Lab {
    /// Starts machines that trust this Ironic; dropping it stops them.
    pub(crate) async fn start(ironic_ca: &Path, folder: &Path, options: &LabOptions) -> anyhow::Result<Self> {
        let binary = sibling_binary("labhosts")?;
        let data = folder.join("labhosts");
        // A killed run leaves its data.
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        let mut command = Command::new(binary);
        for group in options.machines.split(',') {
            command.args(["--machines", group]);
        }
        command.args(["--port", &options.port.to_string()]);
        command.args(["--beat", &options.heartbeat_ms.to_string()]);
        command.arg("--ironic-ca").arg(ironic_ca).arg("--data").arg(&data);
        let log = folder.join("labhosts.log");
        let mut child = spawn(&mut command, &log)?;
        let file = data.join("endpoint.json");
        wait_until_ready(&mut child, &log, || file.exists()).await?;
        let endpoint: LabEndpoint = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let http = client(&endpoint.ca, Duration::from_secs(60))?;
        Ok(Self { endpoint, http, child })
    }

    /// Memory and processor time of the process.
    pub(crate) fn usage(&self) -> Usage {
        self.child.id().map_or_else(Usage::default, Usage::of)
    }

    /// Reads a path of the control endpoint, below `/lab`.
    ///
    /// # Errors
    /// When the path does not exist.
    pub async fn read(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let LabEndpoint {
            control_url,
            username,
            password,
            ..
        } = &self.endpoint;
        let answer = self
            .http
            .get(format!("{control_url}/lab{path}"))
            .basic_auth(username, Some(password))
            .send()
            .await?;
        Ok(answer.error_for_status()?.bytes().await?.into())
    }

    /// Reads JSON from a path below `/lab`.
    ///
    /// # Errors
    /// When the path does not exist, or is not JSON.
    pub async fn view(&self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.read(path).await?)?)
    }

    /// Replaces the set of faults of a machine.
    ///
    /// # Errors
    /// When labhosts does not know a fault.
    pub async fn set_faults(&self, number: Number, faults: &Value) -> anyhow::Result<()> {
        let sent = self
            .put(&format!("/machines/{number}/faults"), faults.to_string())
            .await;
        sent.context("labhosts rejects the faults")
    }

    /// Writes bytes to a disk of a machine, as a program of its system does.
    ///
    /// # Errors
    /// When the machine has no such disk.
    pub async fn fill_disk(&self, number: Number, disk: &str, content: Vec<u8>) -> anyhow::Result<()> {
        self.put(&format!("/machines/{number}/disks/{disk}"), content).await
    }

    async fn put(&self, path: &str, body: impl Into<reqwest::Body>) -> anyhow::Result<()> {
        let LabEndpoint {
            control_url,
            username,
            password,
            ..
        } = &self.endpoint;
        let request = self.http.put(format!("{control_url}/lab{path}"));
        let request = request
            .header("Content-Type", "application/json")
            .basic_auth(username, Some(password));
        request.body(body).send().await?.error_for_status()?;
        Ok(())
    }

    /// Stops the process.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        terminate(&mut self.child).await
    }
}

/// A running `sushy-emulator` with the machines of a profile.
pub(crate) struct Sushy {
    url: String,
    username: String,
    password: String,
    child: Child,
}

impl Sushy {
    pub(crate) async fn start(python: &Path, folder: &Path, port: u16, machines: &Value) -> anyhow::Result<Self> {
        let data = folder.join("sushy");
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        let password = redfish::secret().map_err(|_| anyhow::anyhow!("the system returns no random bytes"))?;
        let options = json!({ "port": port, "username": "admin", "password": password, "machines": machines });
        std::fs::write(data.join("order.json"), options.to_string())?;
        let script = data.join("machines.py");
        std::fs::write(&script, include_str!("../../ironic/sushy_machines.py"))?;
        let mut command = Command::new(python);
        command
            .arg(script)
            .arg(&data)
            .env("TMPDIR", &data)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let log = folder.join("sushy.log");
        let mut child = spawn(&mut command, &log)?;
        wait_until_ready(&mut child, &log, || accepts(port)).await?;
        Ok(Self {
            url: format!("http://127.0.0.1:{port}"),
            username: "admin".into(),
            password,
            child,
        })
    }

    pub(crate) fn bmc(&self, number: Number) -> Bmc {
        Bmc {
            address: self.url.clone(),
            system: format!("/redfish/v1/Systems/{}", number.uuid()),
            username: self.username.clone(),
            password: self.password.clone(),
            ca: None,
        }
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        terminate(&mut self.child).await
    }
}

/// A running file server with a few images of one sector each.
pub(crate) struct Files {
    pub(crate) url: String,
    child: Child,
}

impl Files {
    pub(crate) async fn start(python: &Path, folder: &Path, port: u16, names: &[&str]) -> anyhow::Result<Self> {
        let data = folder.join("files");
        std::fs::create_dir_all(&data)?;
        for name in names {
            std::fs::write(data.join(name), [0_u8; 2048])?;
        }
        let script = folder.join("file_server.py");
        std::fs::write(&script, include_str!("../../ironic/file_server.py"))?;
        let mut command = Command::new(python);
        command.arg(script).args(["127.0.0.1", &port.to_string()]).arg(&data);
        let log = folder.join("files.log");
        let mut child = spawn(&mut command, &log)?;
        wait_until_ready(&mut child, &log, || accepts(port)).await?;
        let url = format!("http://127.0.0.1:{port}");
        Ok(Self { url, child })
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        terminate(&mut self.child).await
    }
}

fn accepts(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The machines of a profile in the format of sushy-tools' fake driver.
pub(crate) fn sushy_machines(profile: &Profile, count: u16) -> Value {
    let machine = |number: Number| {
        let disks: Vec<Value> = profile
            .each_disk()
            .map(|(_, name, group)| json!({ "Id": name, "bytes": group.bytes }))
            .collect();
        json!({
            "uuid": number.uuid(),
            "name": format!("machine-{number}"),
            "macs": profile.each_nic().map(|(index, _)| number.mac(index)).collect::<Vec<_>>(),
            "memory_gib": profile.memory_mib / 1024,
            "sockets": profile.cpu.sockets,
            "cpu_model": profile.cpu.model,
            "cores": profile.cpu.cores / profile.cpu.sockets,
            "threads": profile.cpu.threads / profile.cpu.sockets,
            "disks": disks,
        })
    };
    (1..=count).map(|number| machine(Number(number))).collect()
}

/// A program in the directory of this one.
///
/// # Errors
/// When it is not there.
pub fn sibling_binary(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{} is missing; build it first", path.display());
    Ok(path)
}

/// Starts a process with its output in a file. Dropping the child kills it.
///
/// # Errors
/// When it cannot be started.
pub fn spawn(command: &mut Command, log: &Path) -> anyhow::Result<Child> {
    let output = std::fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .kill_on_drop(true)
        .spawn();
    child.with_context(|| format!("cannot start {:?}", command.as_std().get_program()))
}

/// Waits until the process is ready. The error contains the last line of its log.
async fn wait_until_ready(child: &mut Child, log: &Path, is_ready: impl Fn() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + START;
    let why = loop {
        if is_ready() {
            return Ok(());
        }
        if let Some(status) = child.try_wait()? {
            break format!("it ended with {status}");
        }
        if Instant::now() >= end {
            break format!("no answer after {START:?}");
        }
        sleep(Duration::from_millis(20)).await;
    };
    let output = std::fs::read_to_string(log).unwrap_or_default();
    let last = output.trim_end().lines().last().unwrap_or("nothing");
    bail!("a process does not start: {why}; the end of {}: {last}", log.display())
}

/// Sends SIGTERM, and SIGKILL after five seconds.
///
/// # Errors
/// When a signal cannot be sent.
pub async fn terminate(child: &mut Child) -> anyhow::Result<()> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let Some(pid) = id.and_then(Pid::from_raw) else {
        return Ok(());
    };
    kill_process(pid, Signal::TERM)?;
    if tokio::time::timeout(Duration::from_secs(5), child.wait())
        .await
        .is_err()
    {
        child.kill().await?;
    }
    Ok(())
}
