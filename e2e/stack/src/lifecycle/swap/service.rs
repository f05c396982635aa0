//! Running hosts whose firmware a manager of either side changes by a service when they are rebooted, as their HostUpdatePolicies allow.
//! The one that finds a service waits for its end. A service begins at a requested reboot only, so that a host on which one failed stays
//! as it is.

use anyhow::Context;
use serde_json::{Value, json};

use super::features::object;
use super::stage::{LIMIT, REBOOT, Stage, host};
use super::work::{CUT, FLASHED, InFlight, SERVICED, UNSERVICED};
use crate::lifecycle::install;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const SETTINGS: &str = "hostfirmwaresettings.metal3.io";
const COMPONENTS: &str = "hostfirmwarecomponents.metal3.io";
/// Of the hosts, what a reboot may change.
const POLICIES: [(u64, &str); 4] = [
    (SERVICED, "firmwareSettings"),
    (FLASHED, "firmwareUpdates"),
    (UNSERVICED, "firmwareUpdates"),
    (CUT, "firmwareUpdates"),
];

impl Stage<'_> {
    pub(super) fn allow_services(&self) -> anyhow::Result<()> {
        let policy = |(number, what): (u64, &str)| {
            object(
                "metal3.io/v1alpha1",
                ("HostUpdatePolicy", &host(number)),
                &json!({what: "onReboot"}),
            )
        };
        install::create(self.0.stack, NAMESPACE, &POLICIES.map(policy))
    }

    /// Asks for the firmware of a switch, and waits until the manager knows what the reboots are to change.
    pub(super) fn ask_for_services(&self, work: &InFlight) -> anyhow::Result<()> {
        let [bios, bmc] = [("bios", work.firmware.as_str()), ("bmc", work.bmc.as_str())];
        self.tune(SERVICED, work.serviced)?;
        self.update(FLASHED, &[bios, bmc])?;
        if work.is_cut {
            self.update(CUT, &[bios])?;
            self.is_seen(CUT, COMPONENTS)?;
        }
        self.is_seen(SERVICED, SETTINGS)?;
        self.is_seen(FLASHED, COMPONENTS)
    }

    pub(super) fn begin_services(&self) -> anyhow::Result<()> {
        self.annotate(FLASHED, REBOOT)?;
        self.annotate(SERVICED, REBOOT)
    }

    pub(super) fn are_in_service(&self) -> anyhow::Result<()> {
        self.is_in_service(FLASHED)?;
        self.is_in_service(SERVICED)
    }

    /// Begins the service after whose order the manager is killed.
    pub(super) fn begin_last_service(&self) -> anyhow::Result<()> {
        self.annotate(CUT, REBOOT)?;
        self.is_in_service(CUT)
    }

    /// Waits until the machines have what was asked and run, and their hosts say so.
    pub(super) fn are_serviced(&self, work: &InFlight) -> anyhow::Result<()> {
        self.has_setting(SERVICED, work.serviced, is_running)?;
        let [bios, bmc] = [("bios", work.firmware.as_str()), ("bmc", work.bmc.as_str())];
        self.has_firmware(FLASHED, &[bios, bmc], is_running)?;
        if work.is_cut {
            self.has_firmware(CUT, &[bios], is_running)?;
        }
        Ok(())
    }

    /// Lets a service of this program fail, and waits until the machine runs again and its object says why.
    pub(super) fn fail_service(&self, number: usize) -> anyhow::Result<()> {
        let boots = self.boots(UNSERVICED)?;
        // A file of firmware for what the machine has not.
        let url = self.0.fleet.offer_firmware("nic", &format!("9.{number}"))?;
        self.request_updates(UNSERVICED, &[("bios", url)])?;
        self.is_seen(UNSERVICED, COMPONENTS)?;
        self.annotate(UNSERVICED, REBOOT)?;
        until(LIMIT, "a service to fail, and its machine to run", || {
            let all = list(self.0.stack, NAMESPACE, COMPONENTS)?;
            let has_failed = all.iter().any(|one| name(one) == host(UNSERVICED) && has_failed(one));
            let hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
            let mut hosts = hosts.iter().filter(|one| name(one) == host(UNSERVICED));
            let runs = hosts.any(|one| is_running(one) && one["metadata"]["annotations"][REBOOT].is_null());
            let is_active = self.node_state(UNSERVICED)?.as_deref() == Some("active");
            // An earlier service failed with the same condition.
            let is_rebooted = self.boots(UNSERVICED)? > boots;
            Ok((has_failed && runs && is_active && is_rebooted).then_some(()))
        })
    }

    fn boots(&self, number: u64) -> anyhow::Result<u64> {
        let machines = self.0.fleet.machine_states(self.0.stack)?;
        let machine = machines.iter().find(|machine| machine["number"] == number);
        let boots = machine.and_then(|machine| machine["boots"].as_u64());
        boots.with_context(|| format!("there is no machine {number}"))
    }

    /// Waits until the manager knows a change.
    fn is_seen(&self, number: u64, resource: &str) -> anyhow::Result<()> {
        let what = format!("a change of the firmware of {} to be seen", host(number));
        until(LIMIT, &what, || {
            let all = list(self.0.stack, NAMESPACE, resource)?;
            let is_seen = |one: &Value| name(one) == host(number) && has(one, ("ChangeDetected", "True"));
            Ok(all.iter().any(is_seen).then_some(()))
        })
    }

    fn is_in_service(&self, number: u64) -> anyhow::Result<()> {
        until(LIMIT, &format!("{} to be serviced", host(number)), || {
            let state = self.node_state(number)?;
            Ok(matches!(state.as_deref(), Some("servicing" | "service wait")).then_some(()))
        })
    }

    /// The provision state of a host's node.
    fn node_state(&self, number: u64) -> anyhow::Result<Option<String>> {
        let nodes = self.0.fleet.nodes(self.0.stack)?;
        let wanted = format!("{NAMESPACE}~{}", host(number));
        let node = nodes.iter().find(|one| one["name"] == wanted);
        Ok(node.and_then(|one| one["provision_state"].as_str().map(str::to_owned)))
    }
}

