//! The state of a machine: power, boot order, virtual media, disks, running system. Pure: time is a parameter, and
//! required I/O is returned as [`Effect`]s.
//!
//! Invariant: a boot effect follows only from a power request to the BMC.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;

use crate::{
    bios::Settings,
    disk::{Content, Disk, Written},
    fault::{Fault, Faults},
    firmware::Firmware,
    hints::{self, Purpose},
    identity::Number,
    inventory,
    profile::Profile,
};

/// Time since the start of the lab.
pub type At = Duration;

/// The exact durations of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From a power request to the change.
    pub power: Duration,
    /// From power on to the ramdisk's first request.
    pub boot: Duration,
    /// Each clean or deploy step.
    pub step: Duration,
    /// Heartbeat interval of an idle agent.
    pub beat: Duration,
}

/// The main power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Power {
    /// Running.
    On,
    /// Standby.
    Off,
}

/// The supported Redfish reset types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Power on; no effect when on.
    On,
    /// Cut the power.
    ForceOff,
    /// Shut down the operating system, which always succeeds.
    GracefulShutdown,
    /// Power cycle.
    Restart,
    /// A non-maskable interrupt, without effect.
    Nmi,
}

impl Reset {
    /// The values of `ResetType`.
    pub const NAMES: [&'static str; 7] = [
        "On",
        "ForceOn",
        "ForceOff",
        "GracefulShutdown",
        "GracefulRestart",
        "ForceRestart",
        "Nmi",
    ];

    /// Reads a `ResetType`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "On" | "ForceOn" => Self::On,
            "ForceOff" => Self::ForceOff,
            "GracefulShutdown" => Self::GracefulShutdown,
            "GracefulRestart" | "ForceRestart" => Self::Restart,
            "Nmi" => Self::Nmi,
            _ => return None,
        })
    }
}

/// The boot target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootOverride {
    /// `None`, `Pxe`, `Hdd`, `Cd`, `Usb`, `UefiHttp`.
    pub target: String,
    /// `Disabled`, `Once`, `Continuous`.
    pub enabled: String,
    /// `UEFI` or `Legacy`.
    pub mode: String,
}

/// The medium of a virtual drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    /// The address of the image.
    pub image: String,
}

/// The virtual drives with their media types.
pub const DRIVES: [(&str, &[&str]); 2] = [("Cd", &["CD", "DVD"]), ("UsbStick", &["USBStick"])];

/// The running system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Running {
    /// Off, or nothing to boot.
    Nothing,
    /// Booting an ISO.
    Starting {
        /// Its address.
        iso: String,
    },
    /// The deploy ramdisk.
    Ramdisk,
    /// Another ISO.
    Iso {
        /// Its content.
        #[serde(flatten)]
        content: Content,
    },
    /// The image of the first disk that has one.
    Disk {
        /// The name of the disk.
        disk: String,
    },
}

/// The digests (SHA-256) of the parts of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentImage {
    /// The kernel.
    pub kernel: String,
    /// The ramdisk.
    pub ramdisk: String,
}

/// I/O to be done by [`crate::lab`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The running system ended.
    Stopped,
    /// Read this ISO and boot it.
    Boot {
        /// The number of this boot.
        boot: u64,
        /// The address of the ISO.
        iso: String,
    },
    /// Read this file of firmware for the BMC.
    Fetch {
        /// The number of the task.
        task: u64,
        /// The address of the file.
        url: String,
    },
}

/// One machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The machine number.
    pub number: Number,
    /// The hardware.
    pub profile: Arc<Profile>,
    /// The profile's name.
    pub profile_name: String,
    /// The main power.
    pub power: Power,
    /// The faults.
    pub faults: Faults,
    /// The boot target.
    pub boot: BootOverride,
    /// Inserted media by drive.
    pub media: BTreeMap<&'static str, Media>,
    /// Event subscriptions by number, with their HTTP headers.
    pub subscriptions: BTreeMap<u64, Value>,
    /// Disks, in the kernel's order.
    pub disks: Vec<Disk>,
    /// The running system.
    pub running: Running,
    /// The agent that it booted last.
    pub agent: Option<AgentImage>,
    /// The settings of the BIOS.
    pub settings: Settings,
    /// What was updated.
    pub firmware: Firmware,
    /// The indicator LED.
    pub indicator: String,
    /// How often it was started, whatever it booted.
    pub boots: u64,
    /// The number of images written to disks.
    pub writes: u64,
    pending: Option<(At, Reset)>,
}

