//! An update of the firmware of a free machine, asked right before each switch.

use serde_json::json;

use super::stage::{LIMIT, Stage, host};
use super::work::UPDATED;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const COMPONENTS: &str = "hostfirmwarecomponents.metal3.io";

impl Stage<'_> {
    /// Asks for a version, which a cleaning brings. The Go manager creates the object when it has inspected the host.
    pub(super) fn update(&self, version: &str) -> anyhow::Result<()> {
        until(LIMIT, "the components of a host", || {
            let all = list(self.0.stack, NAMESPACE, COMPONENTS)?;
            Ok(all.iter().any(|one| name(one) == host(UPDATED)).then_some(()))
        })?;
        let url = self.0.fleet.offer_firmware("bios", version)?;
        let spec = json!({"spec": {"updates": [{"component": "bios", "url": url}]}});
        let (host, patch) = (host(UPDATED), format!("--patch={spec}"));
        let args = [
            "--namespace",
            NAMESPACE,
            "patch",
            COMPONENTS,
            &host,
            "--type=merge",
            &patch,
        ];
        self.0.stack.kubectl(&args).map(drop)
    }

    /// Waits until the machine has that version and its host is available.
    pub(super) fn is_updated(&self, version: &str) -> anyhow::Result<()> {
        until(LIMIT, &format!("a machine to have the firmware {version}"), || {
            let machines = self.0.fleet.machine_states(self.0.stack)?;
            let mut machines = machines.iter().filter(|machine| machine["number"] == UPDATED);
            let has = machines.any(|machine| machine["firmware"]["bios"] == version);
            let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
            let mut hosts = hosts.iter().filter(|one| name(one) == host(UPDATED));
            let is_available = hosts.any(|one| one["status"]["provisioning"]["state"] == "available");
            Ok((has && is_available).then_some(()))
        })
    }
}
