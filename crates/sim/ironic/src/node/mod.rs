//! A node's record.
//!
//! Fields of clients are stored as received; fields that only Ironic writes are typed.

pub(crate) mod fields;
pub(crate) mod interfaces;
pub(crate) mod patch;
pub(crate) mod present;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metal3_domain::clock::Monotonic;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use serde_json::{Map, Value, json};

use crate::account::BmcAccount;
use crate::bmc::Bmc;
use crate::disks::DiskChoice;
use crate::firmware::{self, Component};
use crate::life::Provision;
use crate::machine::Machine;
use crate::work::Job;

/// The begin of the source of an image in a registry, which Ironic recognizes in lower case only.
pub(crate) const REGISTRY: &str = "oci://";

/// The holder of a node's lock: provision work, or a power change.
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

/// Timestamps of a node.
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
    /// Fields that clients write.
    pub(crate) fields: Map<String, Value>,
    pub(crate) times: Times,
    pub(crate) provision: Provision,
    /// The current step by field: `clean_step`, `deploy_step`, `service_step`.
    pub(crate) steps: BTreeMap<&'static str, Value>,
    /// The place of the current step in the list of its kind.
    pub(crate) step_index: Option<usize>,
    /// The steps of a deployment, while one of them is current.
    pub(crate) deploy_steps: Option<Vec<Value>>,
    /// The steps of the last cleaning that has not ended, or failed.
    pub(crate) clean_steps: Option<Vec<Value>>,
    /// The steps of a service that runs, or that failed.
    pub(crate) service_steps: Option<Vec<Value>>,
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
    pub(crate) firmware: BTreeMap<String, Component>,
    /// The updates of the firmware that have not ended, as in `driver_internal_info`.
    pub(crate) fw_updates: Vec<Value>,
    /// When the first of them began.
    pub(crate) fw_began: Option<Monotonic>,
    pub(crate) inventory: Option<Value>,
    pub(crate) history: Vec<Entry>,
    pub(crate) lock: Option<Slot>,
    pub(crate) jobs: BTreeMap<Slot, Job>,
    /// The BMC. `None` on fake hardware and without an address in `driver_info`.
    pub(crate) bmc: Option<Bmc>,
    /// Consecutive failures to read or restore the power.
    pub(crate) power_sync_failures: u32,
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
            provision: Provision::stable(ProvisionState::Enroll),
            steps: BTreeMap::new(),
            step_index: None,
            deploy_steps: None,
            clean_steps: None,
            service_steps: None,
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
            firmware: BTreeMap::new(),
            fw_updates: Vec::new(),
            fw_began: None,
            inventory: None,
            history: Vec::new(),
            lock: None,
            jobs: BTreeMap::new(),
            bmc: None,
            power_sync_failures: 0,
        };
        node.resolve_bmc();
        node
    }

    /// Updates the BMC from `driver_info`.
    pub(crate) fn resolve_bmc(&mut self) {
        self.bmc = if self.is_fake() {
            None
        } else {
            Bmc::of(self.field("driver_info"))
        };
    }

    /// Records boot mode, secure boot and BIOS settings of the machine.
    pub(crate) fn record_bmc(&mut self, machine: &Machine) {
        self.boot_mode = Some(machine.boot_mode.clone());
        self.secure_boot = Some(machine.secure_boot);
        self.record_bios(machine);
    }

    /// The BIOS settings, if its driver reads them: at each verification, and around each cleaning and service.
    pub(crate) fn record_bios(&mut self, machine: &Machine) {
        if !self.text("bios_interface").is_some_and(interfaces::is_empty) {
            self.bios.clone_from(&machine.bios);
        }
    }

    /// The versions of the firmware, if its driver reads them.
    pub(crate) fn record_firmware(&mut self, machine: &Machine, now: DateTime<Utc>) {
        if !self.text("firmware_interface").is_some_and(interfaces::is_empty) {
            firmware::record(&mut self.firmware, &machine.firmware, now);
        }
    }

    /// No update is left.
    pub(crate) fn end_updates(&mut self) {
        self.fw_updates.clear();
        self.fw_began = None;
    }

    pub(crate) fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.field(name).as_str()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.field(name) == &Value::Bool(true)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.text("name")
    }

    pub(crate) fn driver(&self) -> &str {
        self.text("driver").unwrap_or_default()
    }

    /// Whether the node has no machine.
    pub(crate) fn is_fake(&self) -> bool {
        self.driver() == interfaces::FAKE
    }

    /// Whether the BMC is asked for the hardware, and no agent boots.
    pub(crate) fn is_inspected_by_bmc(&self) -> bool {
        !self.is_fake() && !matches!(self.text("inspect_interface"), None | Some("agent" | "no-inspect"))
    }

    /// Whether the image is booted live instead of written.
    pub(crate) fn is_live(&self) -> bool {
        self.text("deploy_interface") == Some("ramdisk")
    }

    /// Whether its machine boots what Ironic inserts into the virtual drive.
    pub(crate) fn boots_from_drive(&self) -> bool {
        self.text("boot_interface")
            .is_some_and(|name| name.contains("virtual-media"))
    }

    /// Whether `instance_info` has this key.
    pub(crate) fn has_image(&self, key: &str) -> bool {
        self.image(key).is_some()
    }

    /// A non-empty text of `instance_info`.
    pub(crate) fn image(&self, key: &str) -> Option<&str> {
        let text = self.field("instance_info").get(key)?.as_str()?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// The field that a deployment lacks.
    pub(crate) fn missing_image(&self) -> Option<&'static str> {
        let has = |key| self.has_image(key);
        let (algorithm, hash) = (has("image_os_hash_algo"), has("image_os_hash_value"));
        // Algorithm and value of a hash are only valid together, even with a checksum.
        let checked = algorithm == hash && (hash || has("image_checksum"));
        match self.text("deploy_interface") {
            Some("direct") if !has("image_source") => Some("instance_info.image_source"),
            Some("direct")
                if self
                    .image("image_source")
                    .is_some_and(|source| source.starts_with("file://") || source.starts_with(REGISTRY)) =>
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

    /// What the record says about disks.
    pub(crate) fn disk_choice(&self) -> DiskChoice {
        let of = |field: &str, key: &str| self.field(field).get(key).cloned().unwrap_or_default();
        let skipped = of("properties", "skip_block_devices");
        DiskChoice {
            root: of("instance_info", "root_device"),
            skipped: skipped.as_array().cloned().unwrap_or_default(),
        }
    }

    /// The login that Ironic has for the BMC.
    pub(crate) fn bmc_account(&self) -> Option<BmcAccount> {
        let info = self.field("driver_info");
        let part = |name: &str| {
            let found = ["redfish", "ipmi"]
                .iter()
                .find_map(|kind| info.get(format!("{kind}_{name}")));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        Some(BmcAccount {
            username: part("username")?,
            password: part("password")?,
        })
    }

    pub(crate) fn in_maintenance(&self) -> bool {
        self.is_set("maintenance")
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.is_set("protected")
    }

    pub(crate) fn set_maintenance(&mut self, on: bool, reason: Option<String>) {
        self.fields.insert("maintenance".into(), on.into());
        self.maintenance_reason = reason;
        if !on {
            self.fault = None;
        }
    }

    /// Enters a provision state and updates the timestamps.
    pub(crate) fn enter(&mut self, to: Provision, now: DateTime<Utc>) {
        match (&self.provision.state, &to.state) {
            (_, ProvisionState::Inspecting) if self.provision.state != ProvisionState::InspectWait => {
                (self.times.inspection_began, self.times.inspection_ended) = (Some(now), None);
            }
            (ProvisionState::Inspecting, ProvisionState::Manageable) => self.times.inspection_ended = Some(now),
            (ProvisionState::Inspecting, ProvisionState::InspectFailed) => self.times.inspection_began = None,
            (from, ProvisionState::Cleaning) if *from != ProvisionState::CleanWait => self.clean_steps = None,
            (ProvisionState::Cleaning, ProvisionState::Manageable | ProvisionState::Available) => {
                self.clean_steps = None
            }
            (ProvisionState::Servicing, ProvisionState::Active) => self.service_steps = None,
            _ => {}
        }
        self.times.provisioned = Some(now);
        self.provision = to;
    }

    pub(crate) fn step(&self, kind: &str) -> Value {
        self.steps.get(kind).cloned().unwrap_or_else(|| json!({}))
    }
}