impl Machine {
    /// A new machine: off, with blank disks.
    #[must_use]
    pub fn new(number: Number, profile_name: &str, profile: Arc<Profile>) -> Self {
        let disks = profile
            .each_disk()
            .map(|(_, name, group)| Disk::blank(name, group.bytes))
            .collect();
        Self {
            number,
            profile,
            profile_name: profile_name.to_owned(),
            power: Power::Off,
            faults: Faults::default(),
            boot: BootOverride {
                target: "None".into(),
                enabled: "Disabled".into(),
                mode: "UEFI".into(),
            },
            media: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            disks,
            running: Running::Nothing,
            agent: None,
            settings: Settings::default(),
            firmware: Firmware::default(),
            indicator: "Off".into(),
            boots: 0,
            writes: 0,
            pending: None,
        }
    }

    /// Accepts a power request, which takes effect after `delay`. A later request replaces an earlier one.
    pub fn reset(&mut self, reset: Reset, now: At, delay: Duration) {
        if self.faults.has(Fault::PowerStuck) || reset == Reset::Nmi {
            return;
        }
        self.pending = Some((now.saturating_add(delay), reset));
    }

    /// When [`Machine::settle`] has a change to apply.
    #[must_use]
    pub fn due(&self) -> Option<At> {
        self.pending.map(|(at, _)| at)
    }

    /// Begins to read files of firmware, and applies the power change that is due.
    pub fn settle(&mut self, now: At) -> Vec<Effect> {
        let unread = self.firmware.take_unread().into_iter();
        let mut effects: Vec<Effect> = unread.map(|(task, url)| Effect::Fetch { task, url }).collect();
        if let Some((_, reset)) = self.pending.take_if(|(at, _)| *at <= now) {
            effects.extend(self.apply(reset));
        }
        effects
    }

    fn apply(&mut self, reset: Reset) -> Vec<Effect> {
        match (reset, self.power) {
            (Reset::ForceOff | Reset::GracefulShutdown, Power::On) => {
                self.power = Power::Off;
                self.running = Running::Nothing;
                vec![Effect::Stopped]
            }
            (Reset::On | Reset::Restart, Power::Off) => self.start().into_iter().collect(),
            (Reset::Restart, Power::On) => std::iter::once(Effect::Stopped).chain(self.start()).collect(),
            (Reset::On, Power::On) | (Reset::ForceOff | Reset::GracefulShutdown, Power::Off) | (Reset::Nmi, _) => {
                Vec::new()
            }
        }
    }

    fn start(&mut self) -> Option<Effect> {
        self.power = Power::On;
        self.running = Running::Nothing;
        self.boots += 1;
        if !self.faults.has(Fault::SettingsStuck) {
            self.settings.boot();
        }
        self.firmware.boot();
        let from_cd = self.boot.enabled != "Disabled" && self.boot.target == "Cd";
        let from_net = self.boot.enabled != "Disabled" && matches!(self.boot.target.as_str(), "Pxe" | "UefiHttp");
        if self.boot.enabled == "Once" {
            self.boot.enabled = "Disabled".into();
            self.boot.target = "None".into();
        }
        if let Some(media) = self.media.get("Cd").filter(|_| from_cd) {
            let (boot, iso) = (self.boots, media.image.clone());
            self.running = Running::Starting { iso: iso.clone() };
            return Some(Effect::Boot { boot, iso });
        }
        // The machine's network has no boot server.
        if !from_net && let Some(disk) = self.disks.iter().find(|disk| disk.written.is_some()) {
            let disk = disk.name.clone();
            self.running = Running::Disk { disk };
        }
        None
    }

    /// Records the system of this boot. The report of an earlier boot is ignored.
    pub fn booted(&mut self, boot: u64, running: Running) -> bool {
        let current = boot == self.boots && matches!(self.running, Running::Starting { .. });
        if current {
            self.running = running;
        }
        current
    }

    /// Writes an image to a disk and replaces its content.
    pub fn write(&mut self, disk: &str, written: Written, config_drive: Option<Content>) -> bool {
        match self.disks.iter_mut().find(|candidate| candidate.name == disk) {
            Some(found) => {
                found.written = Some(written);
                found.config_drive = config_drive;
                self.writes += 1;
                true
            }
            None => false,
        }
    }

