//! Nodes restored from records of a real Ironic, idle or with work in progress.
//!
//! The machine gets the recorded power and image. Work in progress continues and succeeds; steps that the record does
//! not show run again. Histories are not part of a record and begin empty.

use chrono::{DateTime, Utc};
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_ironic::version::Microversion;
use serde_json::{Map, Value, json};

use super::deploy::set_live;
use super::{Core, Now, Slot, work};
use crate::life::{Event, Provision};
use crate::machine::Image;
use crate::node::{Node, fields};
use crate::refusal::Refusal;
use crate::work::{Action, Kind, Script, deploy_steps};

/// The deploy step of a deployment: the record does not name it.
const UNKNOWN: &str = "unknown";
/// Values of the field `fault`.
const FAULTS: [&str; 3] = ["power failure", "clean failure", "service failure"];

impl Core {
    /// Adds a node with its ports.
    pub(crate) fn restore(&mut self, shown: &Map<String, Value>, ports: &[Value], now: Now) -> Result<(), Refusal> {
        let text = |name: &str| shown.get(name).and_then(Value::as_str);
        let driver = shown.get("driver").cloned().unwrap_or_default();
        let bare = Map::from_iter([("driver".to_owned(), driver)]);
        let mut record = fields::of_new(&bare, Microversion::minor(110))?;
        for (name, value) in &mut record {
            if let Some(found) = shown.get(name) {
                value.clone_from(found);
            }
        }
        let serial = self.add(text("uuid"), record, now)?;
        for port in ports {
            let node = text("uuid").unwrap_or_default().to_owned();
            let address = port.get("address").and_then(Value::as_str).unwrap_or_default();
            let pxe_enabled = port.get("pxe_enabled").and_then(Value::as_bool).unwrap_or(true);
            drop(self.add_port(node, address.to_owned(), pxe_enabled, now)?);
        }
        if let Some(node) = self.nodes.get_mut(&serial) {
            apply_state(node, shown);
        }
        self.restore_machine(serial);
        if let Some(wall) = time(shown, "updated_at") {
            self.touch(serial, Now { wall, ..now });
        }
        self.resume_work(serial, now);
        Ok(())
    }

    /// Applies the record to the machine.
    fn restore_machine(&mut self, serial: u64) {
        let Some((node, Some(machine))) = self.node_and_machine(serial) else {
            return;
        };
        if let Some(power) = &node.power {
            machine.power = power.clone();
        }
        let is_live = node.is_live();
        if node.provision.state == S::Active && is_live {
            set_live(node, machine);
        } else if node.provision.state == S::Active {
            let is_by_step = is_by_step(node);
            let step = is_by_step.then(|| UNKNOWN.to_owned());
            let image = Image {
                step,
                ..deploy_steps::image(node)
            };
            machine.disk = Some(image).filter(|image| is_by_step || !image.source.is_empty());
        }
        if node.times.inspection_ended.is_some() {
            node.inventory = Some(machine.inventory());
        }
        node.record_bmc(machine);
        node.record_firmware(machine, node.times.created);
    }

    /// Continues the work in progress.
    fn resume_work(&mut self, serial: u64, now: Now) {
        let Some(node) = self.nodes.get(&serial) else { return };
        let Some((kind, script)) = self.remaining_work(node) else {
            return;
        };
        let waits = matches!(node.provision.state, S::InspectWait | S::CleanWait | S::WaitCallBack);
        self.begin(serial, Slot::Life, kind, script, now);
        if let Some(node) = self.nodes.get_mut(&serial).filter(|_| waits) {
            node.lock = None;
        }
    }

    fn remaining_work(&self, node: &Node) -> Option<(Kind, Script)> {
        let pace = &self.pace;
        let ramdisk_booted = || Script::default().then(pace.boot, Action::Move(Event::Resume));
        let off = |script: Script| script.then(pace.bmc, Action::Power(PowerState::Off));
        let done = |script: Script, event: Event| script.then(pace.bmc, Action::Move(event));
        let cleaned = if node.provision.target == Some(S::Manageable) {
            Event::Manage
        } else {
            Event::Done
        };
        let begun = if matches!(node.provision.state, S::InspectWait | S::CleanWait | S::WaitCallBack) {
            ramdisk_booted()
        } else {
            Script::default()
        };
        Some(match node.provision.state {
            S::Verifying => (Kind::Verify, work::verify(node, pace)),
            S::Inspecting | S::InspectWait => (
                Kind::Inspect,
                done(off(begun.then(pace.work, Action::StoreInventory)), Event::Done),
            ),
            S::Cleaning | S::CleanWait => {
                let carried = begun.then(pace.work, Action::RunSteps(Vec::new()));
                (Kind::Clean, done(off(carried), cleaned))
            }
            S::Deploying if node.is_live() => (Kind::Deploy, work::deploy(node, pace, Vec::new())),
            S::Deploying | S::WaitCallBack => {
                let write = if is_by_step(node) {
                    Action::RunDeploySteps(vec![json!({"step": UNKNOWN})])
                } else {
                    Action::WriteImage
                };
                let written = off(begun.then(pace.work, write)).then(pace.bmc, Action::Power(PowerState::On));
                (Kind::Deploy, done(written, Event::Done))
            }
            S::Deleting => (Kind::TearDown, work::tear_down(node, pace)),
            S::Adopting => (Kind::Adopt, work::adopt(node, pace)),
            _ => return None,
        })
    }
}

/// Whether a deploy step of the agent installs the system.
fn is_by_step(node: &Node) -> bool {
    node.text("deploy_interface") == Some(deploy_steps::CUSTOM_AGENT)
}

/// Applies the fields that only Ironic writes.
fn apply_state(node: &mut Node, shown: &Map<String, Value>) {
    let text = |name: &str| shown.get(name).and_then(Value::as_str);
    let state = |name: &str| text(name).map(|text| S::from(text.to_owned()));
    let power = |name: &str| text(name).map(|text| PowerState::from(text.to_owned()));
    node.provision = Provision {
        state: state("provision_state").unwrap_or(S::Enroll),
        target: state("target_provision_state"),
    };
    // An unfinished power change counts as done.
    node.power = power("target_power_state").or_else(|| power("power_state"));
    node.last_error = text("last_error").map(str::to_owned);
    node.maintenance_reason = text("maintenance_reason").map(str::to_owned);
    node.fault = FAULTS.into_iter().find(|fault| text("fault") == Some(fault));
    node.times.created = time(shown, "created_at").unwrap_or(node.times.created);
    node.times.provisioned = time(shown, "provision_updated_at");
    node.times.inspection_began = time(shown, "inspection_started_at");
    node.times.inspection_ended = time(shown, "inspection_finished_at");
}

fn time(shown: &Map<String, Value>, name: &str) -> Option<DateTime<Utc>> {
    let text = shown.get(name)?.as_str()?;
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
