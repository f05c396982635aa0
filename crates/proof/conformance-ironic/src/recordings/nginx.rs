//! nginx with default limits in front of an unreachable upstream.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The interval of connection attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The number of connection attempts.
const POLLS: usize = 250;

/// A running nginx, which ends on drop.
pub(super) struct Nginx {
    address: SocketAddr,
    folder: PathBuf,
    child: Child,
}

/// A free loopback address.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A minimal configuration in a separate directory, otherwise with nginx's defaults.
fn configuration(address: SocketAddr, upstream: SocketAddr) -> String {
    let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\n  access_log off;\n{folders}  server {{\n    \
         listen {address};\n    location / {{ proxy_pass http://{upstream}; }}\n  }}\n}}\n"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

impl Nginx {
    pub(super) async fn without_upstream(program: &Path) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("metal3-nginx-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let (address, upstream) = (free_address()?, free_address()?);
        std::fs::write(folder.join("nginx.conf"), configuration(address, upstream))?;
        let child = Command::new(program)
            .arg("-p")
            .arg(&folder)
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let nginx = Self { address, folder, child };
        for _ in 0..POLLS {
            if TcpStream::connect(address).await.is_ok() {
                return Ok(nginx);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let log = std::fs::read_to_string(nginx.folder.join("error.log")).unwrap_or_default();
        anyhow::bail!("nginx does not listen: {log}")
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        ensure!(TcpStream::connect(self.address).await.is_err(), "nginx still listens");
        Ok(())
    }
}
