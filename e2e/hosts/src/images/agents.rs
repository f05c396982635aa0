//! Agents that differ by their bytes, on Ironic's file server, and what a machine booted.

use std::path::Path;

use anyhow::{Context as _, ensure};
use metal3_ironic_life::ironic::Endpoint;
use metal3_ironic_life::order::sha256;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use super::Start;
use crate::document::part;
use crate::env::TestEnv;

/// The kernel and the ramdisk of an agent.
pub(super) struct Agent {
    pub(super) kernel: String,
    pub(super) ramdisk: String,
    /// What labhosts reports of a machine that booted it.
    booted: Value,
}

impl Agent {
    /// Writes the files of an agent.
    pub(super) fn write(start: &Start<'_>, name: &str) -> anyhow::Result<Self> {
        let endpoint = Endpoint::read(&start.arguments.place.home().join("endpoint.json"))?;
        let folder = Path::new(&endpoint.files_root).join("agents");
        std::fs::create_dir_all(&folder)?;
        let part = |part: &str| {
            let (file, content) = (format!("{name}.{part}"), format!("the {part} of {name}"));
            std::fs::write(folder.join(&file), &content).with_context(|| format!("cannot write {file}"))?;
            let url = format!("{}/agents/{file}", endpoint.files_url);
            anyhow::Ok((url, sha256(content.as_bytes())))
        };
        let ((kernel, kernel_sha256), (ramdisk, ramdisk_sha256)) = (part("kernel")?, part("ramdisk")?);
        let booted = json!({ "kernel": kernel_sha256, "ramdisk": ramdisk_sha256 });
        Ok(Self {
            kernel,
            ramdisk,
            booted,
        })
    }

    /// Checks that it is the agent that a machine booted last.
    pub(super) async fn check(&self, env: &TestEnv, number: Number) -> anyhow::Result<()> {
        let booted = part(&env.machine(number).await?, "agent");
        ensure!(
            booted == self.booted,
            "the machine booted {booted} and not {}",
            self.booted
        );
        Ok(())
    }
}
