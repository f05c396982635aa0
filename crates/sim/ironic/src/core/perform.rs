//! Runs the due action of a script, and handles failures.

use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use metal3_sim_bmc::fault::Fault;
use serde_json::{Value, json};

use super::deploy::clean_up_boot;
use super::{Core, NO_BMC, Now, Slot, steps, work};
use crate::life::{Event, step};
use crate::work::{Action, Kind, TimedAction};

/// The delay of a ramdisk's heartbeat while the node is locked.
const HEARTBEAT_RETRY: Duration = Duration::from_secs(1);

/// The result of an action; there is none when the node is gone or other work replaced this work.
pub(super) enum Outcome {
    Done,
    /// The work fails after this time.
    Fails(Duration, String),
    /// Retry the action.
    Later,
}

impl Core {
    /// Performs the next action. Returns whether a node may have changed.
    pub(super) fn perform(&mut self, serial: u64, slot: Slot, epoch: u64, now: Now) -> bool {
        let job = self.nodes.get_mut(&serial).and_then(|node| node.jobs.get_mut(&slot));
        let Some(job) = job.filter(|job| job.epoch == epoch) else {
            return false;
        };
        let kind = job.kind;
        let Some(due) = job.script.pop_front() else {
            return false;
        };
        let before = self.touched;
        match self.run_action(serial, kind, &due.action, now) {
            None => {}
            Some(Outcome::Done) => self.schedule(serial, slot, now),
            Some(Outcome::Later) => {
                self.replace_next(serial, slot, HEARTBEAT_RETRY, due.action, now);
                // What has to wait is tried again, and changes nothing but for what it says.
                return self.touched != before;
            }
            Some(Outcome::Fails(after, message)) => {
                if let Some(job) = self.nodes.get_mut(&serial).and_then(|node| node.jobs.get_mut(&slot)) {
                    job.script.clear();
                }
                self.replace_next(serial, slot, after, Action::Fail(message), now);
            }
        }
        true
    }

    fn replace_next(&mut self, serial: u64, slot: Slot, after: Duration, action: Action, now: Now) {
        if let Some(job) = self.nodes.get_mut(&serial).and_then(|node| node.jobs.get_mut(&slot)) {
            job.script.push_front(TimedAction { after, action });
        }
        self.schedule(serial, slot, now);
    }

    fn run_action(&mut self, serial: u64, kind: Kind, action: &Action, now: Now) -> Option<Outcome> {
        match action {
            Action::Move(event) => self.moved(serial, *event, now),
            Action::Verify => self.verify(serial, now),
            Action::Power(to) => self.switch(serial, to, now),
            Action::AwaitRamdisk => self.ramdisk(serial, kind, now),
            Action::StoreInventory => self.store_inventory(serial, now),
            Action::StoreInventoryOfBmc => self.store_inventory_of_bmc(serial, now),
            Action::CheckSteps(list) => self.check(serial, list),
            Action::RunSteps(list) => self.run_steps(serial, kind, list, now),
            Action::UpdateFirmware => self.update_firmware(serial, kind, now),
            Action::CheckDeploySteps(list) => self.check_deploy_steps(serial, list),
            Action::RunDeploySteps(list) => self.run_deploy_steps(serial, list),
            Action::WriteImage => self.write(serial, now),
            Action::PrepareAgent => self.prepare_agent(serial),
            Action::PrepareInstance => self.prepare_instance(serial),
            Action::TakeOver => self.take_over(serial),
            Action::ClearInstance => self.clear_instance(serial, now),
            Action::Switch(verb) => self.client_switch(serial, verb, now),
            Action::Boot(field, value) => self.client_boot(serial, field, value),
            Action::Media(image) => self.client_media(serial, image.as_deref()),
            Action::Fail(message) => {
                self.fail(serial, kind, message.clone(), now);
                Some(Outcome::Done)
            }
            Action::RecordError(message) => {
                self.record_error(serial, message.clone(), now);
                Some(Outcome::Done)
            }
        }
    }

    /// Applies an event of the work.
    fn moved(&mut self, serial: u64, event: Event, now: Now) -> Option<Outcome> {
        let node = self.nodes.get_mut(&serial)?;
        if event == Event::Resume && node.lock.is_some() {
            return Some(Outcome::Later);
        }
        if let Some(at) = step(&node.provision, event) {
            node.enter(at, now.wall);
        }
        match event {
            Event::Wait => node.lock = None,
            Event::Resume => node.lock = Some(Slot::Life),
            _ => {}
        }
        self.touch(serial, now);
        Some(Outcome::Done)
    }

    fn verify(&mut self, serial: u64, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let reached = match machine {
            None if node.is_fake() => Ok(()),
            None => Err((Duration::ZERO, NO_BMC.to_owned())),
            Some(machine) => machine
                .reach()
                .map(|_| {
                    node.power = Some(machine.power.clone());
                    node.record_bmc(machine);
                    node.record_firmware(machine, now.wall);
                })
                .map_err(|error| (error.after, error.message)),
        };
        if let Err((after, message)) = reached {
            let message = format!("Failed to get power state for node {}. Error: {message}", node.uuid);
            return Some(Outcome::Fails(after, message));
        }
        self.moved(serial, Event::Done, now)
    }

