//! Restarting the Ironic under test, with or without its database.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_ironic::calls;
use metal3_ironic::calls::node::Order;
use metal3_ironic::model::node::Node;
use tokio::process::Command;

use super::{Connection, Lab, is_test_node};

impl Lab {
    /// Restarts Ironic and waits until it serves again.
    pub(crate) async fn restart(&self) -> anyhow::Result<()> {
        match &self.connection {
            Connection::InProcess(ironic) => ironic.restart(Duration::ZERO),
            Connection::Sockets(_) => return self.run_script("restart").await,
        }
        Ok(())
    }

    /// Restarts Ironic with an empty database.
    pub(crate) async fn lose_database(&self) -> anyhow::Result<()> {
        match &self.connection {
            Connection::InProcess(ironic) => ironic.lose_database(),
            Connection::Sockets(_) => return self.run_script("forget").await,
        }
        Ok(())
    }

    async fn run_script(&self, verb: &str) -> anyhow::Result<()> {
        let script = self
            .script
            .as_deref()
            .context("the script that started this Ironic is unknown")?;
        self.check_script(script).await?;
        self.check_nodes().await?;
        let done = Command::new(script).arg(verb).status().await?;
        ensure!(done.success(), "{} {verb}: {done}", script.display());
        Ok(())
    }

    /// Checks that the script controls this Ironic: the script uses an environment variable, the claims use credentials.
    async fn check_script(&self, script: &Path) -> anyhow::Result<()> {
        let status = Command::new(script)
            .arg("status")
            .stderr(Stdio::inherit())
            .output()
            .await?;
        let is_this = has_url(&String::from_utf8_lossy(&status.stdout), &self.url);
        ensure!(
            status.status.success() && is_this,
            "INSTANCE and the credentials address different Ironics; nothing was changed at {}",
            self.url
        );
        Ok(())
    }

    /// Checks that all nodes belong to claims, because the database is emptied.
    async fn check_nodes(&self) -> anyhow::Result<()> {
        let mut behind = None;
        loop {
            let call = calls::node::list::<Node>(Order::Created, 1_000, behind.as_ref());
            let page = self.client.send(&call).await?.value;
            ensure!(
                page.unreadable.is_empty(),
                "this Ironic has unreadable nodes, {:?}; nothing was changed",
                page.unreadable
            );
            if let Some(node) = page.items.iter().find(|node| !is_test_node(node)) {
                bail!(
                    "this Ironic has a node of another user, {}; nothing was changed",
                    node.uuid
                );
            }
            behind = page.next;
            if behind.is_none() {
                return Ok(());
            }
        }
    }
}

/// Whether the script's status has this URL.
fn has_url(status: &str, url: &str) -> bool {
    status.split_whitespace().any(|word| word == url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::has_url;

    #[test]
    fn status_matches_only_the_same_url() {
        let status = "  url          https://127.0.0.1:26385\n  CA           /c/ca.crt\n";
        for (url, is_this) in [
            ("https://127.0.0.1:26385", true),
            ("https://127.0.0.1:26385/", true),
            ("https://127.0.0.1:2638", false),
            ("https://127.0.0.1:26395", false),
            ("", false),
        ] {
            assert_eq!(has_url(status, url), is_this, "{url}");
        }
    }
}
