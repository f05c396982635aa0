//! The machine of a node: the actual state of its BMC and disks, independent of Ironic's records.
//!
//! Nodes of the driver `fake-hardware` have no machine, as in Ironic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use metal3_sim_bmc::fault::{Fault, Faults};
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::inventory;
use metal3_sim_bmc::profile::{DiskGroup, NicGroup, Profile};
use serde_json::{Value, json};

use crate::account::BmcAccount;
use crate::bios::{self, BiosReports};
use crate::disks::DiskChoice;
use crate::firmware::{self, FirmwareUpdates};

/// Durations of operations.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Every request to Ironic.
    pub request: Duration,
    /// A power change or a power query on fake hardware.
    pub fake_power: Duration,
    /// Any other work on fake hardware.
    pub fake_work: Duration,
    /// One call to a BMC, a power change included.
    pub bmc: Duration,
    /// From power on until the ramdisk responds.
    pub boot: Duration,
    /// Work of the ramdisk: inspect, clean, write an image.
    pub work: Duration,
    /// Timeout of a ramdisk that does not respond.
    pub ramdisk_timeout: Duration,
    /// Attempts to lock a node.
    pub lock_attempts: u32,
    /// Pause between the attempts.
    pub lock_pause: Duration,
    /// Period of the power sync of all nodes.
    pub power_sync: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let millis = Duration::from_millis;
        Self {
            request: millis(2),
            fake_power: millis(10),
            fake_work: millis(20),
            bmc: millis(1_100),
            boot: Duration::from_secs(40),
            work: Duration::from_secs(20),
            ramdisk_timeout: Duration::from_secs(600),
            lock_attempts: 3,
            lock_pause: Duration::from_secs(1),
            power_sync: Duration::from_secs(120),
        }
    }
}

impl Pace {
    /// Machines that are `speed` times faster than real ones. Ironic itself and its periodic work keep their times.
    #[must_use]
    pub fn faster(speed: u32) -> Self {
        let real = Self::default();
        let scaled = |time: Duration| time.checked_div(speed).unwrap_or(time);
        Self {
            bmc: scaled(real.bmc),
            boot: scaled(real.boot),
            work: scaled(real.work),
            lock_pause: scaled(real.lock_pause),
            ..real
        }
    }
}

/// A failed BMC call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BmcError {
    /// The text for `last_error`.
    pub(crate) message: String,
    /// How long Ironic retries before it fails.
    pub(crate) after: Duration,
    /// The BMC answered, and refuses the login.
    pub(crate) is_login: bool,
}

/// The image on the root disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Its URL; empty if a deploy step needs none.
    pub source: String,
    /// The requested checksum, or its URL.
    pub checksum: Option<String>,
    /// The config-drive.
    pub config_drive: Option<Value>,
    /// The deploy step of the agent that installed it, unless Ironic's own step wrote it.
    pub step: Option<String>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The config-drive holds secrets.
        f.debug_struct("Image")
            .field("source", &self.source)
            .field("checksum", &self.checksum)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// Counts of operations that affect the user of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineCounts {
    /// Power changes from off to on.
    pub started: u32,
    /// Power changes from on to off.
    pub stopped: u32,
    /// Images written to the disk.
    pub written: u32,
    /// Erasures of the disk.
    pub erased: u32,
}

/// An event subscription of a BMC.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// The BMC's identifier.
    pub id: String,
    /// The URL that events are sent to.
    pub destination: String,
    /// The text that comes with each event.
    pub context: String,
    /// The HTTP headers, as they were requested. No BMC returns them.
    pub headers: Value,
}

/// An image that is booted at each start, and not from the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveImage {
    /// Its URL.
    pub source: String,
    /// Whether it is in the virtual drive. Otherwise it is loaded from the network.
    pub is_in_drive: bool,
}

