//! Updates of the firmware: of a free machine, asked right before each switch, and of running ones.

use serde_json::{Value, json};

use super::stage::{LIMIT, Stage, host};
use super::work::UPDATED;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const COMPONENTS: &str = "hostfirmwarecomponents.metal3.io";

impl Stage<'_> {
    /// Asks for versions of components.
    pub(super) fn update(&self, number: u64, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
        let mut updates = Vec::new();
        for (component, version) in wanted {
            updates.push((*component, self.0.fleet.offer_firmware(component, version)?));
        }
        self.request_updates(number, &updates)
    }

    /// Asks for files for components. The Go manager creates the object when it has inspected the host.
    pub(super) fn request_updates(&self, number: u64, updates: &[(&str, String)]) -> anyhow::Result<()> {
        until(LIMIT, &format!("the components of {}", host(number)), || {
            let all = list(self.0.stack, NAMESPACE, COMPONENTS)?;
            Ok(all.iter().any(|one| name(one) == host(number)).then_some(()))
        })?;
        let update = |(component, url): &(&str, String)| json!({"component": component, "url": url});
        let updates: Vec<Value> = updates.iter().map(update).collect();
        let (host, patch) = (
            host(number),
            format!("--patch={}", json!({"spec": {"updates": updates}})),
        );
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

    /// Waits until the free machine has that version and its host is available.
    pub(super) fn is_updated(&self, version: &str) -> anyhow::Result<()> {
        self.has_firmware(UPDATED, &[("bios", version)], |host| {
            host["status"]["provisioning"]["state"] == "available"
        })
    }

    /// Waits until a machine has these versions and its host is as this says.
    pub(super) fn has_firmware(
        &self,
        number: u64,
        wanted: &[(&str, &str)],
        is_ready: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<()> {
        until(
            LIMIT,
            &format!("{} to have the firmware {wanted:?}", host(number)),
            || {
                let machines = self.0.fleet.machine_states(self.0.stack)?;
                let mut machines = machines.iter().filter(|machine| machine["number"] == number);
                let has = machines.any(|machine| {
                    let mut wanted = wanted.iter();
                    wanted.all(|(component, version)| machine["firmware"][*component] == *version)
                });
                let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
                let mut hosts = hosts.iter().filter(|one| name(one) == host(number));
                Ok((has && hosts.any(&is_ready)).then_some(()))
            },
        )
    }
}
