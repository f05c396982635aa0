//! Faults of a machine, set through the control endpoint.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The BMC drops every connection.
    DeadBmc,
    /// The BMC delays each response by this many seconds.
    SlowBmc(u16),
    /// The BMC rejects the login.
    WrongPassword,
    /// The BMC answers each request with this status.
    BmcStatus(u16),
    /// Power requests are accepted without effect.
    PowerStuck,
    /// The ramdisk never starts.
    NoBoot,
    /// The ramdisk starts and works, but sends no heartbeat.
    NoHeartbeat,
    /// The ramdisk reports unknown MAC addresses.
    ForeignMac,
    /// The ramdisk reports that collecting the inventory failed.
    InspectionError,
    /// The downloaded image does not match its checksum.
    ChecksumMismatch,
    /// No disk is large enough to be the root disk.
    DiskTooSmall,
    /// Cleaning steps fail.
    CleanStepFails,
    /// BIOS settings are accepted, and no boot applies them.
    SettingsStuck,
}

/// Each kind of fault that the simulated Ironic has too.
pub const ALL: [Fault; 12] = [
    Fault::DeadBmc,
    Fault::SlowBmc(30),
    Fault::WrongPassword,
    Fault::BmcStatus(503),
    Fault::PowerStuck,
    Fault::NoBoot,
    Fault::NoHeartbeat,
    Fault::ForeignMac,
    Fault::InspectionError,
    Fault::ChecksumMismatch,
    Fault::DiskTooSmall,
    Fault::CleanStepFails,
];

/// The faults of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Faults(BTreeSet<Fault>);

impl Faults {
    /// Whether this fault is set.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// The delay of BMC responses.
    #[must_use]
    pub fn bmc_delay(&self) -> Duration {
        let seconds = self.0.iter().find_map(|fault| match fault {
            Fault::SlowBmc(seconds) => Some(*seconds),
            _ => None,
        });
        Duration::from_secs(seconds.map_or(0, u64::from))
    }

    /// The fixed status of BMC responses.
    #[must_use]
    pub fn bmc_status(&self) -> Option<u16> {
        self.0.iter().find_map(|fault| match fault {
            Fault::BmcStatus(status) => Some(*status),
            _ => None,
        })
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self(faults.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_kebab_case_in_json() {
        let faults: Faults = serde_json::from_str(r#"["dead-bmc", {"slow-bmc": 30}]"#).unwrap();
        assert!(faults.has(Fault::DeadBmc));
        assert_eq!(faults.bmc_delay(), Duration::from_secs(30));
        assert!(serde_json::from_str::<Faults>(r#"["dead-bcm"]"#).is_err());
    }
}
