//! The machine behind a node: what its BMC and its disks are really like, whatever Ironic believes.
//!
//! Nodes of the driver `fake-hardware` have no machine: there Ironic's record is all there is, as in Ironic itself.

use std::time::Duration;

use metal3_ironic::model::state::PowerState;
use metal3_labhosts::fault::{Fault, Faults};
use metal3_labhosts::identity::Number;
use metal3_labhosts::inventory;
use metal3_labhosts::profile::Profile;
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
pub(crate) struct Trouble {
    /// In words that stand in `last_error`.
    pub(crate) words: String,
    /// How long Ironic tries before it gives up.
    pub(crate) after: Duration,
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Whether it runs.
    pub power: PowerState,
    /// What is wrong with it.
    pub faults: Faults,
    /// What it is made of.
    pub profile: Profile,
    /// The image in its virtual drive.
    pub media: Option<String>,
    /// What it boots from, and whether it always does.
    pub boot_device: (String, bool),
    number: Number,
}

impl Machine {
    pub(crate) fn new(number: u64, profile: Profile) -> Self {
        Self {
            power: PowerState::Off,
            faults: Faults::default(),
            profile,
            media: None,
            boot_device: ("disk".to_owned(), true),
            // Beyond that many machines of one simulation, serial numbers and addresses repeat.
            number: Number(u16::try_from(number % 65_536).unwrap_or_default()),
        }
    }

    /// Whether the BMC answers at all, and with what delay beyond the usual.
    pub(crate) fn reach(&self) -> Result<Duration, Trouble> {
        let trouble = |words: &str, seconds| {
            Err(Trouble {
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
    pub(crate) fn switch(&mut self, to: &PowerState) -> Result<(), Trouble> {
        self.reach()?;
        let runs = self.power == PowerState::On;
        let wanted = *to != PowerState::Off;
        if self.faults.has(Fault::PowerStuck) && runs != wanted {
            return Err(Trouble {
                words: format!("Failed to set node power state to {to}."),
                after: Duration::from_secs(20),
            });
        }
        self.power = if wanted { PowerState::On } else { PowerState::Off };
        Ok(())
    }

    /// Whether a ramdisk that was started speaks after a while.
    pub(crate) fn ramdisk_speaks(&self, heartbeats: bool) -> bool {
        let silent = heartbeats && self.faults.has(Fault::NoHeartbeat);
        self.power == PowerState::On && !silent && !self.faults.has(Fault::NoBoot)
    }

    /// The address of a network card.
    pub(crate) fn macs(&self) -> Vec<String> {
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

    /// Whether a disk could take an image.
    pub(crate) fn has_root_disk(&self) -> bool {
        !self.faults.has(Fault::DiskTooSmall) && inventory::root_disk(&self.profile).is_some()
    }
}