    /// Replaces the content of a disk, as a program of the running system does.
    pub fn fill(&mut self, disk: &str, content: Content) -> bool {
        let found = self.disks.iter_mut().find(|candidate| candidate.name == disk);
        let written = Written {
            content,
            url: String::new(),
            node: String::new(),
        };
        found.is_some_and(|disk| {
            disk.written = Some(written);
            true
        })
    }

    /// Erases the disks that none of these hints matches.
    ///
    /// # Errors
    /// When a hint is invalid: nothing is erased.
    pub fn erase(&mut self, purpose: Purpose, hints: &[Value]) -> Result<(), String> {
        let inventory = inventory::inventory(&self.profile, self.number);
        let found = inventory
            .get("disks")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mut erased = Vec::new();
        for (disk, shown) in self.disks.iter_mut().zip(&found) {
            if !hints::is_skipped(shown, hints, purpose)? {
                erased.push(disk);
            }
        }
        erased.into_iter().for_each(Disk::erase);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BUILT_IN, parse};

    const T0: At = Duration::from_secs(10);
    const DELAY: Duration = Duration::from_millis(500);

    fn machine() -> Machine {
        Machine::new(
            Number(1),
            "small",
            Arc::new(parse(BUILT_IN).unwrap().remove("small").unwrap()),
        )
    }

    fn with_cd(enabled: &str) -> Machine {
        let mut machine = machine();
        let image = "http://files/boot.iso".into();
        machine.media.insert("Cd", Media { image });
        (machine.boot.target, machine.boot.enabled) = ("Cd".into(), enabled.into());
        machine
    }

    fn written() -> Written {
        Written {
            content: Content {
                sha256: "aa".into(),
                bytes: 1,
            },
            url: "u".into(),
            node: "n".into(),
        }
    }

    #[test]
    fn power_changes_exactly_after_the_delay() {
        let mut machine = machine();
        machine.reset(Reset::On, T0, DELAY);
        assert_eq!(machine.due(), Some(T0 + DELAY));
        assert!(machine.settle(T0 + DELAY - Duration::from_nanos(1)).is_empty());
        assert_eq!(machine.power, Power::Off);
        machine.settle(T0 + DELAY);
        assert_eq!(machine.power, Power::On);
        assert_eq!(machine.due(), None);
    }

    #[test]
    fn nothing_boots_from_a_cd_that_is_not_the_boot_target() {
        let mut machine = with_cd("Disabled");
        machine.reset(Reset::On, T0, DELAY);
        assert!(machine.settle(T0 + DELAY).is_empty());
        assert_eq!(machine.running, Running::Nothing);
    }

    #[test]
    fn boot_once_boots_the_cd_once_and_then_the_disk() {
        let mut machine = with_cd("Once");
        machine.write("sda", written(), None);
        machine.reset(Reset::On, T0, DELAY);
        assert_eq!(
            machine.settle(T0 + DELAY),
            [Effect::Boot {
                boot: 1,
                iso: "http://files/boot.iso".into()
            }]
        );
        machine.reset(Reset::Restart, T0, DELAY);
        assert_eq!(machine.settle(T0 + DELAY), [Effect::Stopped]);
        assert_eq!(machine.running, Running::Disk { disk: "sda".into() });
        assert_eq!(machine.boots, 2);
    }

    #[test]
    fn report_of_an_earlier_boot_is_ignored() {
        let mut machine = with_cd("Continuous");
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        machine.reset(Reset::Restart, T0, DELAY);
        machine.settle(T0 + DELAY);
        assert!(!machine.booted(1, Running::Ramdisk));
        assert!(machine.booted(2, Running::Ramdisk));
    }

    #[test]
    fn stuck_power_accepts_requests_without_effect() {
        let mut machine = machine();
        machine.faults = [Fault::PowerStuck].into_iter().collect();
        machine.reset(Reset::On, T0, DELAY);
        assert_eq!(machine.due(), None);
    }

    #[test]
    fn powering_on_a_running_machine_has_no_effect() {
        let mut machine = machine();
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        machine.reset(Reset::On, T0, DELAY);
        assert!(machine.settle(T0 + DELAY).is_empty());
    }

    #[test]
    fn erased_machine_boots_nothing() {
        let mut machine = machine();
        let config_drive = written().content;
        machine.write("sda", written(), Some(config_drive));
        machine.erase(Purpose::Erase, &[]).unwrap();
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        assert_eq!(machine.running, Running::Nothing);
        assert!(machine.disks.iter().all(|disk| disk.config_drive.is_none()));
        assert_eq!(machine.writes, 1);
    }
}