/// A machine. It exists independently of Ironic's nodes.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Actual power state.
    pub power: PowerState,
    /// Active faults.
    pub faults: Faults,
    /// The only account that the BMC accepts. `None`: any.
    pub account: Option<BmcAccount>,
    /// The login that the node of the machine has.
    pub(crate) presented: Option<BmcAccount>,
    /// Hardware profile.
    pub profile: Profile,
    /// The image in the virtual drive as the BMC names it: a live image, or the copy of one that a client attached.
    pub media: Option<String>,
    /// The image that a client attached, as the client named it.
    pub disc: Option<String>,
    /// Whether it has a virtual drive.
    pub has_drive: bool,
    /// Whether the drive ejects.
    pub ejects: bool,
    /// How many images it does not load, of the next ones.
    pub discs_refused: u32,
    /// How many reads of the drive show it as it was before a client changed it.
    pub late_views: u32,
    /// What these reads show, and how many of them are left.
    pub(crate) earlier_media: (u32, Option<String>),
    /// The disc of each start of the machine.
    pub starts: Vec<Option<String>>,
    /// The image on the root disk.
    pub disk: Option<Image>,
    /// What other programs wrote to disks, by the kernel names of these.
    pub data: BTreeMap<String, String>,
    /// The disk with the image.
    pub(crate) root: String,
    /// The live image that it boots instead of that.
    pub live: Option<LiveImage>,
    /// Operation counts.
    pub counts: MachineCounts,
    /// Boot device, and whether it is persistent.
    pub boot_device: (String, bool),
    /// `uefi` or `bios`.
    pub boot_mode: String,
    /// Whether secure boot is on.
    pub secure_boot: bool,
    /// The event subscriptions. They do not end with the node.
    pub subscriptions: Vec<Subscription>,
    /// BIOS settings.
    pub bios: BTreeMap<String, Value>,
    /// How it reports those that are changed.
    pub bios_reports: BiosReports,
    /// The version of the firmware of each component.
    pub firmware: BTreeMap<String, String>,
    /// How it performs updates.
    pub firmware_updates: FirmwareUpdates,
    /// How long each step of a cleaning, a service or the writing of an image takes besides, so that Ironic shows it meanwhile.
    pub step_time: Duration,
    /// The deploy steps that its agent has besides those of each agent.
    pub deploy_steps: BTreeSet<String>,
    /// The updates that were made, each with its component and URL.
    pub flashed: Vec<(String, String)>,
    number: Number,
}

impl Machine {
    pub(crate) fn new(number: u64, profile: Profile) -> Self {
        Self {
            power: PowerState::Off,
            faults: Faults::default(),
            account: None,
            presented: None,
            firmware: firmware::factory(&profile),
            firmware_updates: FirmwareUpdates::default(),
            flashed: Vec::new(),
            deploy_steps: BTreeSet::new(),
            step_time: Duration::ZERO,
            profile,
            media: None,
            disc: None,
            has_drive: true,
            ejects: true,
            discs_refused: 0,
            late_views: 0,
            earlier_media: (0, None),
            starts: Vec::new(),
            disk: None,
            data: BTreeMap::new(),
            root: String::new(),
            live: None,
            counts: MachineCounts::default(),
            boot_device: ("disk".to_owned(), true),
            boot_mode: "uefi".to_owned(),
            secure_boot: false,
            subscriptions: Vec::new(),
            bios: bios::factory(),
            bios_reports: BiosReports::default(),
            // Serial numbers and addresses repeat after 65536 machines.
            number: Number(u16::try_from(number % 65_536).unwrap_or_default()),
        }
    }

    /// Checks that the BMC responds. Returns its additional delay.
    pub(crate) fn reach(&self) -> Result<Duration, BmcError> {
        let failed = |message: &str, seconds| {
            Err(BmcError {
                message: message.to_owned(),
                after: Duration::from_secs(seconds),
                is_login: false,
            })
        };
        if self.faults.has(Fault::DeadBmc) {
            return failed("the BMC does not answer", 60);
        }
        let is_other_account = self.account.is_some() && self.account != self.presented;
        if is_other_account || self.faults.has(Fault::WrongPassword) {
            return failed("the BMC refuses the login", 0).map_err(|error| BmcError {
                is_login: true,
                ..error
            });
        }
        match self.faults.bmc_status() {
            Some(status) => failed(&format!("the BMC answers with status {status}"), 30),
            None => Ok(self.faults.bmc_delay()),
        }
    }

