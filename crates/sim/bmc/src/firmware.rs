//! The firmware of the system and of the BMC, and the tasks that update it. Pure.
//!
//! A file of firmware is one line: `lab-firmware bios 2.5.0`. The next boot writes that of the system; that of the BMC is written once
//! it is there.

use std::collections::BTreeMap;

use crate::machine::Machine;

/// What has firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The system.
    Bios,
    /// The BMC.
    Bmc,
}

impl Component {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "bios" => Some(Self::Bios),
            "bmc" => Some(Self::Bmc),
            _ => None,
        }
    }
}

/// The state of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The BMC reads the file.
    Fetching,
    /// The next boot writes this version.
    Staged(String),
    /// It is written.
    Written,
    /// It is not, for this reason.
    Failed(String),
}

/// What was updated, and the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Firmware {
    written: BTreeMap<Component, String>,
    tasks: BTreeMap<u64, Progress>,
    /// Files that are not read yet, by task.
    unread: BTreeMap<u64, String>,
}

impl Firmware {
    /// The version that was written last.
    #[must_use]
    pub fn version(&self, component: Component) -> Option<&str> {
        self.written.get(&component).map(String::as_str)
    }

    /// Accepts an update with the file at this address. Returns the number of its task.
    pub fn update(&mut self, url: &str) -> u64 {
        let number = self.tasks.keys().next_back().map_or(1, |last| last + 1);
        self.tasks.insert(number, Progress::Fetching);
        self.unread.insert(number, url.to_owned());
        number
    }

    /// Whether a task has not ended.
    #[must_use]
    pub fn is_updating(&self) -> bool {
        let is_open = |progress: &Progress| matches!(progress, Progress::Fetching | Progress::Staged(_));
        self.tasks.values().any(is_open)
    }

    /// A task, if it exists.
    #[must_use]
    pub fn task(&self, number: u64) -> Option<&Progress> {
        self.tasks.get(&number)
    }

    /// The number of tasks so far.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The files to read, by task, each once.
    pub fn take_unread(&mut self) -> BTreeMap<u64, String> {
        std::mem::take(&mut self.unread)
    }

    /// Goes on with a task whose file was read.
    pub fn read(&mut self, number: u64, file: Result<String, String>) {
        let progress = match file.and_then(|text| parse(&text)) {
            Ok((Component::Bmc, version)) => {
                self.written.insert(Component::Bmc, version);
                Progress::Written
            }
            Ok((Component::Bios, version)) => Progress::Staged(version),
            Err(why) => Progress::Failed(why),
        };
        self.tasks.insert(number, progress);
    }

    /// Writes what is staged, in the order of the tasks, as a boot does.
    pub fn boot(&mut self) {
        for progress in self.tasks.values_mut() {
            if let Progress::Staged(version) = progress {
                self.written.insert(Component::Bios, std::mem::take(version));
                *progress = Progress::Written;
            }
        }
    }
}

/// The version of the system firmware that runs.
#[must_use]
pub fn bios_version(machine: &Machine) -> &str {
    let written = machine.firmware.version(Component::Bios);
    written.unwrap_or(&machine.profile.vendor.firmware.version)
}

/// The version of the BMC's own firmware.
#[must_use]
pub fn bmc_version(machine: &Machine) -> &str {
    let written = machine.firmware.version(Component::Bmc);
    written.unwrap_or(&machine.profile.bmc_version)
}

fn parse(text: &str) -> Result<(Component, String), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["lab-firmware", component, version] = words[..] else {
        return Err("the file is no firmware of this machine".to_owned());
    };
    let component = Component::parse(component).ok_or_else(|| format!("there is no component {component}"))?;
    Ok((component, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(firmware: &mut Firmware, text: &str) -> u64 {
        let number = firmware.update("http://files/firmware");
        assert_eq!(firmware.take_unread().len(), 1);
        assert_eq!(firmware.task(number), Some(&Progress::Fetching));
        firmware.read(number, Ok(text.to_owned()));
        number
    }

    #[test]
    fn firmware_of_the_system_is_written_by_the_next_boot() {
        let mut firmware = Firmware::default();
        let number = read(&mut firmware, "lab-firmware bios 2.5.0\n");
        assert_eq!(firmware.task(number), Some(&Progress::Staged("2.5.0".to_owned())));
        assert_eq!(firmware.version(Component::Bios), None);
        firmware.boot();
        assert_eq!(firmware.task(number), Some(&Progress::Written));
        assert_eq!(firmware.version(Component::Bios), Some("2.5.0"));
        firmware.boot();
        assert_eq!(firmware.version(Component::Bios), Some("2.5.0"));
    }

    #[test]
    fn firmware_of_the_bmc_is_written_at_once() {
        let mut firmware = Firmware::default();
        let number = read(&mut firmware, "lab-firmware bmc 3.1");
        assert_eq!(firmware.task(number), Some(&Progress::Written));
        assert_eq!(firmware.version(Component::Bmc), Some("3.1"));
    }

    #[test]
    fn other_files_fail_and_change_nothing() {
        for text in [
            "",
            "lab-firmware bios",
            "lab-firmware nic 1.0",
            "a disk image",
            "lab-firmware bios 1 2",
        ] {
            let mut firmware = Firmware::default();
            let number = read(&mut firmware, text);
            firmware.boot();
            assert!(matches!(firmware.task(number), Some(Progress::Failed(_))), "{text}");
            assert_eq!(
                [Component::Bios, Component::Bmc].map(|one| firmware.version(one)),
                [None, None]
            );
        }
        let mut firmware = Firmware::default();
        let number = firmware.update("http://files/firmware");
        firmware.read(number, Err("404".to_owned()));
        assert_eq!(firmware.task(number), Some(&Progress::Failed("404".to_owned())));
        assert_eq!(firmware.tasks(), 1);
    }
}
