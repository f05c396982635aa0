//! A running host whose BIOS the Go manager changes by a service when it is rebooted, as its HostUpdatePolicy allows. This
//! program waits for the end of one that it finds, and begins one at the next reboot only.

use serde_json::{Value, json};

use super::features::object;
use super::stage::{LIMIT, REBOOT, Stage, host};
use super::work::SERVICED;
use crate::lifecycle::install;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const SETTINGS: &str = "hostfirmwaresettings.metal3.io";

impl Stage<'_> {
    pub(super) fn allow_services(&self) -> anyhow::Result<()> {
        let spec = json!({"firmwareSettings": "onReboot"});
        let policy = object("metal3.io/v1alpha1", ("HostUpdatePolicy", &host(SERVICED)), &spec);
        install::create(self.0.stack, NAMESPACE, &[policy])
    }

    /// Asks for a setting, and for the reboot that applies it once the manager knows that setting.
    pub(super) fn ask_for_service(&self, turbo: &str) -> anyhow::Result<()> {
        self.tune(SERVICED, turbo)?;
        until(LIMIT, "a change of settings to be seen", || {
            let all = list(self.0.stack, NAMESPACE, SETTINGS)?;
            Ok(all.iter().any(is_change_seen).then_some(()))
        })?;
        self.annotate(SERVICED, REBOOT)
    }

    pub(super) fn is_in_service(&self) -> anyhow::Result<()> {
        until(LIMIT, "a machine to be serviced", || {
            let nodes = self.0.fleet.nodes(self.0.stack)?;
            let node = format!("{NAMESPACE}~{}", host(SERVICED));
            let mut nodes = nodes.iter().filter(|one| one["name"] == node);
            let is_serviced = |one: &Value| {
                ["servicing", "service wait"]
                    .iter()
                    .any(|state| one["provision_state"] == *state)
            };
            Ok(nodes.any(is_serviced).then_some(()))
        })
    }

    /// Waits until the machine has the setting and runs, and its host says so.
    pub(super) fn is_serviced(&self, turbo: &str) -> anyhow::Result<()> {
        self.has_setting(SERVICED, turbo, |host| {
            let status = &host["status"];
            status["operationalStatus"] == "OK"
                && status["poweredOn"] == true
                && status["provisioning"]["state"] == "provisioned"
        })
    }
}

fn is_change_seen(settings: &Value) -> bool {
    let conditions = settings["status"]["conditions"].as_array().into_iter().flatten();
    let mut changed = conditions.filter(|one| one["type"] == "ChangeDetected" && one["status"] == "True");
    name(settings) == host(SERVICED)
        && changed.any(|one| one["observedGeneration"] == settings["metadata"]["generation"])
}
