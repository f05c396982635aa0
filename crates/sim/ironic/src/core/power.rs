//! Power, boot mode, secure boot and maintenance.

use std::time::Duration;

use http::StatusCode;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use serde_json::{Value, json};

use super::perform::Outcome;
use super::{Answer, Context, Core, Failure, NO_BMC, Now, Slot, work};
use crate::refusal::Refusal;
use crate::work::Kind;

/// Power targets of clients.
const VERBS: [&str; 5] = ["power on", "power off", "soft power off", "rebooting", "soft rebooting"];

impl Core {
    pub(super) fn change_power(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let verb = body.get("target").and_then(Value::as_str).unwrap_or_default();
        let node = self.node(ident)?;
        let off = verb.ends_with("power off");
        if !context.is_retry {
            if body
                .get("timeout")
                .and_then(Value::as_i64)
                .is_some_and(|timeout| timeout < 1)
            {
                return Err(Refusal::invalid("timeout has to be positive integer").into());
            }
            if !VERBS.contains(&verb) {
                let power = node.power.as_ref().map_or("None", PowerState::as_str);
                return Err(Refusal::wrong_state(verb, ident, power).into());
            }
            if matches!(node.provision.state, S::CleanWait | S::Cleaning) {
                return Err(Refusal::wrong_state(verb, ident, node.provision.state.as_str()).into());
            }
            if off && node.is_set("disable_power_off") {
                return Err(Refusal::conflict(format!("Failed to set node power state to {verb}.")).into());
            }
        }
        self.locked(ident, context.now, |core, serial| {
            let missing = || Refusal::not_found("Node", ident);
            let node = core.nodes.get_mut(&serial).ok_or_else(missing)?;
            node.target_power = Some(if off { PowerState::Off } else { PowerState::On });
            node.last_error = None;
            let script = work::power(node, &core.pace, verb);
            core.begin(serial, Slot::Power, Kind::Power, script, context.now);
            Ok(())
        })?;
        Ok(self.accepted(ident))
    }

    pub(super) fn accepted(&self, ident: &str) -> Answer {
        Answer::empty(StatusCode::ACCEPTED).with_location(format!("{}/v1/nodes/{ident}/states", self.base))
    }

    pub(super) fn change_boot(
        &mut self,
        ident: &str,
        field: &'static str,
        context: Context<'_>,
    ) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let target = body.get("target").cloned().unwrap_or_default();
        let fits = match field {
            "boot_mode" => matches!(target.as_str(), Some("uefi" | "bios")),
            _ => target.is_boolean(),
        };
        if !fits {
            return Err(Refusal::invalid(format!("Invalid {field} {target} requested for node.")).into());
        }
        let node = self.node(ident)?;
        // Adopting is transitional; stable and failed states are not.
        if node.provision.state.is_transitional() && !context.is_retry {
            return Err(Refusal::conflict(format!(
                "Node is in {} state. Since node is transitioning, the boot mode will not be set.",
                node.provision.state
            ))
            .into());
        }
        self.locked(ident, context.now, |core, serial| {
            let missing = || Refusal::not_found("Node", ident);
            let node = core.nodes.get_mut(&serial).ok_or_else(missing)?;
            node.last_error = None;
            let script = work::boot(node, &core.pace, field, target);
            core.begin(serial, Slot::Power, Kind::Power, script, context.now);
            Ok(())
        })?;
        Ok(self.accepted(ident))
    }

    /// Runs a client's power change.
    pub(super) fn client_switch(&mut self, serial: u64, verb: &str, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let to = if verb.ends_with("power off") {
            PowerState::Off
        } else {
            PowerState::On
        };
        let restart = verb.ends_with("rebooting");
        if machine.is_none() && !node.is_fake() {
            let message = format!("Failed to change power state to '{to}' by '{verb}': {NO_BMC}");
            return Some(Outcome::Fails(Duration::ZERO, message));
        }
        if let Some(machine) = machine {
            let states: &[PowerState] = if restart {
                &[PowerState::Off, PowerState::On]
            } else {
                std::slice::from_ref(&to)
            };
            for state in states {
                if let Err(error) = machine.switch(state) {
                    let message = format!("Failed to change power state to '{to}' by '{verb}': {}", error.message);
                    return Some(Outcome::Fails(error.after, message));
                }
            }
        }
        (node.power, node.target_power) = (Some(to), None);
        self.touch(serial, now);
        Some(Outcome::Done)
    }

    pub(super) fn client_boot(&mut self, serial: u64, field: &str, value: &Value) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            let message = format!(
                "Failed to change {field} state: Driver {} does not support it.",
                node.driver()
            );
            return Some(Outcome::Fails(Duration::ZERO, message));
        };
        if let Err(error) = machine.reach() {
            return Some(Outcome::Fails(error.after, error.message));
        }
        match field {
            "boot_mode" => value.as_str().unwrap_or_default().clone_into(&mut machine.boot_mode),
            _ => machine.secure_boot = value.as_bool().unwrap_or_default(),
        }
        node.record_bmc(machine);
        Some(Outcome::Done)
    }

    pub(super) fn set_maintenance(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let reason = body.get("reason").and_then(Value::as_str).map(str::to_owned);
        self.locked(ident, context.now, |core, serial| {
            core.node_mut(serial)?.set_maintenance(true, reason);
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::ACCEPTED))
    }

    pub(super) fn clear_maintenance(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        self.locked(ident, context.now, |core, serial| {
            core.node_mut(serial)?.set_maintenance(false, None);
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::ACCEPTED))
    }

    pub(super) fn set_target_raid(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let wanted = context.request.json()?;
        if !wanted.is_object() {
            return Err(Refusal::invalid("target_raid_config is not an object").into());
        }
        self.locked(ident, context.now, |core, serial| {
            if wanted != json!({})
                && let Some(message) = raid_refused(&wanted)
            {
                return Err(Refusal::invalid(format!("RAID config validation error: {message}")).into());
            }
            core.node_mut(serial)?.target_raid = wanted;
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

/// The schema error of a RAID configuration.
fn raid_refused(wanted: &Value) -> Option<&'static str> {
    let disks = wanted.get("logical_disks").and_then(Value::as_array);
    match disks {
        None => Some("'logical_disks' is a required property"),
        Some(disks) if disks.is_empty() => Some("[] should be non-empty"),
        Some(disks) if disks.iter().any(|disk| disk.get("size_gb").is_none()) => {
            Some("'size_gb' is a required property")
        }
        Some(disks) if disks.iter().any(|disk| disk.get("raid_level").is_none()) => {
            Some("'raid_level' is a required property")
        }
        Some(_) => None,
    }
}
