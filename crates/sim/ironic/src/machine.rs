//! The machine behind a node: what its BMC and its disks are really like, whatever Ironic believes.
//!
//! Nodes of the driver `fake-hardware` have no machine: there Ironic's record is all there is, as in Ironic itself.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use metal3_sim_bmc::fault::{Fault, Faults};
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::inventory;
use metal3_sim_bmc::profile::Profile;
use serde_json::{Value, json};

/// How long things take.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Every request to Ironic.
    pub request: Duration,
    /// A power change, or asking for the power state, on fake hardware.
    pub fake_power: Duration,
    /// Any other work on fake hardware.
    pub fake_work: Duration,
    /// One call to a BMC, a power change included.
    pub bmc: Duration,
    /// From power on until the ramdisk speaks.
    pub boot: Duration,
    /// What the ramdisk does: inspect, clean, write an image.
    pub work: Duration,
    /// After which a ramdisk that does not speak is given up.
    pub patience: Duration,
    /// How often a locked node is tried.
    pub lock_attempts: u32,
    /// The pause between the tries.
    pub lock_pause: Duration,
    /// How often Ironic looks at the power of every node.
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
            patience: Duration::from_secs(600),
            lock_attempts: 3,
            lock_pause: Duration::from_secs(1),
            power_sync: Duration::from_secs(120),
        }
    }
}

/// Why a BMC did not do as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BmcError {
    /// In words that stand in `last_error`.
    pub(crate) words: String,
    /// How long Ironic tries before it gives up.
    pub(crate) after: Duration,
}

/// What is written on the root disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it came from.
    pub source: String,
    /// What was ordered to hold of it: a checksum, or the place of one.
    pub checksum: Option<String>,
    /// What was written beside it for the first boot.
    pub config_drive: Option<Value>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The config-drive holds secrets.
        f.debug_struct("Image")
            .field("source", &self.source)
            .field("checksum", &self.checksum)
            .finish_non_exhaustive()
    }
}

/// How often something was done to a machine that its owner would notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineCounts {
    /// It was off and came on.
    pub started: u32,
    /// It was on and went off.
    pub stopped: u32,
    /// An image was written to its disk.
    pub written: u32,
    /// Its disk was erased.
    pub erased: u32,
}

/// A machine. It outlives every record that Ironic has of it.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Whether it runs.
    pub power: PowerState,
    /// What is wrong with it.
    pub faults: Faults,
    /// What it is made of.
    pub profile: Profile,
    /// The image in its virtual drive: a live image, or what a client attached.
    pub media: Option<String>,
    /// What its root disk holds.
    pub disk: Option<Image>,
    /// What was done to it.
    pub counts: MachineCounts,
    /// What it boots from, and whether it always does.
    pub boot_device: (String, bool),
    /// `uefi` or `bios`.
    pub boot_mode: String,
    /// Whether it boots signed software only.
    pub secure_boot: bool,
    /// The settings of its firmware.
    pub bios: BTreeMap<String, Value>,
    number: Number,
}

impl Machine {
    pub(crate) fn new(number: u64, profile: Profile) -> Self {
        Self {
            power: PowerState::Off,
            faults: Faults::default(),
            profile,
            media: None,
            disk: None,
            counts: MachineCounts::default(),
            boot_device: ("disk".to_owned(), true),
            boot_mode: "uefi".to_owned(),
            secure_boot: false,
            bios: factory_bios(),
            // Beyond that many machines of one simulation, serial numbers and addresses repeat.
            number: Number(u16::try_from(number % 65_536).unwrap_or_default()),
        }
    }

    /// Whether the BMC answers at all, and with what delay beyond the usual.
    pub(crate) fn reach(&self) -> Result<Duration, BmcError> {
        let trouble = |words: &str, seconds| {
            Err(BmcError {
                words: words.to_owned(),
                after: Duration::from_secs(seconds),
            })
        };
        if self.faults.has(Fault::DeadBmc) {
            return trouble("the BMC does not answer", 60);
        }
        if self.faults.has(Fault::WrongPassword) {
            return trouble("the BMC refuses the login", 0);
        }
        match self.faults.bmc_status() {
            Some(status) => trouble(&format!("the BMC answers with status {status}"), 30),
            None => Ok(self.faults.bmc_delay()),
        }
    }

    /// Changes the power, or finds that it does not change.
    pub(crate) fn switch(&mut self, to: &PowerState) -> Result<(), BmcError> {
        self.reach()?;
        let runs = self.power == PowerState::On;
        let wanted = *to != PowerState::Off;
        if self.faults.has(Fault::PowerStuck) && runs != wanted {
            return Err(BmcError {
                words: format!("Failed to set node power state to {to}."),
                after: Duration::from_secs(20),
            });
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

    /// Whether a ramdisk that was started speaks after a while.
    pub(crate) fn ramdisk_speaks(&self, heartbeats: bool) -> bool {
        let silent = heartbeats && self.faults.has(Fault::NoHeartbeat);
        self.power == PowerState::On && !silent && !self.faults.has(Fault::NoBoot)
    }

    /// The addresses of its network cards.
    #[must_use]
    pub fn macs(&self) -> Vec<String> {
        self.profile
            .each_nic()
            .map(|(index, _)| self.number.mac(index))
            .collect()
    }

    /// What the ramdisk reports.
    pub(crate) fn inventory(&self) -> Value {
        json!({
            "inventory": inventory::inventory(&self.profile, self.number),
            "plugin_data": {},
        })
    }

    /// Writes an image to the root disk. `Err`: why it could not be.
    pub(crate) fn write(&mut self, image: Image) -> Result<(), &'static str> {
        if self.faults.has(Fault::ChecksumMismatch) {
            return Err("the image is not what its checksum promises");
        }
        if self.faults.has(Fault::DiskTooSmall) || inventory::root_disk(&self.profile).is_none() {
            return Err("every disk is smaller than 4 GiB");
        }
        self.disk = Some(image);
        self.counts.written = self.counts.written.saturating_add(1);
        Ok(())
    }

    /// Makes the disk unreadable, as erasing its metadata does.
    pub(crate) fn erase(&mut self) {
        self.disk = None;
        self.counts.erased = self.counts.erased.saturating_add(1);
    }
}

/// The settings that a machine leaves its factory with.
pub(crate) fn factory_bios() -> BTreeMap<String, Value> {
    [
        ("BootMode", "Uefi"),
        ("NumaGroupSize", "Flat"),
        ("ProcVirtualization", "Enabled"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), json!(value)))
    .collect()
}