    /// Changes the power as part of the work.
    fn switch(&mut self, serial: u64, to: &PowerState, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        // With `disable_power_off`, the machine is rebooted instead of powered off and on.
        if *to == PowerState::Off && node.is_set("disable_power_off") {
            return Some(Outcome::Done);
        }
        if let Err(error) = machine.switch(to) {
            return Some(Outcome::Fails(error.after, error.message));
        }
        node.power = Some(machine.power.clone());
        self.touch(serial, now);
        Some(Outcome::Done)
    }

    /// Checks that the ramdisk responds and its agent finds the node; otherwise the work fails after the ramdisk timeout.
    fn ramdisk(&mut self, serial: u64, kind: Kind, now: Now) -> Option<Outcome> {
        let rest = self.pace.ramdisk_timeout.saturating_sub(self.pace.boot);
        let is_found = self.finds_node(serial);
        let (node, machine) = self.node_and_machine(serial)?;
        // In maintenance Ironic does not listen to the agent, and knows no timeout.
        let (in_maintenance, is_inspection) = (node.in_maintenance(), kind == Kind::Inspect);
        let is_ignored = in_maintenance && !is_inspection;
        if node.lock.is_some() || is_ignored {
            return Some(Outcome::Later);
        }
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        let is_wrong_mac = kind == Kind::Inspect && machine.faults.has(Fault::ForeignMac);
        let responds = machine.ramdisk_responds(kind != Kind::Inspect) && !is_wrong_mac;
        if responds && is_found {
            return match kind {
                Kind::Clean | Kind::Deploy | Kind::Service => self.after_leftover(serial, kind, now),
                _ => Some(Outcome::Done),
            };
        }
        // What an inspection reports is taken all the same, and only its timeout is not known.
        if in_maintenance && is_inspection {
            return Some(Outcome::Later);
        }
        let since = node.jobs.get_mut(&Slot::Life)?.looks_since.get_or_insert(now.monotonic);
        let looks_for = now.monotonic.since(*since);
        if responds && looks_for < rest {
            return Some(Outcome::Later);
        }
        let rest = rest.saturating_sub(looks_for);
        let during = match kind {
            Kind::Inspect => "inspecting the node".to_owned(),
            Kind::Deploy => format!("waiting for callback for node {}", node.uuid),
            Kind::Service => "servicing the node".to_owned(),
            _ => "cleaning the node".to_owned(),
        };
        Some(Outcome::Fails(rest, format!("Timeout reached while {during}")))
    }

    /// Whether Ironic finds the node of an agent: by the addresses of ports, and by nothing else.
    fn finds_node(&mut self, serial: u64) -> bool {
        let Some((node, machine)) = self.node_and_machine(serial) else {
            return false;
        };
        let (uuid, macs) = (node.uuid.clone(), machine.map(|machine| machine.macs()));
        let mut ports = self.ports.values();
        macs.is_none_or(|macs| ports.any(|port| port.node == uuid && macs.contains(&port.address)))
    }

    fn check(&mut self, serial: u64, list: &[Value]) -> Option<Outcome> {
        let node = self.nodes.get_mut(&serial)?;
        node.clean_steps = Some(list.to_vec());
        Some(match steps::refused(node, list) {
            Some(message) => Outcome::Fails(Duration::ZERO, format!("Cannot clean node {}: {message}", node.uuid)),
            None => Outcome::Done,
        })
    }

    fn run_steps(&mut self, serial: u64, kind: Kind, list: &[Value], now: Now) -> Option<Outcome> {
        let (node, mut machine) = self.node_and_machine(serial)?;
        let field = step_field(kind);
        if let Some(machine) = machine.as_deref() {
            node.record_bios(machine);
        }
        let erase = [json!({"interface": "deploy", "step": "erase_devices_metadata"})];
        // Automated cleaning runs the ramdisk's default step.
        let list = if list.is_empty() && kind == Kind::Clean {
            &erase
        } else {
            list
        };
        let step_time = machine.as_deref().map_or(Duration::ZERO, |machine| machine.step_time);
        if !step_time.is_zero() && !list.is_empty() && !node.steps.contains_key(field) {
            let list = list.to_vec();
            return self.show_step(serial, kind, list, (step_time, now));
        }
        for (at, step) in list.iter().enumerate() {
            node.step_index = steps::place_of(node, kind, list.len(), at);
            if kind == Kind::Service && step.get("step") == Some(&json!("trigger_servicewait")) {
                let at = crate::life::step(&node.provision, Event::Wait);
                let shown = with(step, &[("abortable", json!(false)), ("priority", json!(0))]);
                node.steps.insert(field, shown);
                node.lock = None;
                node.jobs.remove(&Slot::Life);
                if let Some(at) = at {
                    node.enter(at, now.wall);
                }
                self.touch(serial, now);
                return None;
            }
            node.steps.insert(field, step.clone());
            if steps::is_update(step) {
                let rest = list.get(at.saturating_add(1)..).unwrap_or_default().to_vec();
                return self.begin_updates(serial, step, &rest, now);
            }
            let unknown = || steps::refused(node, std::slice::from_ref(step));
            let failed = if kind == Kind::Service { unknown() } else { None };
            if let Some(message) = failed.or_else(|| steps::run(node, machine.as_deref_mut(), step).err()) {
                return Some(Outcome::Fails(Duration::ZERO, format!("Node {}: {message}", node.uuid)));
            }
            let rest = list.get(at.saturating_add(1)..).unwrap_or_default();
            if !step_time.is_zero() && !rest.is_empty() {
                let rest = rest.to_vec();
                return self.show_step(serial, kind, rest, (step_time, now));
            }
        }
        node.steps.remove(field);
        if let Some(machine) = machine {
            node.record_bios(machine);
        }
        Some(Outcome::Done)
    }

