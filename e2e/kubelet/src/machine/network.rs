//! A Pod's network: a namespace held by a sleeping process, and a veth pair to the Node's bridge.

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::clock;
use crate::plan::sandbox::quote;

/// Dropping it kills the holder, which removes namespace and veth pair.
#[derive(Debug)]
pub(crate) struct Network {
    holder: Child,
    pub(crate) holder_process: u32,
}

const UNSHARE_LIMIT: Duration = Duration::from_secs(10);

impl Network {
    pub(crate) async fn create(bridge: &str, node: &str, address: Ipv4Addr, host_name: &str) -> anyhow::Result<Self> {
        let script = format!("hostname {} && exec sleep infinity", quote(host_name));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "--uts", "sh", "-c", &script]);
        let holder = command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting the Pod's holder")?;
        let holder_process = holder.id().context("the Pod's holder ended at once")?;
        let network = Self { holder, holder_process };
        network.await_own_namespace().await?;
        let [_, _, _, host] = address.octets();
        let veth = format!("pod{host}");
        // The namespace of the previous Pod with this address may still exist.
        ip(&["link", "delete", &veth]).await.unwrap_or_default();
        ip(&[
            "link",
            "add",
            &veth,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            &holder_process.to_string(),
        ])
        .await?;
        ip(&["link", "set", &veth, "master", bridge, "up"]).await?;
        let inside = format!(
            "link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\nroute add default via {node}\n"
        );
        network.ip_inside(&inside).await?;
        Ok(network)
    }

    /// Kills the holder and waits for its end.
    pub(crate) async fn remove(mut self) {
        if let Err(error) = self.holder.kill().await {
            tracing::warn!(%error, "the Pod's holder could not be killed");
        }
    }

    async fn await_own_namespace(&self) -> anyhow::Result<()> {
        let own = std::fs::read_link("/proc/self/ns/net").context("reading the own network namespace")?;
        let holder_namespace = format!("/proc/{}/ns/net", self.holder_process);
        let start = clock::instant();
        while start.elapsed() < UNSHARE_LIMIT {
            if std::fs::read_link(&holder_namespace).is_ok_and(|holder_namespace| holder_namespace != own) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("the Pod's holder did not enter a network namespace")
    }

    async fn ip_inside(&self, batch: &str) -> anyhow::Result<()> {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.holder_process.to_string(),
            "--net",
            "ip",
            "-batch",
            "-",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("running nsenter")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(batch.as_bytes()).await.context("writing to ip")?;
        }
        finished("ip", child.wait_with_output().await?)
    }
}

async fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    finished(
        "ip",
        Command::new("ip")
            .args(arguments)
            .output()
            .await
            .context("running ip")?,
    )
}

fn finished(program: &str, output: std::process::Output) -> anyhow::Result<()> {
    if !output.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