fn is_running(host: &Value) -> bool {
    let status = &host["status"];
    status["operationalStatus"] == "OK"
        && status["errorType"].as_str().is_none_or(str::is_empty)
        && status["poweredOn"] == true
        && status["provisioning"]["state"] == "provisioned"
}

/// Whether an object has this condition for its present spec.
fn has(object: &Value, (kind, status): (&str, &str)) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|one| one["type"] == kind && one["status"] == status);
    found.any(|one| one["observedGeneration"] == object["metadata"]["generation"])
}

/// Whether the last service of this object's updates failed, which are still asked for.
fn has_failed(components: &Value) -> bool {
    let conditions = components["status"]["conditions"].as_array().into_iter().flatten();
    let mut updating = conditions.filter(|one| one["type"] == "Updating" && one["reason"] == "UpdateFailed");
    updating.any(|one| one["status"] == "False") && has(components, ("ChangeDetected", "True"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(conditions: &Value) -> Value {
        json!({"metadata": {"generation": 3}, "status": {"conditions": conditions}})
    }

    #[test]
    fn condition_counts_for_the_present_spec_only() {
        for (kind, status, generation, expected) in [
            ("ChangeDetected", "True", 3, true),
            ("ChangeDetected", "True", 2, false),
            ("ChangeDetected", "False", 3, false),
            ("Valid", "True", 3, false),
        ] {
            let condition = json!([{"type": kind, "status": status, "observedGeneration": generation}]);
            let found = has(&object(&condition), ("ChangeDetected", "True"));
            assert_eq!(found, expected, "{kind} {status} {generation}");
        }
    }

    #[test]
    fn service_has_failed_when_its_updates_are_still_asked_for() {
        for (status, reason, changed, expected) in [
            ("False", "UpdateFailed", "True", true),
            ("False", "UpdateMade", "True", false),
            ("True", "UpdateBegun", "True", false),
            ("False", "UpdateFailed", "False", false),
        ] {
            let conditions = json!([
                {"type": "Updating", "status": status, "reason": reason},
                {"type": "ChangeDetected", "status": changed, "observedGeneration": 3},
            ]);
            assert_eq!(
                has_failed(&object(&conditions)),
                expected,
                "{status} {reason} {changed}"
            );
        }
    }

    #[test]
    fn machine_with_an_error_or_without_power_does_not_run() {
        let host = |error: &str, power: bool, status: &str| {
            json!({"status": {"operationalStatus": status, "errorType": error, "poweredOn": power,
                "provisioning": {"state": "provisioned"}}})
        };
        assert!(is_running(&host("", true, "OK")));
        for other in [
            host("servicing error", true, "OK"),
            host("", false, "OK"),
            host("", true, "servicing"),
        ] {
            assert!(!is_running(&other), "{other}");
        }
    }
}
