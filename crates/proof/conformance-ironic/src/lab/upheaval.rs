//! An Ironic that dies and comes back, or comes back with nothing.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_ironic::calls;
use metal3_ironic::calls::node::Order;
use metal3_ironic::model::node::Node;
use tokio::process::Command;

use super::{Door, Lab, is_ours};

impl Lab {
    /// It dies, and is back when this returns.
    pub(crate) async fn restart(&self) -> anyhow::Result<()> {
        match &self.door {
            Door::Within(ironic) => ironic.restart(Duration::ZERO),
            Door::Sockets(_) => return self.have("restart").await,
        }
        Ok(())
    }

    /// The same with an empty database.
    pub(crate) async fn forget(&self) -> anyhow::Result<()> {
        match &self.door {
            Door::Within(ironic) => ironic.lose_database(),
            Door::Sockets(_) => return self.have("forget").await,
        }
        Ok(())
    }

    async fn have(&self, verb: &str) -> anyhow::Result<()> {
        let script = self
            .script
            .as_deref()
            .context("nobody knows how this Ironic was started")?;
        self.is_started_by(script).await?;
        self.is_ours_alone().await?;
        let done = Command::new(script).arg(verb).status().await?;
        ensure!(done.success(), "{} {verb}: {done}", script.display());
        Ok(())
    }

    /// The script goes by a name in its environment, and we by credentials: they may mean two.
    async fn is_started_by(&self, script: &Path) -> anyhow::Result<()> {
        let said = Command::new(script)
            .arg("status")
            .stderr(Stdio::inherit())
            .output()
            .await?;
        let is_this = names(&String::from_utf8_lossy(&said.stdout), &self.url);
        ensure!(
            said.status.success() && is_this,
            "INSTANCE names another Ironic than the credentials do, {}: it is left alone",
            self.url
        );
        Ok(())
    }

    /// What others enrolled would be lost with what claims did; what cannot be read may be theirs.
    async fn is_ours_alone(&self) -> anyhow::Result<()> {
        let mut behind = None;
        loop {
            let call = calls::node::list::<Node>(Order::Created, 1_000, behind.as_ref());
            let page = self.client.send(&call).await?.value;
            ensure!(
                page.unreadable.is_empty(),
                "this Ironic has nodes that cannot be read, {:?}: it is left alone",
                page.unreadable
            );
            if let Some(node) = page.items.iter().find(|node| !is_ours(node)) {
                bail!(
                    "this Ironic has a node that no claim made, {}: it is left alone",
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

/// Whether the script's status is about the Ironic at this address.
fn names(status: &str, url: &str) -> bool {
    status.split_whitespace().any(|word| word == url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn only_the_status_of_the_same_address_is_about_this_ironic() {
        let status = "  url          https://127.0.0.1:26385\n  CA           /c/ca.crt\n";
        for (url, is_this) in [
            ("https://127.0.0.1:26385", true),
            ("https://127.0.0.1:26385/", true),
            ("https://127.0.0.1:2638", false),
            ("https://127.0.0.1:26395", false),
            ("", false),
        ] {
            assert_eq!(names(status, url), is_this, "{url}");
        }
    }
}
