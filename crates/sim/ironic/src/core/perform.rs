//! What happens when an act of a script is due, and what a failure does.

use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use metal3_sim_bmc::fault::Fault;
use serde_json::{Value, json};

use super::{Core, NO_BMC, Now, Slot, steps, work};
use crate::life::{Event, step};
use crate::machine::Image;
use crate::work::{Act, Due, Kind};

/// Ironic tries a locked node again after this time when a ramdisk speaks.
const HEARTBEAT_AGAIN: Duration = Duration::from_secs(1);

/// What came of an act.
pub(super) enum Outcome {
    Done,
    /// It failed, and this does so after a while.
    Fails(Duration, String),
    /// It must be tried again.
    Later,
    /// The node has other work now.
    Replaced,
}

impl Core {
    pub(super) fn perform(&mut self, serial: u64, slot: Slot, epoch: u64, now: Now) {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return;
        };
        let Some(job) = node.jobs.get_mut(&slot).filter(|job| job.epoch == epoch) else {
            return;
        };
        let kind = job.kind;
        let Some(due) = job.script.pop_front() else { return };
        match self.act(serial, kind, &due.act, now) {
            Outcome::Done => self.schedule(serial, slot, now),
            Outcome::Replaced => {}
            Outcome::Later => {
                let after = HEARTBEAT_AGAIN;
                self.instead(serial, slot, [Due { after, act: due.act }], now);
            }
            Outcome::Fails(after, words) => {
                if let Some(job) = self.nodes.get_mut(&serial).and_then(|node| node.jobs.get_mut(&slot)) {
                    job.script.clear();
                }
                let act = Act::Fail(words);
                self.instead(serial, slot, [Due { after, act }], now);
            }
        }
    }

    fn instead<const N: usize>(&mut self, serial: u64, slot: Slot, dues: [Due; N], now: Now) {
        if let Some(job) = self.nodes.get_mut(&serial).and_then(|node| node.jobs.get_mut(&slot)) {
            for due in dues.into_iter().rev() {
                job.script.push_front(due);
            }
        }
        self.schedule(serial, slot, now);
    }

    fn act(&mut self, serial: u64, kind: Kind, act: &Act, now: Now) -> Outcome {
        match act {
            Act::Move(event) => self.moved(serial, *event, now),
            Act::Verify => self.verify(serial, now),
            Act::Power(to) => self.switch(serial, to, now),
            Act::Ramdisk => self.ramdisk(serial, kind),
            Act::Store => self.store_inventory(serial, now),
            Act::Check(list) => self.check(serial, list),
            Act::Carry(list) => self.carry(serial, kind, list, now),
            Act::Write => self.write(serial),
            Act::Insert => self.insert(serial),
            Act::TakeOver => self.take_over(serial),
            Act::Forget => self.forget(serial, now),
            Act::Switch(verb) => self.client_switch(serial, verb, now),
            Act::Boot(field, value) => self.client_boot(serial, field, value),
            Act::Fail(words) => {
                self.fail(serial, kind, words.clone(), now);
                Outcome::Done
            }
            Act::Tell(words) => {
                self.tell(serial, words.clone(), now);
                Outcome::Done
            }
        }
    }

    /// Moves a node by an event that its work makes.
    fn moved(&mut self, serial: u64, event: Event, now: Now) -> Outcome {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return Outcome::Replaced;
        };
        if event == Event::Resume && node.lock.is_some() {
            return Outcome::Later;
        }
        if let Some(at) = step(&node.at, event) {
            node.moves(at, now.wall);
        }
        match event {
            Event::Wait => node.lock = None,
            Event::Resume => node.lock = Some(Slot::Life),
            _ => {}
        }
        self.touch(serial, now);
        Outcome::Done
    }

    fn verify(&mut self, serial: u64, now: Now) -> Outcome {
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        let reached = match machine {
            None if node.is_fake() => Ok(()),
            None => Err((Duration::ZERO, NO_BMC.to_owned())),
            Some(machine) => machine
                .reach()
                .map(|_| {
                    node.power = Some(machine.power.clone());
                    node.see(machine);
                })
                .map_err(|trouble| (trouble.after, trouble.words)),
        };
        if let Err((after, words)) = reached {
            let words = format!("Failed to get power state for node {}. Error: {words}", node.uuid);
            return Outcome::Fails(after, words);
        }
        self.moved(serial, Event::Done, now)
    }

    /// Changes the power as a part of the work.
    fn switch(&mut self, serial: u64, to: &PowerState, now: Now) -> Outcome {
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        let Some(machine) = machine else {
            return Outcome::Done;
        };
        // A machine that must keep running is restarted where others are switched off and on.
        if *to == PowerState::Off && node.says("disable_power_off") {
            return Outcome::Done;
        }
        if let Err(trouble) = machine.switch(to) {
            return Outcome::Fails(trouble.after, trouble.words);
        }
        node.power = Some(machine.power.clone());
        self.touch(serial, now);
        Outcome::Done
    }

    /// Whether the ramdisk spoke by now. One that did not is waited for until patience ends.
    fn ramdisk(&mut self, serial: u64, kind: Kind) -> Outcome {
        let rest = self.pace.patience.saturating_sub(self.pace.boot);
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        if node.lock.is_some() {
            return Outcome::Later;
        }
        let Some(machine) = machine else {
            return Outcome::Done;
        };
        let stranger = kind == Kind::Inspect && machine.faults.has(Fault::ForeignMac);
        if machine.ramdisk_speaks(kind != Kind::Inspect) && !stranger {
            return Outcome::Done;
        }
        let during = match kind {
            Kind::Inspect => "inspecting the node".to_owned(),
            Kind::Deploy => format!("waiting for callback for node {}", node.uuid),
            Kind::Service => "servicing the node".to_owned(),
            _ => "cleaning the node".to_owned(),
        };
        Outcome::Fails(rest, format!("Timeout reached while {during}"))
    }

    fn check(&mut self, serial: u64, list: &[Value]) -> Outcome {
        let Some(node) = self.nodes.get(&serial) else {
            return Outcome::Replaced;
        };
        match steps::refused(node, list) {
            Some(words) => Outcome::Fails(Duration::ZERO, format!("Cannot clean node {}: {words}", node.uuid)),
            None => Outcome::Done,
        }
    }

    fn carry(&mut self, serial: u64, kind: Kind, list: &[Value], now: Now) -> Outcome {
        let Some((node, mut machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        let field = if kind == Kind::Service {
            "service_step"
        } else {
            "clean_step"
        };
        let erase = [json!({"interface": "deploy", "step": "erase_devices_metadata"})];
        // Automated cleaning of a machine has the ramdisk's own step.
        let list = if list.is_empty() && kind == Kind::Clean {
            &erase
        } else {
            list
        };
        for step in list {
            if kind == Kind::Service && step.get("step") == Some(&json!("trigger_servicewait")) {
                let at = crate::life::step(&node.at, Event::Wait);
                node.steps.insert(
                    field,
                    with(step, &[("abortable", json!(false)), ("priority", json!(0))]),
                );
                node.lock = None;
                node.jobs.remove(&Slot::Life);
                if let Some(at) = at {
                    node.moves(at, now.wall);
                }
                self.touch(serial, now);
                return Outcome::Replaced;
            }
            node.steps.insert(field, step.clone());
            let unknown = || steps::refused(node, std::slice::from_ref(step));
            let failed = if kind == Kind::Service { unknown() } else { None };
            if let Some(words) = failed.or_else(|| steps::carry(node, machine.as_deref_mut(), step).err()) {
                return Outcome::Fails(Duration::ZERO, format!("Node {}: {words}", node.uuid));
            }
        }
        node.steps.remove(field);
        Outcome::Done
    }

    fn write(&mut self, serial: u64) -> Outcome {
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        let Some(machine) = machine else {
            return Outcome::Done;
        };
        let image = Image {
            source: node.image("image_source").unwrap_or_default().to_owned(),
            checksum: node
                .image("image_os_hash_value")
                .or_else(|| node.image("image_checksum"))
                .map(str::to_owned),
            config_drive: node.field("instance_info").get("configdrive").cloned(),
        };
        match machine.write(image) {
            Ok(()) => Outcome::Done,
            Err(words) => Outcome::Fails(
                Duration::ZERO,
                format!("Deploy step deploy.write_image failed on node {}. {words}", node.uuid),
            ),
        }
    }

    fn insert(&mut self, serial: u64) -> Outcome {
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        if let Some(machine) = machine {
            machine.media = node.image("boot_iso").map(str::to_owned);
        }
        Outcome::Done
    }

    /// A live image cannot be taken over without its address.
    fn take_over(&mut self, serial: u64) -> Outcome {
        let Some(node) = self.nodes.get(&serial) else {
            return Outcome::Replaced;
        };
        if node.is_live() && !node.has_image("boot_iso") {
            let words = format!(
                "Error while attempting to adopt node {}: boot_iso is missing.",
                node.uuid
            );
            return Outcome::Fails(Duration::ZERO, words);
        }
        Outcome::Done
    }

    fn forget(&mut self, serial: u64, now: Now) -> Outcome {
        let Some((node, machine)) = self.both(serial) else {
            return Outcome::Replaced;
        };
        if let Some(machine) = machine.filter(|_| node.is_live()) {
            machine.media = None;
        }
        node.fields.insert("instance_info".into(), json!({}));
        node.fields.insert("instance_uuid".into(), Value::Null);
        node.fields.insert("instance_name".into(), Value::Null);
        self.moved(serial, Event::Clean, now);
        let Some(node) = self.nodes.get(&serial) else {
            return Outcome::Replaced;
        };
        let script = work::clean(node, &self.pace, None);
        self.begin(serial, Slot::Life, Kind::Clean, script, now);
        Outcome::Replaced
    }

    /// What a failure does to the node: see the table of faults in the documentation.
    fn fail(&mut self, serial: u64, kind: Kind, words: String, now: Now) {
        let after = self.pace.bmc;
        let Some((node, machine)) = self.both(serial) else {
            return;
        };
        if kind == Kind::Power {
            node.target_power = None;
        } else {
            let at = step(&node.at, Event::Fail);
            let ran = match kind {
                Kind::Clean => node.steps.remove("clean_step").is_some(),
                Kind::Service => node.steps.remove("service_step").is_some(),
                _ => false,
            };
            if ran {
                node.set_maintenance(true, Some(words.clone()));
                node.fault = Some(if kind == Kind::Clean {
                    "clean failure"
                } else {
                    "service failure"
                });
            }
            if let Some(at) = at {
                node.moves(at, now.wall);
            }
            match kind {
                Kind::Adopt => node.power = None,
                Kind::Verify | Kind::TearDown | Kind::Power => {}
                // What failed is switched off, if it can be.
                Kind::Inspect | Kind::Clean | Kind::Deploy | Kind::Service => {
                    if machine.is_some_and(|machine| machine.switch(&PowerState::Off).is_ok()) {
                        node.power = Some(PowerState::Off);
                    }
                }
            }
        }
        if kind == Kind::Inspect {
            // Seen on Ironic 39: the node is failed before anything says why, while its lock is still held.
            node.lock.get_or_insert(Slot::Life);
            if let Some(job) = node.jobs.get_mut(&Slot::Life) {
                let act = Act::Tell(words);
                job.script.push_back(Due { after, act });
            }
            self.touch(serial, now);
        } else {
            self.tell(serial, words, now);
        }
    }

    /// Says what went wrong: in the record, until Ironic erases it, and in the history.
    fn tell(&mut self, serial: u64, words: String, now: Now) {
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.last_error = Some(words.clone());
        }
        self.note(serial, "ERROR", words, now);
    }
}

fn with(step: &Value, more: &[(&str, Value)]) -> Value {
    let mut step = step.clone();
    if let Value::Object(map) = &mut step {
        map.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    step
}
