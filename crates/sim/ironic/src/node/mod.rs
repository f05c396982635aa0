//! A node's record.
//!
//! What clients write is kept as they wrote it; what only Ironic writes has types. Nothing here takes locks, knows
//! requests or lets time pass.

pub(crate) mod fields;
pub(crate) mod interfaces;
pub(crate) mod patch;
pub(crate) mod present;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metal3_ironic::model::state::{PowerState, ProvisionState};
use serde_json::{Map, Value, json};

use crate::bmc::Bmc;
use crate::life::At;
use crate::machine::Machine;
use crate::work::Job;

/// Who holds a node: the work on its life, or a change of its power beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    Life,
    Power,
}

/// One line of a node's history.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) uuid: String,
    pub(crate) at: DateTime<Utc>,
    pub(crate) severity: &'static str,
    pub(crate) event: String,
}

/// When things happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) created: DateTime<Utc>,
    /// Null until the first change.
    pub(crate) updated: Option<DateTime<Utc>>,
    pub(crate) provisioned: Option<DateTime<Utc>>,
    pub(crate) inspection_began: Option<DateTime<Utc>>,
    pub(crate) inspection_ended: Option<DateTime<Utc>>,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Ironic's `id`: the order of creation.
    pub(crate) serial: u64,
    pub(crate) uuid: String,
    /// What clients write.
    pub(crate) fields: Map<String, Value>,
    pub(crate) times: Times,
    pub(crate) at: At,
    /// The step that runs, by kind: `clean_step`, `deploy_step`, `service_step`.
    pub(crate) steps: BTreeMap<&'static str, Value>,
    pub(crate) power: Option<PowerState>,
    pub(crate) target_power: Option<PowerState>,
    pub(crate) last_error: Option<String>,
    pub(crate) maintenance_reason: Option<String>,
    pub(crate) fault: Option<&'static str>,
    pub(crate) raid: Value,
    pub(crate) target_raid: Value,
    pub(crate) boot_mode: Option<String>,
    pub(crate) secure_boot: Option<bool>,
    pub(crate) traits: Vec<String>,
    pub(crate) bios: BTreeMap<String, Value>,
    pub(crate) subscriptions: Vec<String>,
    pub(crate) inventory: Option<Value>,
    pub(crate) history: Vec<Entry>,
    pub(crate) lock: Option<Slot>,
    pub(crate) jobs: BTreeMap<Slot, Job>,
    /// Where its machine is reached. None on fake hardware, and while `driver_info` does not say it.
    pub(crate) bmc: Option<Bmc>,
    /// How often in a row Ironic could not read its power, or not restore it.
    pub(crate) in_vain: u32,
}

impl Node {
    pub(crate) fn new(serial: u64, uuid: String, fields: Map<String, Value>, now: DateTime<Utc>) -> Self {
        let mut node = Self {
            serial,
            uuid,
            fields,
            times: Times {
                created: now,
                ..Times::default()
            },
            at: At::rest(ProvisionState::Enroll),
            steps: BTreeMap::new(),
            power: None,
            target_power: None,
            last_error: None,
            maintenance_reason: None,
            fault: None,
            raid: json!({}),
            target_raid: json!({}),
            boot_mode: None,
            secure_boot: None,
            traits: Vec::new(),
            bios: BTreeMap::new(),
            subscriptions: Vec::new(),
            inventory: None,
            history: Vec::new(),
            lock: None,
            jobs: BTreeMap::new(),
            bmc: None,
            in_vain: 0,
        };
        node.look_up_bmc();
        node
    }

    /// Reads from the record where the machine is.
    pub(crate) fn look_up_bmc(&mut self) {
        self.bmc = if self.is_fake() {
            None
        } else {
            Bmc::of(self.field("driver_info"))
        };
    }

    /// Takes down what the BMC shows.
    pub(crate) fn see(&mut self, machine: &Machine) {
        self.boot_mode = Some(machine.boot_mode.clone());
        self.secure_boot = Some(machine.secure_boot);
        if !self.text("bios_interface").is_some_and(interfaces::is_empty) {
            self.bios.clone_from(&machine.bios);
        }
    }

    pub(crate) fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.field(name).as_str()
    }

    pub(crate) fn says(&self, name: &str) -> bool {
        self.field(name) == &Value::Bool(true)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.text("name")
    }

    pub(crate) fn driver(&self) -> &str {
        self.text("driver").unwrap_or_default()
    }

    /// Whether there is no machine behind it.
    pub(crate) fn is_fake(&self) -> bool {
        self.driver() == interfaces::FAKE
    }

    /// Whether an image is booted rather than written.
    pub(crate) fn is_live(&self) -> bool {
        self.text("deploy_interface") == Some("ramdisk")
    }

    /// Whether `instance_info` has this of an image.
    pub(crate) fn has_image(&self, key: &str) -> bool {
        self.image(key).is_some()
    }

    /// What `instance_info` says of an image.
    pub(crate) fn image(&self, key: &str) -> Option<&str> {
        let text = self.field("instance_info").get(key)?.as_str()?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// What a deployment lacks.
    pub(crate) fn missing_image(&self) -> Option<&'static str> {
        let has = |key| self.has_image(key);
        let (algorithm, hash) = (has("image_os_hash_algo"), has("image_os_hash_value"));
        // Half a hash is one too few, even beside a checksum.
        let checked = algorithm == hash && (hash || has("image_checksum"));
        match self.text("deploy_interface") {
            Some("direct") if !has("image_source") => Some("instance_info.image_source"),
            Some("direct")
                if self
                    .image("image_source")
                    .is_some_and(|source| source.starts_with("file://")) =>
            {
                None
            }
            Some("direct") if !checked => {
                Some("instance_info.image_checksum, or image_os_hash_algo and image_os_hash_value")
            }
            Some("ramdisk") if !has("boot_iso") => Some("instance_info.boot_iso"),
            _ => None,
        }
    }

    pub(crate) fn in_maintenance(&self) -> bool {
        self.says("maintenance")
    }

    pub(crate) fn set_maintenance(&mut self, on: bool, reason: Option<String>) {
        self.fields.insert("maintenance".into(), on.into());
        self.maintenance_reason = reason;
        if !on {
            self.fault = None;
        }
    }

    /// Takes a new place in life and notes when.
    pub(crate) fn moves(&mut self, to: At, now: DateTime<Utc>) {
        match (&self.at.state, &to.state) {
            (_, ProvisionState::Inspecting) if self.at.state != ProvisionState::InspectWait => {
                (self.times.inspection_began, self.times.inspection_ended) = (Some(now), None);
            }
            (ProvisionState::Inspecting, ProvisionState::Manageable) => self.times.inspection_ended = Some(now),
            (ProvisionState::Inspecting, ProvisionState::InspectFailed) => self.times.inspection_began = None,
            _ => {}
        }
        self.times.provisioned = Some(now);
        self.at = to;
    }

    pub(crate) fn step(&self, kind: &str) -> Value {
        self.steps.get(kind).cloned().unwrap_or_else(|| json!({}))
    }
}
