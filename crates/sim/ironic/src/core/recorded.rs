//! Nodes put in as a real Ironic showed them, at rest or at work.
//!
//! What a record says of its machine is made true of the machine: its power, and the image on its disk. Work under way
//! goes on from where it was to a good end; what a record does not show, such as steps that were done already, is done
//! again. Histories are not part of a record, so they begin empty.

use chrono::{DateTime, Utc};
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_ironic::version::Microversion;
use serde_json::{Map, Value};

use super::{Core, Now, Slot, work};
use crate::life::{At, Event};
use crate::machine::Image;
use crate::node::{Node, fields};
use crate::refusal::Refusal;
use crate::work::{Act, Kind, Script};

/// The faults that Ironic knows.
const FAULTS: [&str; 3] = ["power failure", "clean failure", "service failure"];

impl Core {
    /// Puts in a node with the ports that it had.
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
            stand(node, shown);
        }
        self.furnish(serial);
        if let Some(wall) = time(shown, "updated_at") {
            self.touch(serial, Now { wall, ..now });
        }
        self.go_on(serial, now);
        Ok(())
    }

    /// Makes the machine what the record says of it.
    fn furnish(&mut self, serial: u64) {
        let Some((node, Some(machine))) = self.both(serial) else {
            return;
        };
        if let Some(power) = &node.power {
            machine.power = power.clone();
        }
        let is_live = node.is_live();
        let text = |name: &str| node.image(name).map(str::to_owned);
        if node.at.state == S::Active && is_live {
            machine.media = text("boot_iso");
        } else if node.at.state == S::Active {
            machine.disk = text("image_source").map(|source| Image {
                source,
                checksum: text("image_os_hash_value").or_else(|| text("image_checksum")),
                config_drive: node.field("instance_info").get("configdrive").cloned(),
            });
        }
        if node.times.inspection_ended.is_some() {
            node.inventory = Some(machine.inventory());
        }
        node.see(machine);
    }

    /// Takes up the work that was under way.
    fn go_on(&mut self, serial: u64, now: Now) {
        let Some(node) = self.nodes.get(&serial) else { return };
        let Some((kind, script)) = self.rest_of_work(node) else {
            return;
        };
        let waits = matches!(node.at.state, S::InspectWait | S::CleanWait | S::WaitCallBack);
        self.begin(serial, Slot::Life, kind, script, now);
        if let Some(node) = self.nodes.get_mut(&serial).filter(|_| waits) {
            node.lock = None;
        }
    }

    fn rest_of_work(&self, node: &Node) -> Option<(Kind, Script)> {
        let pace = &self.pace;
        let spoken = || Script::default().then(pace.boot, Act::Move(Event::Resume));
        let off = |script: Script| script.then(pace.bmc, Act::Power(PowerState::Off));
        let done = |script: Script, event: Event| script.then(pace.bmc, Act::Move(event));
        let cleaned = if node.at.target == Some(S::Manageable) {
            Event::Manage
        } else {
            Event::Done
        };
        let begun = if matches!(node.at.state, S::InspectWait | S::CleanWait | S::WaitCallBack) {
            spoken()
        } else {
            Script::default()
        };
        Some(match node.at.state {
            S::Verifying => (Kind::Verify, work::verify(node, pace)),
            S::Inspecting | S::InspectWait => {
                (Kind::Inspect, done(off(begun.then(pace.work, Act::Store)), Event::Done))
            }
            S::Cleaning | S::CleanWait => {
                let carried = begun.then(pace.work, Act::Carry(Vec::new()));
                (Kind::Clean, done(off(carried), cleaned))
            }
            S::Deploying if node.is_live() => (Kind::Deploy, work::deploy(node, pace)),
            S::Deploying | S::WaitCallBack => {
                let written = off(begun.then(pace.work, Act::Write)).then(pace.bmc, Act::Power(PowerState::On));
                (Kind::Deploy, done(written, Event::Done))
            }
            S::Deleting => (Kind::TearDown, work::tear_down(node, pace)),
            S::Adopting => (Kind::Adopt, work::adopt(node, pace)),
            _ => return None,
        })
    }
}

/// What of a record is not among the fields that clients write.
fn stand(node: &mut Node, shown: &Map<String, Value>) {
    let text = |name: &str| shown.get(name).and_then(Value::as_str);
    let state = |name: &str| text(name).map(|text| S::from(text.to_owned()));
    let power = |name: &str| text(name).map(|text| PowerState::from(text.to_owned()));
    node.at = At {
        state: state("provision_state").unwrap_or(S::Enroll),
        target: state("target_provision_state"),
    };
    // A change of power that was under way has come to its end.
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