    /// Changes the power.
    pub(crate) fn switch(&mut self, to: &PowerState) -> Result<(), BmcError> {
        self.reach()?;
        let runs = self.power == PowerState::On;
        let wanted = *to != PowerState::Off;
        if self.faults.has(Fault::PowerStuck) && runs != wanted {
            return Err(BmcError {
                message: format!("Failed to set node power state to {to}."),
                after: Duration::from_secs(20),
                is_login: false,
            });
        }
        if wanted {
            self.starts.push(self.disc.clone());
        }
        let count = match (runs, wanted) {
            (false, true) => Some(&mut self.counts.started),
            (true, false) => Some(&mut self.counts.stopped),
            _ => None,
        };
        if let Some(count) = count {
            *count = count.saturating_add(1);
        }
        self.power = if wanted { PowerState::On } else { PowerState::Off };
        Ok(())
    }

    /// A person switches the machine at its front panel. Ironic reads it with the next power sync.
    pub fn press_power_button(&mut self) {
        self.power = if self.power == PowerState::Off {
            PowerState::On
        } else {
            PowerState::Off
        };
    }

    /// Empties the virtual drive. What the machine boots from it is gone.
    pub(crate) fn eject(&mut self) {
        self.media = None;
        self.disc = None;
        self.live = self.live.take().filter(|live| !live.is_in_drive);
    }

    /// Whether a booted ramdisk responds.
    pub(crate) fn ramdisk_responds(&self, heartbeats: bool) -> bool {
        let silent = heartbeats && self.faults.has(Fault::NoHeartbeat);
        self.power == PowerState::On && !silent && !self.faults.has(Fault::NoBoot)
    }

    /// MAC addresses of the network cards.
    #[must_use]
    pub fn macs(&self) -> Vec<String> {
        self.profile
            .each_nic()
            .map(|(index, _)| self.number.mac(index))
            .collect()
    }

    /// The inventory that the ramdisk reports.
    #[must_use]
    pub fn inventory(&self) -> Value {
        json!({
            "inventory": inventory::inventory(&self.profile, self.number),
            "plugin_data": {},
        })
    }

    /// What Ironic finds through the BMC: no addresses, no paths of disks, and numbers where the agent has text.
    pub(crate) fn inventory_of_bmc(&self) -> Value {
        let profile = &self.profile;
        let disk = |(index, name, group): (usize, String, &DiskGroup)| {
            json!({ "name": name, "size": group.bytes, "vendor": group.vendor, "model": group.model,
                "serial": inventory::disk_serial(self.number, index), "rotational": group.rotational })
        };
        let card = |(index, nic): (usize, &NicGroup)| {
            json!({ "name": format!("NIC{}", index.saturating_add(1)), "mac_address": self.number.mac(index),
                "speed_mbps": nic.speed_mbps })
        };
        let cpu = &profile.cpu;
        let found = json!({
            "memory": { "physical_mb": profile.memory_mib },
            "cpu": { "count": cpu.threads, "architecture": profile.architecture.as_str(), "model_name": cpu.model, "frequency": cpu.mhz },
            "disks": profile.each_disk().map(disk).collect::<Vec<_>>(),
            "interfaces": profile.each_nic().map(card).collect::<Vec<_>>(),
            "system_vendor": { "product_name": profile.vendor.product, "serial_number": self.number.serial(),
                "manufacturer": profile.vendor.manufacturer },
            "boot": { "current_boot_mode": "uefi" },
        });
        json!({ "inventory": found, "plugin_data": {} })
    }

    /// Writes an image to the root disk: the first one that the hints match, if any.
    pub(crate) fn write(&mut self, image: Image, choice: &DiskChoice) -> Result<(), &'static str> {
        if self.faults.has(Fault::ChecksumMismatch) {
            return Err("the image is not what its checksum promises");
        }
        if self.faults.has(Fault::DiskTooSmall) || inventory::root_disk(&self.profile).is_none() {
            return Err("every disk is smaller than 4 GiB");
        }
        self.root = self.root_disk(choice);
        self.data.remove(&self.root);
        self.disk = Some(image);
        self.counts.written = self.counts.written.saturating_add(1);
        Ok(())
    }

    /// Installs the firmware of an update.
    pub(crate) fn flash(&mut self, update: &Value) {
        let (component, url) = (firmware::member(update, "component"), firmware::member(update, "url"));
        if component == "bios" {
            self.bios.extend(bios::added(&firmware::version(url)));
        }
        self.firmware.insert(component.to_owned(), firmware::version(url));
        self.flashed.push((component.to_owned(), url.to_owned()));
    }
}
