//! Checks of what machines run and what their disks hold.

use anyhow::{Context as _, ensure};
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::{compare::differences, order::sha256, processes::Lab};

impl Lab {
    /// Checks that the first disk of a machine holds these bytes and that the machine booted from it.
    ///
    /// # Errors
    /// When it does not.
    pub async fn check_disk(&self, number: Number, expected: &[u8]) -> anyhow::Result<()> {
        let found = self.read(&format!("/machines/{number}/disks/sda")).await?;
        ensure!(
            found == expected,
            "sda holds {} bytes that are not the image's {}",
            found.len(),
            expected.len()
        );
        let running = self.running(number).await?;
        ensure!(
            running == json!({ "kind": "disk", "disk": "sda" }),
            "the machine does not run from its disk: {running}"
        );
        Ok(())
    }

    /// Checks that the files of the config-drive are the expected ones.
    ///
    /// # Errors
    /// When a file differs.
    pub async fn check_config_drive<'a>(
        &self,
        number: Number,
        user_data: &str,
        files: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> anyhow::Result<()> {
        let base = format!("/machines/{number}/disks/sda/config-drive/openstack/latest");
        let found = self.read(&format!("{base}/user_data")).await?;
        ensure!(
            found == user_data.as_bytes(),
            "user_data differs: {:?}",
            String::from_utf8_lossy(&found)
        );
        for (file, expected) in files {
            let differ = differences(expected, &self.view(&format!("{base}/{file}")).await?);
            ensure!(differ.is_empty(), "{file} differs: {differ:#?}");
        }
        Ok(())
    }

    /// Checks that a machine runs from an ISO with these bytes.
    ///
    /// # Errors
    /// When it does not.
    pub async fn check_iso(&self, number: Number, expected: &[u8]) -> anyhow::Result<()> {
        let (running, sha256) = (self.running(number).await?, sha256(expected));
        let same = running.get("sha256").and_then(Value::as_str) == Some(&sha256);
        ensure!(same, "the machine runs {running} and not the ISO {sha256}");
        Ok(())
    }

    /// Checks that no disk of a machine holds an image or a config-drive.
    ///
    /// # Errors
    /// When a disk does.
    pub async fn check_blank(&self, number: Number) -> anyhow::Result<()> {
        let machine = self.view(&format!("/machines/{number}")).await?;
        let disks = machine.get("disks").and_then(Value::as_array).context("no disks")?;
        let blank =
            |disk: &Value| disk.get("written") == Some(&Value::Null) && disk.get("config_drive") == Some(&Value::Null);
        ensure!(disks.iter().all(blank), "the disks are not blank: {disks:?}");
        Ok(())
    }

    async fn running(&self, number: Number) -> anyhow::Result<Value> {
        let machine = self.view(&format!("/machines/{number}")).await?;
        Ok(machine.get("running").cloned().unwrap_or_default())
    }
}