    /// Shows the first of these steps, which is performed after a while.
    fn show_step(
        &mut self,
        serial: u64,
        kind: Kind,
        list: Vec<Value>,
        (after, now): (Duration, Now),
    ) -> Option<Outcome> {
        let node = self.nodes.get_mut(&serial)?;
        node.step_index = steps::place_of(node, kind, list.len(), 0);
        node.steps.insert(step_field(kind), list.first()?.clone());
        let job = node.jobs.get_mut(&Slot::Life)?;
        let action = Action::RunSteps(list);
        job.script.push_front(TimedAction { after, action });
        self.touch(serial, now);
        Some(Outcome::Done)
    }

    /// Adoption of a live image requires its URL.
    fn take_over(&mut self, serial: u64) -> Option<Outcome> {
        let node = self.nodes.get(&serial)?;
        if node.is_live() && !node.has_image("boot_iso") {
            let message = format!(
                "Error while attempting to adopt node {}: boot_iso is missing.",
                node.uuid
            );
            return Some(Outcome::Fails(Duration::ZERO, message));
        }
        Some(Outcome::Done)
    }

    fn clear_instance(&mut self, serial: u64, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        if let Some(machine) = machine {
            clean_up_boot(node, machine);
        }
        node.fields.insert("instance_info".into(), json!({}));
        node.fields.insert("instance_uuid".into(), Value::Null);
        node.fields.insert("instance_name".into(), Value::Null);
        self.moved(serial, Event::Clean, now);
        let node = self.nodes.get(&serial)?;
        let script = work::clean(node, &self.pace, None);
        self.begin(serial, Slot::Life, Kind::Clean, script, now);
        None
    }

    /// The effect of a failure on the node; `docs/ironic-faults.md` lists real results.
    fn fail(&mut self, serial: u64, kind: Kind, message: String, now: Now) {
        let after = self.pace.bmc;
        let Some((node, machine)) = self.node_and_machine(serial) else {
            return;
        };
        if kind == Kind::Power {
            node.target_power = None;
        } else if kind != Kind::Media {
            let at = step(&node.provision, Event::Fail);
            let ran = match kind {
                Kind::Clean => node.steps.remove("clean_step").is_some(),
                Kind::Service => node.steps.remove("service_step").is_some(),
                _ => false,
            };
            if ran {
                // Ironic keeps the reason of an operator who began one before.
                let reason = node.maintenance_reason.clone().unwrap_or_else(|| message.clone());
                node.set_maintenance(true, Some(reason));
                node.fault = Some(if kind == Kind::Clean {
                    "clean failure"
                } else {
                    "service failure"
                });
            }
            if let Some(at) = at {
                node.enter(at, now.wall);
            }
            match kind {
                Kind::Adopt => node.power = None,
                Kind::Verify | Kind::TearDown | Kind::Power | Kind::Media => {}
                Kind::Inspect if node.is_inspected_by_bmc() => {}
                // A failed machine is switched off if possible.
                Kind::Inspect | Kind::Clean | Kind::Deploy | Kind::Service => {
                    if machine.is_some_and(|machine| machine.switch(&PowerState::Off).is_ok()) {
                        node.power = Some(PowerState::Off);
                    }
                }
            }
        }
        if kind == Kind::Inspect {
            // Ironic 39 sets the failed state before the error, while the node is still locked.
            node.lock.get_or_insert(Slot::Life);
            if let Some(job) = node.jobs.get_mut(&Slot::Life) {
                let action = Action::RecordError(message);
                job.script.push_back(TimedAction { after, action });
            }
            self.touch(serial, now);
        } else {
            self.record_error(serial, message, now);
        }
        self.schedule_discard(serial, now);
    }

    /// Records the error in `last_error` and in the history.
    fn record_error(&mut self, serial: u64, message: String, now: Now) {
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.last_error = Some(message.clone());
        }
        self.note(serial, "ERROR", message, now);
    }
}

/// Where a node shows its running step.
pub(super) const fn step_field(kind: Kind) -> &'static str {
    match kind {
        Kind::Service => "service_step",
        _ => "clean_step",
    }
}

fn with(step: &Value, more: &[(&str, Value)]) -> Value {
    let mut step = step.clone();
    if let Value::Object(map) = &mut step {
        map.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    step
}
