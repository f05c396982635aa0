//! Child processes: our machines, sushy-tools' emulator, a file server. They end with the driver that started them.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use metal3_sim_bmc::{endpoint::Endpoint as LabEndpoint, identity::Number, profile::Profile, redfish};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::level::Bmc;

const START: Duration = Duration::from_secs(30);

/// The switches of `labhosts` that scenarios differ in.
#[derive(Debug)]
pub struct Wish {
    /// `PROFILE=COUNT`.
    pub machines: Vec<String>,
    /// Of all BMCs, agents and the control endpoint.
    pub port: u16,
    /// Milliseconds between heartbeats of an agent that has nothing to do.
    pub beat: u64,
}

/// Between heartbeats, in milliseconds, where there are no more than twenty machines. Real agents wait a minute or more.
pub const BEAT: u64 = 5000;

/// A running `labhosts`.
#[derive(Debug)]
pub struct Lab {
    /// Where it is.
    pub endpoint: LabEndpoint,
    http: reqwest::Client,
    child: Child,
}

impl Lab {
    /// Starts machines that trust this Ironic; they are gone when it is dropped.
    ///
    /// # Errors
    /// When they do not come up.
    pub async fn start(ironic_ca: &Path, folder: &Path, wish: &Wish) -> anyhow::Result<Self> {
        let binary = beside_me("labhosts")?;
        let data = folder.join("labhosts");
        // What a killed predecessor left.
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        let mut command = Command::new(binary);
        for group in &wish.machines {
            command.args(["--machines", group]);
        }
        command.args(["--port", &wish.port.to_string(), "--beat", &wish.beat.to_string()]);
        command.arg("--ironic-ca").arg(ironic_ca).arg("--data").arg(&data);
        let log = folder.join("labhosts.log");
        let mut child = spawn(&mut command, &log)?;
        let file = data.join("endpoint.json");
        until_there(&mut child, &log, || file.exists()).await?;
        let endpoint: LabEndpoint = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let pem = std::fs::read(&endpoint.ca)?;
        let http = reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .timeout(Duration::from_secs(60))
            .no_proxy()
            .build()?;
        Ok(Self { endpoint, http, child })
    }

    /// What it uses.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.child.id().map_or_else(Usage::default, Usage::of)
    }

    /// What a test may look at below `/lab`.
    ///
    /// # Errors
    /// When there is no such thing.
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

    /// The same, where it is JSON.
    ///
    /// # Errors
    /// When there is no such thing.
    pub async fn view(&self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.read(path).await?)?)
    }

    /// From now on all that is wrong with a machine.
    ///
    /// # Errors
    /// When it is none that machines know.
    pub async fn set_faults(&self, number: Number, faults: &Value) -> anyhow::Result<()> {
        let LabEndpoint {
            control_url,
            username,
            password,
            ..
        } = &self.endpoint;
        let url = format!("{control_url}/lab/machines/{number}/faults");
        let answer = self
            .http
            .put(url)
            .basic_auth(username, Some(password))
            .json(faults)
            .send()
            .await?;
        answer
            .error_for_status()
            .map(drop)
            .context("labhosts does not take the faults")
    }

    /// Switches everything off.
    ///
    /// # Errors
    /// When the program cannot be asked to end.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        end(&mut self.child).await
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
        let password = redfish::secret().map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
        let order = json!({ "port": port, "username": "admin", "password": password, "machines": machines });
        std::fs::write(data.join("order.json"), order.to_string())?;
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
        until_there(&mut child, &log, || answers(port)).await?;
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
        end(&mut self.child).await
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
        until_there(&mut child, &log, || answers(port)).await?;
        let url = format!("http://127.0.0.1:{port}");
        Ok(Self { url, child })
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        end(&mut self.child).await
    }
}

fn answers(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The same profile in the words of sushy-tools' fake driver.
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

/// A program that was built beside this one.
///
/// # Errors
/// When it was not.
pub fn beside_me(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    anyhow::ensure!(path.exists(), "{} is missing; build it first", path.display());
    Ok(path)
}

/// Starts a program that dies with what is returned, its words in a file.
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

/// Waits for the program with this log. Why it does not come is what it said last.
async fn until_there(child: &mut Child, log: &Path, there: impl Fn() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + START;
    let why = loop {
        if there() {
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
    let said = std::fs::read_to_string(log).unwrap_or_default();
    let last = said.trim_end().lines().last().unwrap_or("nothing");
    bail!("a part does not start: {why}; the end of {}: {last}", log.display())
}

/// Asks it to end, and makes it end when it does not.
///
/// # Errors
/// When it cannot even be asked.
pub async fn end(child: &mut Child) -> anyhow::Result<()> {
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

/// What a process and its children use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory.
    pub mib: u64,
    /// Time on a processor since they began, with that of children that have ended.
    pub cpu_seconds: u64,
}

impl Usage {
    /// Of a process and its children, nothing where it is gone.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let (mut kib, mut ticks) = (0, 0);
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let status = read("status");
            if id == pid || field(&status, "PPid:") == u64::from(pid) {
                kib += field(&status, "VmRSS:");
                ticks += ticks_of(&read("stat"));
            }
        }
        Self {
            mib: kib / 1024,
            cpu_seconds: ticks / TICKS_A_SECOND,
        }
    }
}

/// What Linux tells every program, whatever it counts in itself.
const TICKS_A_SECOND: u64 = 100;

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Its own and its ended children's, in user and system mode. The name in front may hold blanks.
fn ticks_of(stat: &str) -> u64 {
    let behind_name = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    let times = behind_name.split(' ').skip(11).take(4);
    times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_process_is_its_own_and_its_ended_childrens() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 9 9 0 0 100 20 3 4 20 0 1 0 99 9 9";
        assert_eq!(ticks_of(stat), 127);
        assert_eq!(ticks_of(""), 0);
    }

    #[test]
    fn this_process_uses_memory_and_one_that_is_gone_uses_nothing() {
        assert!(Usage::of(std::process::id()).mib > 0);
        assert_eq!(Usage::of(u32::MAX), Usage::default());
    }
}
