//! A machine as its BMC sees it: power, boot order, virtual media, disks, and what runs on it. Pure: time is a parameter,
//! and what must happen outside is handed out as [`Effect`]s.
//!
//! Invariant: a boot effect follows only from a power change that somebody asked the BMC for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    disk::{Content, Disk, Written},
    fault::{Fault, Faults},
    identity::Number,
    profile::Profile,
};

/// Time since the lab began.
pub type At = Duration;

/// How long things take, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From a power request to the change.
    pub power: Duration,
    /// From power on to the ramdisk's first request.
    pub boot: Duration,
    /// Each clean or deploy step.
    pub step: Duration,
    /// Between heartbeats while nothing happens.
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

/// The Redfish reset types that this BMC knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Switch on; nothing if on.
    On,
    /// Cut the power.
    ForceOff,
    /// Ask the operating system; what runs here always obeys.
    GracefulShutdown,
    /// Off and on in one.
    Restart,
    /// An interrupt that nothing here listens to.
    Nmi,
}

impl Reset {
    /// The names as Redfish spells them.
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

/// Where a machine boots from next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootOverride {
    /// `None`, `Pxe`, `Hdd`, `Cd`, `Usb`, `UefiHttp`.
    pub target: String,
    /// `Disabled`, `Once`, `Continuous`.
    pub enabled: String,
    /// `UEFI` or `Legacy`.
    pub mode: String,
}

/// What is in a virtual drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    /// Where the BMC reads it.
    pub image: String,
}

/// The drives of every BMC, with the media types they take.
pub const DRIVES: [(&str, &[&str]); 2] = [("Cd", &["CD", "DVD"]), ("UsbStick", &["USBStick"])];

/// What runs on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Running {
    /// Off, or on with nothing to boot.
    Nothing,
    /// An ISO is being read.
    Starting {
        /// Its address.
        iso: String,
    },
    /// The deploy ramdisk.
    Ramdisk,
    /// Some other ISO.
    Iso {
        /// What it is.
        #[serde(flatten)]
        content: Content,
    },
    /// What the first disk with an image holds.
    Disk {
        /// The disk's name.
        disk: String,
    },
}

/// What the shell must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Whatever ran is gone.
    Stopped,
    /// Read this ISO and start what it holds. The number tells boots apart.
    Boot {
        /// How often this machine has booted by now.
        boot: u64,
        /// Where the ISO is.
        iso: String,
    },
}

/// One machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Which one.
    pub number: Number,
    /// What it is made of, and the profile's name.
    pub profile: Arc<Profile>,
    /// The profile's name.
    pub profile_name: String,
    /// The main power.
    pub power: Power,
    /// What is wrong with it.
    pub faults: Faults,
    /// Where it boots from next.
    pub boot: BootOverride,
    /// Virtual drives with something in them.
    pub media: BTreeMap<&'static str, Media>,
    /// Disks, in the kernel's order.
    pub disks: Vec<Disk>,
    /// What runs.
    pub running: Running,
    /// The chassis lamp.
    pub indicator: String,
    /// How often it has booted an ISO.
    pub boots: u64,
    /// How often an image was put on a disk of it.
    pub writes: u64,
    pending: Option<(At, Reset)>,
}

impl Machine {
    /// A machine out of the box: off, disks blank.
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
            disks,
            running: Running::Nothing,
            indicator: "Off".into(),
            boots: 0,
            writes: 0,
            pending: None,
        }
    }

    /// Takes a power request; the change comes `delay` later. A later request replaces an earlier one.
    pub fn reset(&mut self, reset: Reset, now: At, delay: Duration) {
        if self.faults.has(Fault::PowerStuck) || reset == Reset::Nmi {
            return;
        }
        self.pending = Some((now.saturating_add(delay), reset));
    }

    /// When [`Machine::settle`] has work next.
    #[must_use]
    pub fn due(&self) -> Option<At> {
        self.pending.map(|(at, _)| at)
    }

    /// Applies what is due.
    pub fn settle(&mut self, now: At) -> Vec<Effect> {
        let Some((_, reset)) = self.pending.take_if(|(at, _)| *at <= now) else {
            return Vec::new();
        };
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
        let from_cd = self.boot.enabled != "Disabled" && self.boot.target == "Cd";
        let from_net = self.boot.enabled != "Disabled" && matches!(self.boot.target.as_str(), "Pxe" | "UefiHttp");
        if self.boot.enabled == "Once" {
            self.boot.enabled = "Disabled".into();
            self.boot.target = "None".into();
        }
        if let Some(media) = self.media.get("Cd").filter(|_| from_cd) {
            self.boots += 1;
            self.running = Running::Starting {
                iso: media.image.clone(),
            };
            return Some(Effect::Boot {
                boot: self.boots,
                iso: media.image.clone(),
            });
        }
        // Nobody serves a boot file on this machine's network.
        if !from_net && let Some(disk) = self.disks.iter().find(|disk| disk.written.is_some()) {
            self.running = Running::Disk {
                disk: disk.name.clone(),
            };
        }
        None
    }

    /// The ISO of this boot is up. Late news of an earlier boot changes nothing.
    pub fn booted(&mut self, boot: u64, running: Running) -> bool {
        let current = boot == self.boots && matches!(self.running, Running::Starting { .. });
        if current {
            self.running = running;
        }
        current
    }

    /// Puts an image on a disk, in place of all that it held.
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

    /// Makes every disk forget what it holds.
    pub fn erase(&mut self) {
        self.disks.iter_mut().for_each(Disk::erase);
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
        machine.media.insert(
            "Cd",
            Media {
                image: "http://files/boot.iso".into(),
            },
        );
        machine.boot = BootOverride {
            target: "Cd".into(),
            enabled: enabled.into(),
            mode: "UEFI".into(),
        };
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
    }

    #[test]
    fn late_news_of_an_earlier_boot_changes_nothing() {
        let mut machine = with_cd("Continuous");
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        machine.reset(Reset::Restart, T0, DELAY);
        machine.settle(T0 + DELAY);
        assert!(!machine.booted(1, Running::Ramdisk));
        assert!(machine.booted(2, Running::Ramdisk));
    }

    #[test]
    fn stuck_power_accepts_and_ignores() {
        let mut machine = machine();
        machine.faults = [Fault::PowerStuck].into_iter().collect();
        machine.reset(Reset::On, T0, DELAY);
        assert_eq!(machine.due(), None);
    }

    #[test]
    fn switching_on_what_is_on_stops_nothing() {
        let mut machine = machine();
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        machine.reset(Reset::On, T0, DELAY);
        assert!(machine.settle(T0 + DELAY).is_empty());
    }

    #[test]
    fn erased_machine_boots_nothing() {
        let mut machine = machine();
        machine.write(
            "sda",
            written(),
            Some(Content {
                sha256: "bb".into(),
                bytes: 2,
            }),
        );
        machine.erase();
        machine.reset(Reset::On, T0, DELAY);
        machine.settle(T0 + DELAY);
        assert_eq!(machine.running, Running::Nothing);
        assert!(machine.disks.iter().all(|disk| disk.config_drive.is_none()));
        assert_eq!(machine.writes, 1);
    }
}
