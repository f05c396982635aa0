//! What may be wrong with one machine. A fault is switched on and off by the lab's control endpoint; a machine without
//! faults behaves.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

/// One thing that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The BMC drops every connection.
    DeadBmc,
    /// The BMC takes this many seconds for each request.
    SlowBmc(u16),
    /// The BMC refuses the login it was given.
    WrongPassword,
    /// The BMC answers each request with this status.
    BmcStatus(u16),
    /// Power requests are accepted and nothing happens.
    PowerStuck,
    /// The ramdisk never comes up.
    NoBoot,
    /// The ramdisk comes up and works, but sends no heartbeat.
    NoHeartbeat,
    /// The ramdisk sees network cards that nobody knows.
    ForeignMac,
    /// The ramdisk reports that collecting the inventory failed.
    InspectionError,
    /// What arrives is not what the image's checksum promises.
    ChecksumMismatch,
    /// No disk is large enough to be the root disk.
    DiskTooSmall,
    /// Cleaning steps fail.
    CleanStepFails,
}

/// Every kind of fault, for lists and tables.
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

/// All that is wrong with one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Faults(BTreeSet<Fault>);

impl Faults {
    /// Whether this fault is on.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// What each request to the BMC waits for.
    #[must_use]
    pub fn bmc_delay(&self) -> Duration {
        let seconds = self.0.iter().find_map(|fault| match fault {
            Fault::SlowBmc(seconds) => Some(*seconds),
            _ => None,
        });
        Duration::from_secs(seconds.map_or(0, u64::from))
    }

    /// The status with which the BMC answers everything.
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
    fn faults_read_as_words_in_json() {
        let faults: Faults = serde_json::from_str(r#"["dead-bmc", {"slow-bmc": 30}]"#).unwrap();
        assert!(faults.has(Fault::DeadBmc));
        assert_eq!(faults.bmc_delay(), Duration::from_secs(30));
        assert!(serde_json::from_str::<Faults>(r#"["dead-bcm"]"#).is_err());
    }
}
